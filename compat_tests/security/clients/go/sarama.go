package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// saramaScram is the exchange that sarama leaves to its user.
type saramaScram struct{ *scram.ClientConversation }

func (s *saramaScram) Begin(user, password, authorizationID string) error {
	client, err := scram.SHA512.NewClient(user, password, authorizationID)
	if err != nil {
		return err
	}
	s.ClientConversation = client.NewConversation()
	return nil
}

func saramaConfig(spec Spec) (*sarama.Config, error) {
	tlsConfig, err := spec.tls()
	if err != nil {
		return nil, err
	}
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Net.TLS.Enable = true
	config.Net.TLS.Config = tlsConfig
	config.Net.DialTimeout = requestTimeout
	config.Metadata.Retry.Max = 1
	if spec.User != "" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512
		config.Net.SASL.User = spec.User
		config.Net.SASL.Password = spec.Password
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{} }
	}
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = sessionTimeout
	return config, nil
}

func saramaClient(ctx context.Context, spec Spec) error {
	config, err := saramaConfig(spec)
	if err != nil {
		return err
	}
	if err := saramaWrite(spec, config); err != nil {
		return err
	}
	return saramaRead(ctx, spec, config)
}

func saramaWrite(spec Spec, config *sarama.Config) error {
	producer, err := sarama.NewSyncProducer([]string{spec.Bootstrap}, config)
	if err != nil {
		return err
	}
	var messages []*sarama.ProducerMessage
	for number, record := range spec.Records {
		header := sarama.RecordHeader{Key: []byte("number"), Value: []byte(strconv.Itoa(number))}
		messages = append(messages, &sarama.ProducerMessage{
			Topic: spec.Topic, Key: sarama.StringEncoder(record.Key), Value: sarama.StringEncoder(record.Value),
			Headers: []sarama.RecordHeader{header},
		})
	}
	err = producer.SendMessages(messages)
	if each, ok := errors.AsType[sarama.ProducerErrors](err); ok { // its text is only how many there are
		err = each[0]
	}
	if err == nil {
		for number, message := range messages {
			sent(number, message.Partition, message.Offset)
		}
	}
	return errors.Join(err, producer.Close())
}

// saramaMember ends the session when all its members' claims together have had the records that are wanted.
type saramaMember struct {
	missing atomic.Int64
	end     context.CancelFunc
}

func (*saramaMember) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			headers := map[string]string{}
			for _, header := range message.Headers {
				headers[string(header.Key)] = string(header.Value)
			}
			read(message.Partition, message.Offset, message.Key, message.Value, headers)
			session.MarkMessage(message, "")
			if m.missing.Add(-1) == 0 {
				m.end()
			}
		}
	}
}

func saramaRead(ctx context.Context, spec Spec, config *sarama.Config) error {
	group, err := sarama.NewConsumerGroup([]string{spec.Bootstrap}, spec.Group, config)
	if err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	member := &saramaMember{end: cancel}
	member.missing.Store(int64(len(spec.Records)))
	for err == nil && reading.Err() == nil {
		err = group.Consume(reading, []string{spec.Topic}, member)
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, ctx.Err(), group.Close())
}
