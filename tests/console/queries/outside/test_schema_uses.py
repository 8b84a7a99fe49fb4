"""Which topics use a schema: by the subject's name, and by the ids that are met in records."""

from __future__ import annotations

import json
import uuid

import httpx
import pytest

from kpybroker.console.queries.outside.schema_uses import Use, by_name, record_name
from kpybroker.testing import Broker, SchemaRegistry
from tests.console.conftest import START_S, MakeClient, rows_of

TOPICS = ("orders", "orders-shop.Order", "payments")


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("AVRO", '{"type": "record", "name": "Order", "namespace": "shop"}', "shop.Order"),
        ("AVRO", '{"type": "record", "name": "shop.Order", "namespace": "other"}', "shop.Order"),
        ("AVRO", '"string"', ""),
        ("JSON", '{"title": "Order"}', "Order"),
        ("JSON", "{", ""),
        ("PROTOBUF", 'syntax = "proto3";\npackage shop;\nmessage Order {}\nmessage Line {}', "shop.Order"),
        ("PROTOBUF", "message Order {}", "Order"),
        ("PROTOBUF", "", ""),
    ],
)
def test_the_full_name_of_a_record(kind: str, text: str, name: str) -> None:
    assert record_name(kind, text) == name


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("orders-value", [Use("orders", "value", "TopicNameStrategy", True)]),
        ("orders-key", [Use("orders", "key", "TopicNameStrategy", True)]),
        ("gone-value", [Use("gone", "value", "TopicNameStrategy", False)]),
        ("payments-shop.Order", [Use("payments", "key or value", "TopicRecordNameStrategy", True)]),
        ("shop.Order", []),
        ("-value", []),
    ],
)
def test_topics_by_the_name_of_a_subject(subject: str, expected: list[Use]) -> None:
    assert by_name(subject, "shop.Order", TOPICS) == expected


def test_a_schema_without_a_name_is_of_no_topic_by_its_record() -> None:
    assert by_name("payments-shop.Order", "", TOPICS) == []


def test_ids_are_met_in_the_newest_records(client: MakeClient, broker: Broker) -> None:
    name = f"used-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    with SchemaRegistry(broker, start_timeout=START_S) as registry:
        new = {"schema": json.dumps({"type": "record", "name": name.replace("-", "_"), "fields": []})}
        response = httpx.post(f"{registry.url}/subjects/{name}/versions", json=new).raise_for_status()
        prefix = b"\0" + response.json()["id"].to_bytes(4, "big")
        broker.produce(name, [("k", prefix), (prefix, "plain"), ("k", prefix + b"x"), ("k", b"\0\0\0\xff\xff")])
        browser = client(registry=registry.url)
        page = browser.get("/schema", params={"subject": name}).text
        assert rows_of(page, "By the name of the subject")[0][0].startswith("its name names no topic")
        assert "Met in records" not in page
        page = browser.get("/schema", params={"subject": name, "look": "1"}).text
        assert rows_of(page, "Met in records") == [[name, "key", "1", "1"], [name, "value", "1", "2"]]
        assert "records of each partition were looked at" in page
