"""The pipeline `operations` against a recount in plain Python, over samples with a jump, a silence and broken lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.spark.recount_operations import alerts, understood, values
from compat_tests.spark.test_pipeline import committed, millis
from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.services import Broker
from kpybroker.pipelines.operations.generator import Plan, lines
from kpybroker.pipelines.operations.pipeline import OPERATIONS, OperationsOptions
from kpybroker.pipelines.runtime.options import Options, result_topic
from kpybroker.pipelines.runtime.run import run

MINUTE_MS = 60_000
PLAN = Plan(seed=5, start=datetime(2024, 3, 5, 8, tzinfo=UTC))
END_OF_TIME = "9999-01-01T00:00:00Z"


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Options[OperationsOptions]:
    return Options(
        broker.bootstrap,
        (topic(partitions=1),),
        OperationsOptions(),
        checkpoint=str(tmp_path / "checkpoint"),
        output=(str(tmp_path / "results"), f"topics:{name}-out"),
    )


def test_values_and_alerts_are_those_of_a_recount(
    spark: SparkSession, broker: Broker, options: Options[OperationsOptions]
) -> None:
    """Over two runs: the windows that are open at the end of the first are closed by the second."""
    given = list(lines(PLAN))
    half = len(given) // 2
    write(broker, options.input[0], given[:half])
    first = run(spark, OPERATIONS, options)
    write(broker, options.input[0], given[half:], END_OF_TIME)
    second = run(spark, OPERATIONS, options)
    broken = [line for line in given if understood(line) is None]
    assert (first.read + second.read, first.broken + second.broken) == (len(given), len(broken))
    assert len(broken) > 10

    expected = values(given, MINUTE_MS)
    rows = from_topic(broker, options, "values")
    assert {place: approximate(row) for place, row in rows.items()} == {
        place: approximate(row) for place, row in expected.items()
    }
    found = {place: row["state"] for place, row in from_topic(broker, options, "alerts").items()}
    assert found == alerts(expected, MINUTE_MS, 10, 4.0)
    begins = round(PLAN.trouble[0].timestamp() * 1000)
    assert found[begins, "host-0", "cpu.used.percent"] == "high"
    assert found[begins, "host-1", "disk.used.percent"] == "silent"
    for result in ("values", "alerts"):
        on_disk = spark.read.parquet(f"{options.directories[0]}/{result}").count()
        assert on_disk == len(from_topic(broker, options, result))


def approximate(row: dict[str, Any]) -> dict[str, Any]:
    """Sums of floats depend on their order in the last digits."""
    names = ("kind", "samples", "least", "most", "value")
    return {name: float(f"{row[name]:.9g}") if isinstance(row.get(name), float) else row.get(name) for name in names}


def from_topic(
    broker: Broker, options: Options[OperationsOptions], result: str
) -> dict[tuple[int, str, str], dict[str, Any]]:
    """Rows by start of the window, host and name: each once."""
    found: dict[tuple[int, str, str], dict[str, Any]] = {}
    for message in committed(broker.bootstrap, result_topic(options.prefixes[0], result)):
        row = json.loads(message.value())
        place = millis(row["window_start"]), row["host"], row["name"]
        assert place not in found
        assert message.key().decode() == row["name"]
        found[place] = row
    return found


def write(broker: Broker, topic: str, given: list[str], heartbeat: str | None = None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **QUIET})
    for line in given:
        producer.produce(topic, line, partition=0)
    if heartbeat is not None:
        producer.produce(topic, heartbeat, "heartbeat", partition=0)
    assert producer.flush(DEADLINE_S) == 0
