package main

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const flushTimeout = 20 * time.Second

// franzShare is one of the share group NAME: it says what it was given, accepts it, and says of which partitions that
// was confirmed (true), refused (false), or is not known.
func franzShare(a Args) {
	var guard sync.Mutex
	results := map[int32]error{}
	client := franz(a,
		kgo.ShareGroup(a.name),
		kgo.ConsumeTopics(a.topic),
		kgo.ShareAckCallback(func(_ *kgo.Client, all kgo.ShareAckResults) {
			guard.Lock()
			defer guard.Unlock()
			for _, one := range all {
				if results[one.Partition] == nil {
					results[one.Partition] = one.Err
				}
			}
		}),
	)
	running := untilStop()
	for running.Err() == nil {
		say(line{"event": "polls"})
		fetches := client.PollRecords(running, 100)
		fetches.EachError(func(topic string, partition int32, err error) { note("%s-%d: %v", topic, partition, err) })
		offsets := map[int32][]int64{}
		guard.Lock()
		clear(results)
		guard.Unlock()
		fetches.EachRecord(func(record *kgo.Record) {
			offsets[record.Partition] = append(offsets[record.Partition], record.Offset)
			say(line{
				"event": "delivered", "partition": record.Partition, "offset": record.Offset,
				"value": string(record.Value), "times": record.DeliveryCount(),
			})
			record.Ack(kgo.AckAccept)
		})
		bounded, cancel := context.WithTimeout(context.Background(), flushTimeout)
		err := client.FlushAcks(bounded)
		cancel()
		guard.Lock()
		for partition, all := range offsets {
			said := line{"event": "acknowledged", "partition": partition, "offsets": all}
			if result, known := results[partition]; known && err == nil {
				said["done"] = result == nil
			}
			say(said)
		}
		guard.Unlock()
	}
	client.Close()
}
