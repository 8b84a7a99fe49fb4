package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/sr"
)

// franz uses everything of franz-go's client that is about schemas.
func franz(url string) (report, error) {
	found := report{Errors: map[string]int{}}
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		return found, err
	}
	for _, one := range []struct {
		subject string
		schema  sr.Schema
	}{
		{"orders", sr.Schema{Schema: order}},
		{"orders", sr.Schema{Schema: wider}},
		{"orders", sr.Schema{Schema: order}},
		{"basket", sr.Schema{Schema: basket, References: []sr.SchemaReference{{Name: "Order", Subject: "orders", Version: 1}}}},
		{"json", sr.Schema{Schema: closed, Type: sr.TypeJSON}},
		{"bill", sr.Schema{Schema: protobuf, Type: sr.TypeProtobuf}},
	} {
		made, err := client.CreateSchema(ctx, one.subject, one.schema)
		if err != nil {
			return found, err
		}
		found.IDs, found.Versions = append(found.IDs, made.ID), append(found.Versions, made.Version)
	}
	_, err = client.CreateSchema(ctx, "orders", sr.Schema{Schema: broken})
	found.Errors["incompatible"] = codeOf(err)
	_, err = client.SchemaByVersion(ctx, "orders", 9)
	found.Errors["version"] = codeOf(err)
	_, err = client.SchemaByID(ctx, 99)
	found.Errors["id"] = codeOf(err)
	if found.Subjects, err = client.Subjects(ctx); err != nil {
		return found, err
	}
	latest, err := client.SchemaByVersion(ctx, "orders", -1)
	if err != nil {
		return found, err
	}
	found.Latest = latest.Schema.Schema
	uses, err := client.SchemaReferences(ctx, "orders", 1)
	if err != nil {
		return found, err
	}
	for _, use := range uses {
		found.References = append(found.References, use.Subject)
	}
	for _, text := range []string{wider, broken} {
		checked, err := client.CheckCompatibility(ctx, "orders", -1, sr.Schema{Schema: text})
		if err != nil {
			return found, err
		}
		found.Compatible = append(found.Compatible, checked.Is)
	}
	set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "orders")[0]
	got := client.Compatibility(ctx, "orders")[0]
	if err = errors.Join(set.Err, got.Err); err != nil {
		return found, err
	}
	found.Level = got.Level.String()
	changed := client.SetMode(ctx, sr.ModeReadOnly, "json")[0]
	mode := client.Mode(ctx, "json")[0]
	if err = errors.Join(changed.Err, mode.Err); err != nil {
		return found, err
	}
	found.Mode = mode.Mode.String()
	_, err = client.CreateSchema(ctx, "json", sr.Schema{Schema: `{"type":"string"}`, Type: sr.TypeJSON})
	found.Errors["read-only"] = codeOf(err)
	if found.Deleted, err = client.DeleteSubject(ctx, "basket", sr.SoftDelete); err != nil {
		return found, err
	}
	if _, err = client.DeleteSubject(ctx, "basket", sr.HardDelete); err != nil {
		return found, err
	}
	serde := sr.NewSerde()
	serde.Register(found.IDs[0], "", sr.EncodeFn(func(value any) ([]byte, error) { return []byte(value.(string)), nil }),
		sr.DecodeFn(func(data []byte, value any) error { *value.(*string) = string(data); return nil }))
	if found.Payload, err = serde.Encode("seven"); err != nil {
		return found, err
	}
	return found, serde.Decode(found.Payload, &found.Decoded)
}

func codeOf(err error) int {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return refused.ErrorCode
	}
	return 0
}
