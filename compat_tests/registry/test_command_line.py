"""`topic produce` and `consume` with a registry, next to Confluent's serializers: each reads what the other wrote."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process
from kpybroker.client.schemas import proto

AVRO = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"},
    {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "lines", "type": {"type": "array", "items": "double"}}
]}"""
JSON = """{"type": "object", "title": "Order", "required": ["id"], "properties": {"id": {"type": "integer"}}}"""
PROTOBUF = """syntax = "proto3"; package shop;
message Other { string x = 1; }
message Order { message Line { string text = 1; } int64 id = 1; repeated Line lines = 2; }"""


@pytest.fixture
def cli(kafka: Broker) -> CommandLine:
    return CommandLine(kafka.bootstrap)


@pytest.fixture
def topic(kafka: Broker, name: str) -> str:
    quick.create_topic(kafka.bootstrap, name)
    return name


def raw_values(kafka: Broker, topic: str) -> list[bytes]:
    """As our command has them, and as long as kcat has them."""
    command = ["kcat", "-b", kafka.bootstrap, "-C", "-t", topic, "-e", "-q", "-o", "beginning"]
    found = CommandLine(kafka.bootstrap).run("topic", "consume", topic, "-e", "-f", "%v{hex}\\n").lines
    sizes = run_process([*command, "-f", "%S\\n"]).lines
    assert [len(one) // 2 for one in found] == [int(size) for size in sizes]
    return [bytes.fromhex(one) for one in found]


def send(kafka: Broker, topic: str, data: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(topic, data)
    assert producer.flush(60) == 0


def registered(url: str, subject: str, text: str, kind: str) -> int:
    return int(SchemaRegistryClient({"url": url}).register_schema(subject, Schema(text, kind)))


def test_avro(cli: CommandLine, kafka: Broker, topic: str, registry: str) -> None:
    registered(registry, f"{topic}-value", AVRO, "AVRO")
    client = SchemaRegistryClient({"url": registry})
    context = SerializationContext(topic, MessageField.VALUE)
    line = '{"id":7,"note":{"string":"ü"},"price":"\\u0001\\u00ff","at":1700000000000,"lines":[0.1,1e300]}'
    cli.run(
        "topic", "produce", topic, "--schema-registry", registry, "--value-schema", f"{topic}-value", stdin=f"{line}\n"
    )
    (data,) = raw_values(kafka, topic)
    theirs = AvroDeserializer(client)(data, context)
    assert (theirs["id"], theirs["note"], str(theirs["price"]), theirs["lines"]) == (7, "ü", "5.11", [0.1, 1e300])
    again = AvroSerializer(client, AVRO, conf={"auto.register.schemas": False})(theirs, context)
    assert again == data
    send(kafka, topic, again)
    read = cli.run("topic", "consume", topic, "-e", "--schema-registry", registry).lines
    assert [json.loads(one) for one in read] == [json.loads(line)] * 2


def test_json_schema(cli: CommandLine, kafka: Broker, topic: str, registry: str) -> None:
    number = registered(registry, f"{topic}-value", JSON, "JSON")
    client = SchemaRegistryClient({"url": registry})
    context = SerializationContext(topic, MessageField.VALUE)
    schema = ("--schema-registry", registry, "--value-schema", str(number))
    cli.run("topic", "produce", topic, *schema, stdin='{"id": 7, "x": "ü"}\n')
    (data,) = raw_values(kafka, topic)
    assert JSONDeserializer(JSON, schema_registry_client=client)(data, context) == {"id": 7, "x": "ü"}
    serializer = JSONSerializer(JSON, client, conf={"auto.register.schemas": False})
    send(kafka, topic, serializer({"id": 8}, context))
    read = cli.run("topic", "consume", topic, "-e", "--schema-registry", registry).lines
    assert [json.loads(one) for one in read] == [{"id": 7, "x": "ü"}, {"id": 8}]
    refused = cli.run("topic", "produce", topic, *schema, stdin='{"id": "7"}\n', code=1)
    assert "is not of type 'integer'" in refused.err


def test_protobuf(cli: CommandLine, kafka: Broker, topic: str, registry: str) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

    registered(registry, f"{topic}-value", PROTOBUF, "PROTOBUF")
    order, line = messages("shop.Order", "shop.Order.Line")
    context = SerializationContext(topic, MessageField.VALUE)
    schema = ("--schema-registry", registry, "--value-schema", f"{topic}-value")
    cli.run("topic", "produce", topic, *schema, "--message", "shop.Order", stdin='{"id":"7","lines":[{"text":"ü"}]}\n')
    cli.run("topic", "produce", topic, *schema, "--message", "shop.Order.Line", stdin='{"text":"x"}\n')
    cli.run("topic", "produce", topic, *schema, stdin='{"x":"first"}\n')
    data = raw_values(kafka, topic)
    theirs = ProtobufDeserializer(order, {"use.deprecated.format": False})(data[0], context)
    assert (theirs.id, [one.text for one in theirs.lines]) == (7, ["ü"])
    assert ProtobufDeserializer(line, {"use.deprecated.format": False})(data[1], context).text == "x"
    client = SchemaRegistryClient({"url": registry})
    write = ProtobufSerializer(order, client, {"use.deprecated.format": False, "auto.register.schemas": True})
    send(kafka, topic, write(order(id=8, lines=[line(text="y")]), context))
    read = cli.run("topic", "consume", topic, "-e", "--schema-registry", registry).lines
    assert [json.loads(one) for one in read] == [
        {"id": "7", "lines": [{"text": "ü"}]},
        {"text": "x"},
        {"x": "first"},
        {"id": "8", "lines": [{"text": "y"}]},
    ]


def messages(*names: str) -> list[Callable[..., Any]]:
    """Classes of PROTOBUF, as a generated module has them."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    (_, text), *_ = proto.compiled(PROTOBUF, {}).items()
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    file.name = "orders.proto"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]
