package main

import (
	"errors"

	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
)

// Order is what the serializer writes.
type Order struct {
	ID int64 `avro:"id"`
}

// confluent uses confluent-kafka-go's client and its serializer of Avro.
func confluent(url string) (report, error) {
	found := report{Errors: map[string]int{}}
	client, err := schemaregistry.NewClient(schemaregistry.NewConfig(url))
	if err != nil {
		return found, err
	}
	for _, one := range []struct {
		subject string
		schema  schemaregistry.SchemaInfo
	}{
		{"orders", schemaregistry.SchemaInfo{Schema: order}},
		{"orders", schemaregistry.SchemaInfo{Schema: wider}},
		{"orders", schemaregistry.SchemaInfo{Schema: order}},
		{"basket", schemaregistry.SchemaInfo{Schema: basket, References: []schemaregistry.Reference{{Name: "Order", Subject: "orders", Version: 1}}}},
		{"json", schemaregistry.SchemaInfo{Schema: closed, SchemaType: "JSON"}},
		{"bill", schemaregistry.SchemaInfo{Schema: protobuf, SchemaType: "PROTOBUF"}},
	} {
		id, err := client.Register(one.subject, one.schema, false)
		if err != nil {
			return found, err
		}
		version, err := client.GetVersion(one.subject, one.schema, false)
		if err != nil {
			return found, err
		}
		found.IDs, found.Versions = append(found.IDs, id), append(found.Versions, version)
	}
	_, err = client.Register("orders", schemaregistry.SchemaInfo{Schema: broken}, false)
	found.Errors["incompatible"] = restCode(err)
	_, err = client.GetSchemaMetadata("orders", 9)
	found.Errors["version"] = restCode(err)
	_, err = client.GetBySubjectAndID("", 99)
	found.Errors["id"] = restCode(err)
	if found.Subjects, err = client.GetAllSubjects(); err != nil {
		return found, err
	}
	latest, err := client.GetLatestSchemaMetadata("orders")
	if err != nil {
		return found, err
	}
	found.Latest = latest.Schema
	for _, text := range []string{wider, broken} {
		is, err := client.TestSubjectCompatibility("orders", schemaregistry.SchemaInfo{Schema: text})
		if err != nil {
			return found, err
		}
		found.Compatible = append(found.Compatible, is)
	}
	if _, err = client.UpdateCompatibility("orders", schemaregistry.Full); err != nil {
		return found, err
	}
	level, err := client.GetCompatibility("orders")
	if err != nil {
		return found, err
	}
	found.Level = level.String()
	if found.Deleted, err = client.DeleteSubject("basket", false); err != nil {
		return found, err
	}
	if _, err = client.DeleteSubject("basket", true); err != nil {
		return found, err
	}
	return found, throughSerializer(client, &found)
}

func throughSerializer(client schemaregistry.Client, found *report) error {
	if _, err := client.Register("first-value", schemaregistry.SchemaInfo{Schema: order}, false); err != nil {
		return err
	}
	config := avrov2.NewSerializerConfig()
	config.AutoRegisterSchemas = false
	config.UseLatestVersion = true
	serializer, err := avrov2.NewSerializer(client, serde.ValueSerde, config)
	if err != nil {
		return err
	}
	if found.Payload, err = serializer.Serialize("first", &Order{ID: 7}); err != nil {
		return err
	}
	deserializer, err := avrov2.NewDeserializer(client, serde.ValueSerde, avrov2.NewDeserializerConfig())
	if err != nil {
		return err
	}
	var read Order
	if err = deserializer.DeserializeInto("first", found.Payload, &read); err != nil {
		return err
	}
	if read.ID == 7 {
		found.Decoded = "seven"
	}
	return nil
}

func restCode(err error) int {
	var refused *rest.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return 0
}
