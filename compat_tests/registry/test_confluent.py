"""confluent-kafka's serializers and its client of a registry, unchanged."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from compat_tests.registry.conftest import MakeRegistry

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
LATER = ORDER.replace("]}", ',{"name":"note","type":"string","default":""}]}')
JSON_ORDER = '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}'


@pytest.fixture
def client(registry: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry})


def context(topic: str = "orders") -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_goes_through_and_old_readers_and_new_ones_understand_each_other(client: SchemaRegistryClient) -> None:
    first = AvroSerializer(client, ORDER)({"id": 7}, context())
    assert first is not None
    second = AvroSerializer(client, LATER)({"id": 8, "note": "x"}, context())
    assert second is not None
    assert (first[:5], second[:5]) == (b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x02")
    assert AvroDeserializer(client)(first, context()) == {"id": 7}
    assert AvroDeserializer(client, LATER)(first, context()) == {"id": 7, "note": ""}
    assert AvroDeserializer(client, ORDER)(second, context()) == {"id": 8}


def test_json_goes_through(client: SchemaRegistryClient) -> None:
    data = JSONSerializer(JSON_ORDER, client)({"id": 7}, context())
    assert data is not None
    assert JSONDeserializer(JSON_ORDER)(data, context()) == {"id": 7}
    assert JSONDeserializer(None, schema_registry_client=client)(data, context()) == {"id": 7}
    with pytest.raises(Exception, match="not of type"):
        JSONSerializer(JSON_ORDER, client)({"id": "seven"}, context())


def message_class() -> Any:
    """`shop.Order`, with a message of Google's library in it."""
    from google.protobuf import timestamp_pb2

    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=3, label=1)
    order.field.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_goes_through(client: SchemaRegistryClient) -> None:
    order = message_class()
    setting = {"use.deprecated.format": False}
    data = ProtobufSerializer(order, client, setting)(order(id=7), context())
    assert data is not None
    assert ProtobufDeserializer(order, setting)(data, context()).id == 7
    with_registry = ProtobufDeserializer(order, setting, schema_registry_client=client)
    assert with_registry(data, context()).id == 7
    stored = client.get_latest_version("orders-value").schema
    assert stored.schema_type == "PROTOBUF"
    assert "message Order {" in stored.schema_str


def test_everything_that_the_client_offers(client: SchemaRegistryClient) -> None:
    subject = "a/b c"
    assert client.register_schema(subject, Schema(ORDER, "AVRO")) == 1
    registered = client.register_schema_full_response(subject, Schema(LATER, "AVRO"))
    assert (registered.schema_id, registered.version) == (2, 2)
    assert client.get_schema(1).schema_str == client.get_schema_by_guid(client.get_version(subject, 1).guid).schema_str
    assert client.lookup_schema(subject, Schema(LATER, "AVRO")).version == 2
    assert client.get_subjects() == [subject]
    assert client.get_subjects_by_schema_id(1) == [subject]
    assert [(one.subject, one.version) for one in client.get_schema_versions(1)] == [(subject, 1)]
    assert sorted(client.get_schema_types()) == ["AVRO", "JSON", "PROTOBUF"]
    assert client.set_compatibility(subject, "FULL") == {"compatibility": "FULL"}
    assert client.get_compatibility(subject) == "FULL"
    assert client.get_compatibility() == "BACKWARD"
    assert not client.test_compatibility(subject, Schema('"int"', "AVRO"))
    assert client.test_compatibility_all_versions(subject, Schema(ORDER, "AVRO"))
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    assert client.delete_mode(subject) == "READONLY"
    assert client.get_global_mode() == "READWRITE"
    reference = SchemaReference("Order", subject, 1)
    using = '{"type":"record","name":"Basket","fields":[{"name":"orders","type":{"type":"array","items":"Order"}}]}'
    client.register_schema("basket", Schema(using, "AVRO", [reference]))
    assert client.get_referenced_by(subject, 1) == [3]
    assert client.get_schema(3).references == [reference]
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_version(subject, 1)
    assert refused.value.error_code == 42206
    assert client.delete_subject("basket") == client.delete_subject("basket", permanent=True) == [1]
    assert client.delete_version(subject, 1) == client.delete_version(subject, 1, permanent=True) == 1
    assert client.get_versions(subject) == [2]
    with pytest.raises(SchemaRegistryError) as missing:
        client.get_version(subject, 1)
    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40402)


def test_a_registry_that_is_started_again_knows_everything(start: MakeRegistry) -> None:
    first = start()
    client = SchemaRegistryClient({"url": first.url})
    assert client.register_schema("orders-value", Schema(ORDER, "AVRO")) == 1
    client.set_compatibility("orders-value", "NONE")
    assert client.delete_subject("orders-value") == [1]
    assert client.register_schema("other", Schema(LATER, "AVRO")) == 2
    assert first.stop() == 0
    again = SchemaRegistryClient({"url": start().url})
    assert again.get_subjects() == ["other"]
    assert again.get_subjects(deleted=True) == ["orders-value", "other"]
    assert again.get_compatibility("orders-value") == "NONE"
    assert again.register_schema("third", Schema('"int"', "AVRO")) == 3


def test_a_client_that_offers_http_2_is_served_and_is_no_warning(start: MakeRegistry) -> None:
    """As Java's HTTP client does with each request: of Connect's converters, for example."""
    instance = start()
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAA"}
    response = httpx.get(f"{instance.url}/subjects", headers=offer, timeout=60)
    assert (response.status_code, response.http_version, response.json()) == (200, "HTTP/1.1", [])
    assert instance.stop() == 0
    assert "WARN" not in instance.log.read_text()
