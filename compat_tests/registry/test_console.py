"""The console shows messages whose schemas are in our registry, of each type."""

from __future__ import annotations

import html
from collections.abc import Callable

import httpx
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from compat_tests.console.conftest import console
from compat_tests.registry.test_confluent import JSON_ORDER, ORDER, message_class
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker


def test_messages_of_each_type_are_shown(kafka: Broker, registry: str, name: str) -> None:
    client = SchemaRegistryClient({"url": registry})
    order = message_class()
    serialize: dict[str, Callable[[SerializationContext], bytes | None]] = {
        "avro": lambda context: AvroSerializer(client, ORDER)({"id": 71}, context),
        "json": lambda context: JSONSerializer(JSON_ORDER, client)({"id": 72}, context),
        "protobuf": lambda context: ProtobufSerializer(order, client, {"use.deprecated.format": False})(
            order(id=73), context
        ),
    }
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for kind, made in serialize.items():
        create_topic(kafka.bootstrap, f"{name}-{kind}", 1)
        producer.produce(f"{name}-{kind}", made(SerializationContext(f"{name}-{kind}", MessageField.VALUE)))
    assert producer.flush(60) == 0
    with console("-b", kafka.bootstrap, "--schema-registry", registry) as address:
        for number, kind in enumerate(serialize, 71):
            page = html.unescape(httpx.get(f"{address}/topics/{name}-{kind}/messages", timeout=60).text)
            assert f'"id": {number}' in page.replace(f'"{number}"', f"{number}"), kind
