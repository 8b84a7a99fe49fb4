package main

import (
	"sync"
	"time"

	"github.com/IBM/sarama"
)

type saramaLog struct{}

func (saramaLog) Print(values ...any)                 { note("%v", values) }
func (saramaLog) Printf(format string, values ...any) { note(format, values...) }
func (saramaLog) Println(values ...any)               { note("%v", values) }

func saramaConfig() *sarama.Config {
	sarama.Logger = saramaLog{}
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Net.DialTimeout = requestTimeout
	config.Net.ReadTimeout = 2 * requestTimeout
	config.Metadata.RefreshFrequency = metadataAge
	config.Metadata.Retry.Max = 300
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	return config
}

func saramaSender() *sarama.Config {
	config := saramaConfig()
	config.Net.MaxOpenRequests = 1 // sarama's condition for idempotence
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Timeout = requestTimeout
	config.Producer.Retry.Max = int(deliveryTimeout / config.Producer.Retry.Backoff)
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Flush.Frequency = 2 * time.Millisecond
	return config
}

func saramaMessage(a Args, number, partition, size int) *sarama.ProducerMessage {
	value := sarama.StringEncoder(a.value(number, size))
	return &sarama.ProducerMessage{Topic: a.topic, Partition: int32(partition), Value: value, Metadata: number}
}

func saramaProducer(a Args) {
	producer, err := sarama.NewAsyncProducer(a.bootstrap, saramaSender())
	check(err)
	var reported sync.WaitGroup
	reported.Go(func() {
		for message := range producer.Successes() {
			acknowledged(message.Metadata.(int), message.Partition, message.Offset)
		}
	})
	reported.Go(func() {
		for failed := range producer.Errors() {
			refused(failed.Msg.Metadata.(int), failed.Err)
		}
	})
	for number := 0; a.goOn(); number++ {
		producer.Input() <- saramaMessage(a, number, number%a.partitions, sizeOf(number))
	}
	producer.AsyncClose()
	reported.Wait()
}

// saramaTransactions begins with a new producer when a transaction's end is unknown.
func saramaTransactions(a Args) {
	config := saramaSender()
	config.Producer.Transaction.ID = a.name
	config.Producer.Transaction.Timeout = transactionTimeout
	config.Producer.Transaction.Retry.Max = config.Producer.Retry.Max
	producer := newSarama(a, config)
	for next := 0; a.goOn(); {
		err := producer.BeginTxn()
		if err == nil {
			records, commit := a.drawn(&next)
			commit, err = saramaTransaction(a, producer, records, commit)
			ended(commit, err, records)
		}
		if err != nil || producer.TxnStatus()&sarama.ProducerTxnFlagReady == 0 {
			producer.Close()
			producer = newSarama(a, config)
		}
	}
	producer.Close()
}

func newSarama(a Args, config *sarama.Config) sarama.SyncProducer {
	for {
		producer, err := sarama.NewSyncProducer(a.bootstrap, config)
		if err == nil {
			return producer
		}
		note("a new producer: %v", err)
		time.Sleep(retryPause)
	}
}

func saramaTransaction(a Args, producer sarama.SyncProducer, records []Record, commit bool) (bool, error) {
	var messages []*sarama.ProducerMessage
	for _, record := range records {
		messages = append(messages, saramaMessage(a, record[1], record[0], 60))
	}
	if err := producer.SendMessages(messages); err != nil {
		note("produce: %v", err)
		commit = false
	}
	if commit {
		return commit, producer.CommitTxn()
	}
	return commit, producer.AbortTxn()
}

type saramaHandler struct{}

func (saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (saramaHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			read(message.Partition, message.Offset, message.Value)
			session.MarkMessage(message, "")
		}
	}
}

func saramaMember(a Args) {
	config := saramaConfig()
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = commitInterval
	config.Consumer.Group.Session.Timeout = sessionTimeout
	config.Consumer.Group.Heartbeat.Interval = heartbeat
	context := untilStop()
	for context.Err() == nil {
		group, err := sarama.NewConsumerGroup(a.bootstrap, a.name, config)
		for err == nil && context.Err() == nil {
			err = group.Consume(context, []string{a.topic}, saramaHandler{})
		}
		if err != nil {
			note("the group: %v", err)
			time.Sleep(retryPause)
		}
		if group != nil {
			group.Close()
		}
	}
}
