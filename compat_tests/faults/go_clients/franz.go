package main

import (
	"context"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func franz(a Args, options ...kgo.Opt) *kgo.Client {
	stamp := func() string { return time.Now().Format("15:04:05.000 ") }
	client, err := kgo.NewClient(append(options,
		kgo.SeedBrokers(a.bootstrap...),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.MetadataMaxAge(metadataAge),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, stamp)),
	)...)
	check(err)
	return client
}

func franzSender(a Args, options ...kgo.Opt) *kgo.Client {
	return franz(a, append(options,
		kgo.DefaultProduceTopic(a.topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
		kgo.ProduceRequestTimeout(requestTimeout),
		kgo.ProducerLinger(2*time.Millisecond),
		kgo.UnknownTopicRetries(-1),
	)...)
}

// franzProducer is idempotent, as franz-go is by default.
func franzProducer(a Args) {
	client := franzSender(a)
	for number := 0; a.goOn(); number++ {
		record := &kgo.Record{Value: []byte(a.value(number, sizeOf(number))), Partition: int32(number % a.partitions)}
		client.TryProduce(context.Background(), record, func(sent *kgo.Record, err error) {
			if err != nil {
				refused(number, err)
			} else {
				acknowledged(number, sent.Partition, sent.Offset)
			}
		})
	}
	check(client.Flush(context.Background()))
	client.Close()
}

// franzTransactions begins with a new client when a transaction's end is unknown.
func franzTransactions(a Args) {
	fresh := func() *kgo.Client {
		return franzSender(a, kgo.TransactionalID(a.name), kgo.TransactionTimeout(transactionTimeout))
	}
	client := fresh()
	for next := 0; a.goOn(); {
		err := client.BeginTransaction()
		if err == nil {
			records, commit := a.drawn(&next)
			commit, err = franzTransaction(a, client, records, commit)
			ended(commit, err, records)
		}
		if err != nil {
			client.Close()
			client = fresh()
		}
	}
	client.Close()
}

func franzTransaction(a Args, client *kgo.Client, records []Record, commit bool) (bool, error) {
	background := context.Background()
	var sent []*kgo.Record
	for _, record := range records {
		sent = append(sent, &kgo.Record{Value: []byte(a.value(record[1], 60)), Partition: int32(record[0])})
	}
	if err := client.ProduceSync(background, sent...).FirstErr(); err != nil {
		note("produce: %v", err)
		commit = false
		if err := client.AbortBufferedRecords(background); err != nil {
			return commit, err
		}
	}
	return commit, client.EndTransaction(background, kgo.TransactionEndTry(commit))
}

// franzMember is one of a cooperative group.
func franzMember(a Args) {
	client := franz(a,
		kgo.ConsumerGroup(a.name),
		kgo.ConsumeTopics(a.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(sessionTimeout),
		kgo.HeartbeatInterval(heartbeat),
		kgo.AutoCommitInterval(commitInterval),
	)
	context := untilStop()
	for context.Err() == nil {
		fetches := client.PollFetches(context)
		fetches.EachError(func(topic string, partition int32, err error) { note("%s-%d: %v", topic, partition, err) })
		fetches.EachRecord(func(record *kgo.Record) { read(record.Partition, record.Offset, record.Value) })
	}
	client.Close()
}

func untilStop() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-stopping
		cancel()
	}()
	return ctx
}
