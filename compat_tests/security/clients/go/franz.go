package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func franzOptions(spec Spec) ([]kgo.Opt, error) {
	tlsConfig, err := spec.tls()
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(spec.Bootstrap),
		kgo.DialTLSConfig(tlsConfig),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.RequestRetries(1),
	}
	if spec.User != "" {
		login := scram.Auth{User: spec.User, Pass: spec.Password}
		options = append(options, kgo.SASL(login.AsSha512Mechanism()))
	}
	return options, nil
}

func franz(ctx context.Context, spec Spec) error {
	options, err := franzOptions(spec)
	if err != nil {
		return err
	}
	if err := franzWrite(ctx, spec, options); err != nil {
		return err
	}
	return franzRead(ctx, spec, options)
}

func franzWrite(ctx context.Context, spec Spec, options []kgo.Opt) error {
	client, err := kgo.NewClient(append(options, kgo.DefaultProduceTopic(spec.Topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil { // a producer tries a refused login again until its records time out
		return err
	}
	var records []*kgo.Record
	for number, record := range spec.Records {
		header := kgo.RecordHeader{Key: "number", Value: []byte(strconv.Itoa(number))}
		records = append(records, &kgo.Record{
			Key: []byte(record.Key), Value: []byte(record.Value), Headers: []kgo.RecordHeader{header},
		})
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	for number, record := range records {
		sent(number, record.Partition, record.Offset)
	}
	return nil
}

func franzRead(ctx context.Context, spec Spec, options []kgo.Opt) error {
	client, err := kgo.NewClient(append(options,
		kgo.ConsumerGroup(spec.Group),
		kgo.ConsumeTopics(spec.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(sessionTimeout),
		kgo.DisableAutoCommit(),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for count := 0; count < len(spec.Records); {
		fetches := client.PollFetches(ctx)
		var failures []error
		fetches.EachError(func(_ string, _ int32, err error) { failures = append(failures, err) })
		if len(failures) > 0 {
			return errors.Join(failures...)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			headers := map[string]string{}
			for _, header := range record.Headers {
				headers[header.Key] = string(header.Value)
			}
			read(record.Partition, record.Offset, record.Key, record.Value, headers)
			count++
		})
	}
	return client.CommitUncommittedOffsets(ctx)
}
