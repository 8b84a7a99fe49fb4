"""One standalone worker: Kafka's transforms on both sides, JSON with schemas, and records that nothing can read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Message, Producer

from compat_tests.conftest import Launcher
from compat_tests.connect.standalone import Standalone
from compat_tests.connect.topics import becomes, read_to_end
from compat_tests.connect.workers import DEADLINE_S, JARS
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

TRANSFORMS = "org.apache.kafka.connect.transforms"
FILE = "org.apache.kafka.connect.file.FileStream"
JSON = "org.apache.kafka.connect.json.JsonConverter"
NUMBERS = range(1, 201)

SOURCE_CHAIN = {
    "hoist": ("HoistField$Value", {"field": "line"}),
    "cast": ("Cast$Value", {"spec": "line:int32"}),
    "rename": ("ReplaceField$Value", {"renames": "line:number"}),
    "shop": ("InsertField$Value", {"static.field": "shop", "static.value": "north"}),
    "key": ("ValueToKey", {"fields": "number"}),
    "bare": ("ExtractField$Key", {"field": "number"}),
    "move": ("HeaderFrom$Value", {"fields": "shop", "headers": "shop", "operation": "move"}),
    "noise": ("InsertHeader", {"header": "noise", "value.literal": "x"}),
    "quiet": ("DropHeaders", {"headers": "noise"}),
    "name": ("SetSchemaMetadata$Value", {"schema.name": "shop.Number", "schema.version": "3"}),
    "route": ("RegexRouter", {"regex": "lines-(.*)", "replacement": "$1"}),
    "origin": ("InsertHeader", {"header": "origin", "value.literal": "a file", "predicate": "routed"}),
    "wrong": ("InsertHeader", {"header": "wrong", "value.literal": "x", "predicate": "routed", "negate": "true"}),
}
SINK_CHAIN = {
    "skip": ("Filter", {"predicate": "tombstone"}),
    "trial": ("Filter", {"predicate": "trial"}),
    "cast": ("Cast$Value", {"spec": "id:int32"}),
    "mask": ("MaskField$Value", {"fields": "card", "replacement": "****"}),
    "at": ("TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "yyyy-MM-dd"}),
    "flat": ("Flatten$Value", {"delimiter": "_"}),
    "day": ("TimestampRouter", {"topic.format": "${topic}-${timestamp}", "timestamp.format": "yyyy"}),
    "where": ("InsertField$Value", {"topic.field": "topic", "offset.field": "offset"}),
}


def chain(steps: dict[str, tuple[str, dict[str, str]]]) -> dict[str, str]:
    """The settings of a connector's transforms."""
    settings = {"transforms": ",".join(steps)}
    for name, (kind, options) in steps.items():
        settings[f"transforms.{name}.type"] = f"{TRANSFORMS}.{kind}"
        settings |= {f"transforms.{name}.{key}": value for key, value in options.items()}
    return settings


class Scene(NamedTuple):
    """A worker with a source of lines and a sink of orders."""

    broker: Broker
    worker: Standalone
    sunk: Path


@pytest.fixture(params=[pytest.param(JARS[0], marks=pytest.mark.wide), JARS[1]])
def scene(request: pytest.FixtureRequest, launcher: Launcher, tmp_path: Path) -> Iterator[Scene]:
    broker = launcher.broker()
    for topic in ("numbers", "orders"):
        quick.create_topic(broker.bootstrap, topic)
    lines, sunk = tmp_path / "lines.txt", tmp_path / "orders.txt"
    lines.write_text("".join(f"{number}\n" for number in NUMBERS))
    source = {
        "connector.class": f"{FILE}SourceConnector",
        "file": str(lines),
        "topic": "lines-numbers",
        "key.converter": "org.apache.kafka.connect.converters.IntegerConverter",
        "value.converter": JSON,
        "predicates": "routed",
        "predicates.routed.type": f"{TRANSFORMS}.predicates.TopicNameMatches",
        "predicates.routed.pattern": "numbers",
        **chain(SOURCE_CHAIN),
    }
    sink = {
        "connector.class": f"{FILE}SinkConnector",
        "file": str(sunk),
        "topics": "orders",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "consumer.override.auto.offset.reset": "earliest",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "orders.dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "predicates": "tombstone,trial",
        "predicates.tombstone.type": f"{TRANSFORMS}.predicates.RecordIsTombstone",
        "predicates.trial.type": f"{TRANSFORMS}.predicates.HasHeaderKey",
        "predicates.trial.name": "trial",
        **chain(SINK_CHAIN),
    }
    worker = Standalone(broker.bootstrap, tmp_path, {"source": source, "sink": sink}, jars=request.param)
    try:
        worker.start()
        yield Scene(broker, worker, sunk)
    finally:
        worker.close()
        broker.service.kill()


def test_transforms_json_with_schemas_and_dead_letters(scene: Scene) -> None:
    """What the chains make of each record, in order; what cannot be read is kept as it was, with where and why."""
    bootstrap = scene.broker.bootstrap
    schema = {"type": "struct", "optional": False, "name": "shop.Number", "version": 3}
    schema["fields"] = [{"type": "int32", "optional": False, "field": "number"}]

    def numbers() -> list[object]:
        return [content(message) for message in read_to_end(bootstrap, "numbers")]

    headers = [("shop", b"north"), ("origin", b"a file")]
    expected: list[object] = [
        (number.to_bytes(4, "big"), {"schema": schema, "payload": {"number": number}}, strings(headers))
        for number in NUMBERS
    ]
    becomes(numbers, expected, "all numbers")
    _write_orders(bootstrap)
    eventually(lambda: len(scene.sunk.read_text().splitlines()) == 3, "the good orders", DEADLINE_S)
    sunk = [fields_of(line) for line in scene.sunk.read_text().splitlines()]
    assert sunk == [sunk_order(number, offset) for number, offset in ((1, 0), (4, 3), (6, 6))]
    _check_dead_letters(bootstrap)
    assert [scene.worker.status(name)["tasks"][0]["state"] for name in ("source", "sink")] == ["RUNNING"] * 2


def content(message: Message) -> tuple[object, ...]:
    return message.key(), json.loads(message.value()), strings(message.headers() or [])


def strings(headers: list[tuple[str, bytes]]) -> dict[str, str]:
    """Headers as their default converter writes strings."""
    return {key: value.decode() for key, value in headers}


def order(number: int) -> bytes:
    return json.dumps({"id": str(number), "card": "4111", "at": 1_700_000_000_000, "to": {"city": "Ulm"}}).encode()


def sunk_order(number: int, offset: int) -> dict[str, str]:
    fields = {"id": str(number), "card": "****", "at": "2023-11-14", "to_city": "Ulm"}
    return fields | {"topic": "orders-2023", "offset": str(offset)}


def fields_of(line: str) -> dict[str, str]:
    """What the sink wrote of a map: `{id=1, card=****}`, in any order."""
    return dict(field.split("=", 1) for field in line.strip("{}").split(", "))


TRIAL = 5
POISON = {1: b"{no json", 2: json.dumps({"id": "many"}).encode()}


def _write_orders(bootstrap: str) -> None:
    """An order, no JSON, an id that is no number, an order, a tombstone, one with the header `trial`, an order."""
    values = [order(1), POISON[1], POISON[2], order(4), None, order(6)]
    producer = Producer({"bootstrap.servers": bootstrap, **quick.QUIET})
    stamp = 1_700_000_000_000
    for number, value in enumerate(values):
        if number == TRIAL:
            producer.produce("orders", order(TRIAL), "trial", 0, timestamp=stamp, headers=[("trial", b"yes")])
        producer.produce("orders", value, f"k{number}", 0, timestamp=stamp, headers=[("n", b"%d" % number)])
    assert producer.flush(DEADLINE_S) == 0


def _check_dead_letters(bootstrap: str) -> None:
    """KIP-298: key, value and headers as they were, and then Connect's."""
    stages = {1: ("VALUE_CONVERTER", JSON), 2: ("TRANSFORMATION", f"{TRANSFORMS}.Cast$Value")}
    dead = eventually(lambda: [m for m in [read_to_end(bootstrap, "orders.dead")] if len(m) == 2], "dead letters")[0]
    for message, (offset, (stage, java_class)) in zip(dead, stages.items(), strict=True):
        assert (message.key(), message.value()) == (f"k{offset}".encode(), POISON[offset])
        headers = strings(message.headers())
        assert headers.pop("n") == str(offset)
        said = {key.removeprefix("__connect.errors."): value for key, value in headers.items()}
        assert said.pop("exception.stacktrace").startswith("org.apache.kafka.connect.errors.DataException")
        assert said.pop("exception.message")
        assert said == {
            "topic": "orders",
            "partition": "0",
            "offset": str(offset),
            "connector.name": "sink",
            "task.id": "0",
            "stage": stage,
            "class.name": java_class,
            "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        }
