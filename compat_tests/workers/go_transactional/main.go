// A transactional producer of franz-go, with the orders and the words of transactional_client.py: JSON lines on stdin,
// with one response on stdout each. The argument is the specification, as JSON.
//
// Offsets are those of a group that reads a topic: franz-go commits no others in a transaction.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const deadline = 180 * time.Second

type spec struct {
	Bootstrap       string `json:"bootstrap"`
	TransactionalID string `json:"transactional_id"`
	TimeoutMs       int    `json:"timeout_ms"`
}

type producer struct {
	spec   spec
	client *kgo.Client
}

func main() {
	p := producer{}
	check(json.Unmarshal([]byte(os.Args[1]), &p.spec))
	orders := bufio.NewScanner(os.Stdin)
	orders.Buffer(nil, 1<<20)
	for orders.Scan() {
		var order []json.RawMessage
		check(json.Unmarshal(orders.Bytes(), &order))
		response := map[string]string{}
		if err := p.act(order); err != nil {
			response["error"] = err.Error()
		}
		said, err := json.Marshal(response)
		check(err)
		os.Stdout.Write(append(said, '\n'))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func (p *producer) act(order []json.RawMessage) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var name string
	check(json.Unmarshal(order[0], &name))
	switch name {
	case "init":
		return p.init(ctx)
	case "begin":
		return p.client.BeginTransaction()
	case "produce":
		var topic string
		var partition int32
		var values []string
		arguments(order, &topic, &partition, &values)
		return p.client.ProduceSync(ctx, records(topic, partition, values)...).FirstErr()
	case "copy":
		var source, target, group string
		var count int
		arguments(order, &source, &target, &group, &count)
		return p.copy(ctx, source, target, group, count)
	case "commit":
		return p.client.EndTransaction(ctx, kgo.TryCommit)
	case "abort":
		return p.client.EndTransaction(ctx, kgo.TryAbort)
	}
	return fmt.Errorf("no such order: %s", name)
}

func arguments(order []json.RawMessage, into ...any) {
	for n, one := range into {
		check(json.Unmarshal(order[n+1], one))
	}
}

func records(topic string, partition int32, values []string) []*kgo.Record {
	var made []*kgo.Record
	for _, value := range values {
		made = append(made, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)})
	}
	return made
}

func (p *producer) options() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(p.spec.Bootstrap, ",")...),
		kgo.TransactionalID(p.spec.TransactionalID),
		kgo.TransactionTimeout(time.Duration(p.spec.TimeoutMs) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
}

func (p *producer) init(ctx context.Context) error {
	client, err := kgo.NewClient(p.options()...)
	if err != nil {
		return err
	}
	p.client = client
	_, _, err = client.ProducerID(ctx)
	return err
}

// copy reads so many records of a topic and writes them to another, with the offsets of the group, in one transaction,
// which it commits.
func (p *producer) copy(ctx context.Context, source, target, group string, count int) error {
	session, err := kgo.NewGroupTransactSession(append(p.options(),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)...)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return err
	}
	for copied := 0; copied < count; {
		fetches := session.PollRecords(ctx, count-copied)
		if err := fetches.Err0(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			copied++
			if err := session.ProduceSync(ctx, records(target, 0, []string{string(record.Value)})...).FirstErr(); err != nil {
				return err
			}
		}
	}
	committed, err := session.End(ctx, kgo.TryCommit)
	if err == nil && !committed {
		return errors.New("the transaction was aborted")
	}
	return err
}
