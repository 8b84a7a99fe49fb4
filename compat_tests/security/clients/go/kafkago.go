package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/scram"
)

func (s Spec) kafkaGoLogin() (sasl.Mechanism, error) {
	if s.User == "" {
		return nil, nil
	}
	return scram.Mechanism(scram.SHA512, s.User, s.Password)
}

func kafkaGo(ctx context.Context, spec Spec) error {
	if err := kafkaGoWrite(ctx, spec); err != nil {
		return err
	}
	return kafkaGoRead(ctx, spec)
}

func kafkaGoWrite(ctx context.Context, spec Spec) error {
	tlsConfig, err := spec.tls()
	if err != nil {
		return err
	}
	login, err := spec.kafkaGoLogin()
	if err != nil {
		return err
	}
	writer := &kafka.Writer{
		Addr:         kafka.TCP(spec.Bootstrap),
		Topic:        spec.Topic,
		Balancer:     kafka.Murmur2Balancer{},
		RequiredAcks: kafka.RequireAll,
		MaxAttempts:  1,
		BatchTimeout: 10 * time.Millisecond,
		Transport:    &kafka.Transport{TLS: tlsConfig, SASL: login, DialTimeout: requestTimeout},
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				if err == nil {
					sent(message.WriterData.(int), int32(message.Partition), message.Offset)
				}
			}
		},
	}
	var messages []kafka.Message
	for number, record := range spec.Records {
		messages = append(messages, kafka.Message{
			Key: []byte(record.Key), Value: []byte(record.Value), WriterData: number,
			Headers: []kafka.Header{{Key: "number", Value: []byte(strconv.Itoa(number))}},
		})
	}
	err = writer.WriteMessages(ctx, messages...)
	if each, ok := errors.AsType[kafka.WriteErrors](err); ok { // its text is only how many there are
		err = errors.Join(each...)
	}
	return errors.Join(err, writer.Close())
}

func kafkaGoRead(ctx context.Context, spec Spec) error {
	tlsConfig, err := spec.tls()
	if err != nil {
		return err
	}
	login, err := spec.kafkaGoLogin()
	if err != nil {
		return err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        []string{spec.Bootstrap},
		GroupID:        spec.Group,
		Topic:          spec.Topic,
		Dialer:         &kafka.Dialer{Timeout: requestTimeout, TLS: tlsConfig, SASLMechanism: login},
		StartOffset:    kafka.FirstOffset,
		SessionTimeout: sessionTimeout,
		MaxWait:        100 * time.Millisecond,
	})
	var messages []kafka.Message
	for len(messages) < len(spec.Records) {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return errors.Join(err, reader.Close())
		}
		headers := map[string]string{}
		for _, header := range message.Headers {
			headers[header.Key] = string(header.Value)
		}
		read(int32(message.Partition), message.Offset, message.Key, message.Value, headers)
		messages = append(messages, message)
	}
	return errors.Join(reader.CommitMessages(ctx, messages...), reader.Close())
}
