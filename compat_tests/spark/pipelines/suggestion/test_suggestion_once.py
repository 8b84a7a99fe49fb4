"""`suggestion` while the driver and the broker are killed, and with Avro of several schemas from a real registry."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.registry.conftest import Instance
from compat_tests.spark.pipelines.activity.test_pipeline import committed
from compat_tests.spark.pipelines.suggestion.test_suggestion import (
    END,
    OWN,
    PLAN,
    Suggestions,
    compare,
    options_for,
    read,
    recount,
    write,
)
from compat_tests.spark.pipelines.surviving import command, survive
from compat_tests.support.quick import DEADLINE_S, QUIET, create_topic
from compat_tests.support.services import Broker
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.run import run
from kpybroker.pipelines.suggestion.generator import lines
from kpybroker.pipelines.suggestion.pipeline import SUGGESTION

PART = 200
"""Records a batch, so that windows close in several batches."""


def own(options: Suggestions) -> list[str]:
    """Its own options, as arguments."""
    own = options.own
    return [
        *("--window", own.window, "--slide", own.slide, "--basket-max", str(own.basket_max)),
        *("--top", str(own.ranking.top), "--least", str(own.ranking.least), "--shrink", str(own.ranking.shrink)),
    ]


@pytest.mark.wide
def test_suggestions_are_there_once_after_driver_and_broker_were_killed(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    """The batches are those of one run."""
    broker = own_broker()
    create_topic(broker.bootstrap, "purchases", 1)
    options = options_for(broker, "purchases", tmp_path, "killed")
    given = list(lines(PLAN))
    write(broker, "purchases", given, END)
    options = replace(options, max_offsets=PART)
    survive(broker, command(SUGGESTION, options, *own(options)), tmp_path, ["suggestions", "dead_letters"])
    run(spark, SUGGESTION, options)
    expected = recount()
    for first in range(0, len(given) + 1, PART):
        heartbeat = round(datetime.fromisoformat(END).timestamp() * 1000) if first + PART > len(given) else None
        expected.batch(read(given[first : first + PART]), heartbeat)
    compare(broker, options, expected)
    dead = committed(broker.bootstrap, "killed-out-dead-letters")
    offsets = [dict(message.headers())["error.offset"] for message in dead]
    assert len(offsets) == len(set(offsets)) == len(given) - len(read(given))


FIELDS = [{"name": name, "type": "string"} for name in ("time", "user", "basket", "product")]
FIRST: dict[str, Any] = {"type": "record", "name": "Purchase", "fields": FIELDS}
ADDED: dict[str, Any] = {**FIRST, "fields": [*FIELDS, {"name": "quantity", "type": "int", "default": 1}]}
NEWEST: dict[str, Any] = {
    **ADDED,
    "fields": [*ADDED["fields"], {"name": "shop", "type": ["null", "string"], "default": None}],
}
UNKNOWN = 4_000_000


def avro(schema: dict[str, Any], schema_id: int, row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    out.write(b"\0" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


@pytest.fixture
def registry(broker: Broker, name: str, tmp_path: Path) -> Iterator[Instance]:
    own = ["-b", broker.bootstrap, "--topic", f"_schemas-{name}", "--group", f"registry-{name}", "--timeout", "120"]
    started = Instance(*own, log=tmp_path / "registry.log")
    yield started
    started.close()


@pytest.mark.wide
def test_avro_is_read_by_the_schema_of_each_writer(
    spark: SparkSession, broker: Broker, topic: MakeTopic, registry: Instance, tmp_path: Path, name: str
) -> None:
    """A field with a default is added, and another one after the first run; then the registry is away."""
    options = options_for(broker, topic(partitions=1), tmp_path, name)
    options = replace(options, own=replace(OWN, value_format="avro", schema_registry=registry.url))
    client = SchemaRegistryClient({"url": registry.url})
    subject = f"{options.input[0]}-value"
    ids = [client.register_schema(subject, Schema(json.dumps(schema), "AVRO")) for schema in (FIRST, ADDED)]
    texts = [json.dumps(one) for one in map(json.loads, filter(_is_whole, lines(PLAN)))]
    half = len(texts) // 2
    values = [
        avro(*((FIRST, ids[0]) if n % 2 else (ADDED, ids[1])), json.loads(text)) for n, text in enumerate(texts[:half])
    ]
    unreadable = [avro(FIRST, UNKNOWN, json.loads(texts[0])), values[0][:-3], texts[0].encode(), b""]
    write(broker, options.input[0], [*values, *unreadable])
    assert run(spark, SUGGESTION, options).broken == len(unreadable)
    expected = recount()
    expected.batch(read(texts[:half]))

    newest = client.register_schema(subject, Schema(json.dumps(NEWEST), "AVRO"))
    write(broker, options.input[0], [avro(NEWEST, newest, json.loads(text)) for text in texts[half:]], END)
    assert run(spark, SUGGESTION, options).broken == 0
    expected.batch(read(texts[half:]), round(datetime.fromisoformat(END).timestamp() * 1000))
    compare(broker, options, expected)

    dead = committed(broker.bootstrap, f"{options.prefixes[0]}-dead-letters")
    reasons = {message.value() or b"": dict(message.headers())["error.reason"].decode() for message in dead}
    not_avro = "not Avro with the id of a schema"
    assert [reasons[value] for value in unreadable] == [
        f"the schema registry has no Avro schema {UNKNOWN}",
        f"not the data of schema {ids[1]}",
        not_avro,
        not_avro,
    ]
    registry.kill()
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    producer.produce(options.input[0], values[0])
    assert producer.flush(DEADLINE_S) == 0
    with pytest.raises(PipelineError) as away:
        run(spark, SUGGESTION, options)
    said = str(away.value).splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"kpybroker: The schema registry does not respond, or refuses ({registry.url}: ")


def _is_whole(text: str) -> bool:
    return bool(read([text]))
