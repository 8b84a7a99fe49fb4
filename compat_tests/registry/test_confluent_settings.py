"""Settings of confluent-kafka's serializers: subjects, versions, references, normalization, contexts, asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry._async.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from compat_tests.registry.test_confluent import JSON_ORDER, LATER, ORDER

BASKET = '{"type":"record","name":"Basket","fields":[{"name":"first","type":"Order"}]}'


@pytest.fixture
def client(registry: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry})


def context(topic: str = "orders", field: str = MessageField.VALUE) -> SerializationContext:
    return SerializationContext(topic, field)


def fixed(**settings: Any) -> dict[str, Any]:
    """Settings of a serializer that registers nothing."""
    return {"auto.register.schemas": False, **settings}


@pytest.mark.wide
def test_subjects_are_named_by_each_strategy(client: SchemaRegistryClient) -> None:
    for strategy in (None, record_subject_name_strategy, topic_record_subject_name_strategy):
        settings = {} if strategy is None else {"subject.name.strategy": strategy}
        AvroSerializer(client, ORDER, conf=settings)({"id": 7}, context())
        AvroSerializer(client, ORDER, conf=settings)({"id": 7}, context(field=MessageField.KEY))
    assert client.get_subjects() == ["Order", "orders-Order", "orders-key", "orders-value"]


def test_the_latest_version_is_used_or_one_that_is_named(client: SchemaRegistryClient) -> None:
    for text in (ORDER, LATER):
        client.register_schema("orders-value", Schema(text, "AVRO"))
    latest = AvroSerializer(client, ORDER, conf=fixed(**{"use.latest.version": True}))
    data = latest({"id": 7, "note": "x"}, context())
    assert data is not None
    assert data[:5] == b"\x00\x00\x00\x00\x02"
    first = AvroSerializer(client, LATER, conf=fixed(**{"use.schema.id": 1}))
    data = first({"id": 7}, context())
    assert data is not None
    assert data[:5] == b"\x00\x00\x00\x00\x01"
    with pytest.raises(SchemaRegistryError) as missing:
        AvroSerializer(client, ORDER, conf=fixed())({"id": 7}, context("nowhere"))
    assert missing.value.error_code == 40401
    assert client.get_subjects() == ["orders-value"], "nothing was registered"


@pytest.mark.wide
def test_the_latest_version_with_metadata_is_found(client: SchemaRegistryClient) -> None:
    for text, major in ((ORDER, "1"), (LATER, "2")):
        metadata = Metadata(tags=None, properties=MetadataProperties({"major": major}), sensitive=None)
        client.register_schema("orders-value", Schema(text, "AVRO", [], metadata))
    settings = fixed(**{"use.latest.with.metadata": {"major": "1"}})
    data = AvroSerializer(client, ORDER, conf=settings)({"id": 7}, context())
    assert data is not None
    assert data[:5] == b"\x00\x00\x00\x00\x01"


def test_references_are_followed_by_serializers(client: SchemaRegistryClient) -> None:
    client.register_schema("order", Schema(ORDER, "AVRO"))
    basket = Schema(BASKET, "AVRO", [SchemaReference("Order", "order", 1)])
    data = AvroSerializer(client, basket)({"first": {"id": 7}}, context("baskets"))
    assert AvroDeserializer(client)(data, context("baskets")) == {"first": {"id": 7}}
    assert client.get_referenced_by("order", 1) == [2]
    client.register_schema("json-order", Schema(JSON_ORDER, "JSON"))
    listed = Schema(
        '{"type":"object","properties":{"first":{"$ref":"order.json"}}}',
        "JSON",
        [SchemaReference("order.json", "json-order", 1)],
    )
    data = JSONSerializer(listed, client)({"first": {"id": 7}}, context("lists"))
    assert JSONDeserializer(listed, schema_registry_client=client)(data, context("lists")) == {"first": {"id": 7}}
    with pytest.raises(Exception, match="not of type"):
        JSONSerializer(listed, client)({"first": {"id": "x"}}, context("lists"))


@pytest.mark.wide
def test_a_normalized_schema_is_the_same_schema(client: SchemaRegistryClient) -> None:
    spaced = ORDER.replace('"name":"Order"', '"doc":"o","name":"Order"').replace('"type":"record",', "")
    spaced = spaced.replace("{", '{"type":"record",', 1)
    plain = ORDER.replace('"name":"Order"', '"name":"Order","doc":"o"')
    assert client.register_schema("a", Schema(spaced, "AVRO"), normalize_schemas=True) == 1
    settings = {"normalize.schemas": True, "subject.name.strategy": lambda *_: "a"}
    data = AvroSerializer(client, plain, conf=settings)({"id": 7}, context())
    assert data is not None
    assert data[:5] == b"\x00\x00\x00\x00\x01"


def test_subjects_in_a_context(registry: str, client: SchemaRegistryClient) -> None:
    client.register_schema("orders-value", Schema('"int"', "AVRO"))
    inside = SchemaRegistryClient({"url": f"{registry}/contexts/.shop"})
    data = AvroSerializer(inside, ORDER)({"id": 7}, context())
    assert data is not None
    assert data[:5] == b"\x00\x00\x00\x00\x01"
    assert AvroDeserializer(inside)(data, context()) == {"id": 7}
    assert inside.get_subjects() == [":.shop:orders-value"]
    assert client.get_subjects() == [":.shop:orders-value", "orders-value"]
    assert client.get_contexts() == [".", ".shop"]
    qualified = client.get_version(":.shop:orders-value", 1)
    assert (qualified.schema_id, qualified.subject) == (1, ":.shop:orders-value")
    inside.set_compatibility(level="NONE")
    assert client.get_compatibility() == "BACKWARD"


def test_the_client_of_asyncio(registry: str) -> None:
    async def exchange() -> object:
        client = AsyncSchemaRegistryClient({"url": registry})
        serializer = await AsyncAvroSerializer(client, ORDER)
        names = [f"s-{number}" for number in range(9)]
        ids = await asyncio.gather(*(client.register_schema(one, Schema(ORDER, "AVRO")) for one in names))
        assert set(ids) == {1}
        data = await serializer({"id": 7}, context())
        reader = await AsyncAvroDeserializer(client)
        return await reader(data, context())

    assert asyncio.run(exchange()) == {"id": 7}
