package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	pollFor   = 50 * time.Millisecond
	heartbeat = 500 * time.Millisecond
)

type settings map[string]string

type member struct {
	name      string
	commit    string
	atRevoked bool // what is not committed by then is
	commits   chan struct{}
	closing   context.Context
	close     context.CancelFunc
}

func startMember(name string, words []string) *member {
	given := settings{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		given[key] = value
	}
	isLate := given["commit"] == "async" || given["enable.auto.commit"] == "true"
	started := &member{name: name, commit: given["commit"], atRevoked: isLate, commits: make(chan struct{}, 1)}
	started.closing, started.close = context.WithCancel(context.Background())
	go started.run(given)
	return started
}

// run hands out records until the member is closed or an error ends it. No rebalance is between a poll and its commit.
func (m *member) run(given settings) {
	client, err := kgo.NewClient(m.options(given)...)
	check(err)
	for err == nil && m.closing.Err() == nil {
		err = m.poll(client)
		client.AllowRebalance()
	}
	if err != nil {
		say(m.name, "failed", line{"error": err.Error()})
	} else {
		say(m.name, "closing", nil)
	}
	client.CloseAllowingRebalance()
	say(m.name, "closed", nil)
}

func (m *member) options(given settings) []kgo.Opt {
	stamp := func() string { return time.Now().Format("15:04:05.000 ") + m.name + " " }
	options := []kgo.Opt{
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, stamp)),
		kgo.SeedBrokers(given["bootstrap.servers"]),
		kgo.ConsumerGroup(given["group.id"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.BlockRebalanceOnPoll(),
		kgo.HeartbeatInterval(heartbeat),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(milliseconds(given, "metadata.max.age.ms", 1_000)),
		kgo.SessionTimeout(milliseconds(given, "session.timeout.ms", 10_000)),
		kgo.Balancers(balancer(given)),
		kgo.OnPartitionsAssigned(m.said("assigned")),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.said("lost")),
	}
	if pattern, ok := given["pattern"]; ok {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(strings.Split(given["topics"], ",")...))
	}
	if id, ok := given["client.id"]; ok {
		options = append(options, kgo.ClientID(id))
	}
	if instance, ok := given["group.instance.id"]; ok {
		options = append(options, kgo.InstanceID(instance))
	}
	if given["group.protocol"] == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if given["enable.auto.commit"] != "true" {
		options = append(options, kgo.DisableAutoCommit())
	}
	return options
}

func milliseconds(given settings, key string, otherwise int) time.Duration {
	if value, ok := given[key]; ok {
		number, err := strconv.Atoi(value)
		check(err)
		otherwise = number
	}
	return time.Duration(otherwise) * time.Millisecond
}

// balancer of the new protocol is the one whose assignor the broker has: sticky stands for `uniform`.
func balancer(given settings) kgo.GroupBalancer {
	if given["group.protocol"] == "consumer" {
		if given["group.remote.assignor"] == "range" {
			return kgo.RangeBalancer()
		}
		return kgo.StickyBalancer()
	}
	if given["partition.assignment.strategy"] == "range" {
		return kgo.RangeBalancer()
	}
	return kgo.CooperativeStickyBalancer()
}

func (m *member) poll(client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(m.closing, pollFor)
	defer cancel()
	fetches := client.PollFetches(ctx)
	var fatal error
	fetches.EachError(func(topic string, partition int32, err error) {
		var refused *kerr.Error
		if errors.As(err, &refused) && !refused.Retriable {
			fatal = err
		} else if !errors.Is(err, ctx.Err()) {
			note("%s: %s-%d: %v", m.name, topic, partition, err)
		}
	})
	if fatal != nil {
		return fatal
	}
	fetches.EachRecord(m.handOut)
	if !fetches.Empty() {
		m.commitBatch(client)
	}
	select {
	case <-m.commits:
		m.committed(client.CommitUncommittedOffsets(context.Background()))
	default:
	}
	return nil
}

func (m *member) handOut(record *kgo.Record) {
	what := line{"topic": record.Topic, "partition": record.Partition, "offset": record.Offset, "value": string(record.Value)}
	if record.Key != nil {
		what["key"] = string(record.Key)
	}
	say(m.name, "record", what)
}

func (m *member) commitBatch(client *kgo.Client) {
	switch m.commit {
	case "sync":
		m.committed(client.CommitUncommittedOffsets(context.Background()))
	case "async":
		client.CommitOffsets(context.Background(), client.UncommittedOffsets(), m.onCommitted)
	}
}

func (m *member) onCommitted(
	_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error,
) {
	if err == nil && response != nil { // of no offsets there is none
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(partition.ErrorCode))
			}
		}
	}
	m.committed(err)
}

func (m *member) committed(err error) {
	if err == nil {
		say(m.name, "committed", nil)
	} else {
		say(m.name, "refused", line{"error": err.Error()})
	}
}

func (m *member) revoked(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	if m.atRevoked {
		m.committed(client.CommitUncommittedOffsets(ctx))
	}
	m.said("revoked")(ctx, client, topics)
}

// said is a callback that says which partitions.
func (m *member) said(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		partitions := [][2]any{}
		for topic, indexes := range topics {
			for _, index := range indexes {
				partitions = append(partitions, [2]any{topic, index})
			}
		}
		say(m.name, event, line{"partitions": partitions})
	}
}
