"""The pipeline `operations` against a recount in plain Python, over samples with a jump, a silence and broken lines."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.spark.pipelines.activity.test_pipeline import committed, millis
from compat_tests.spark.pipelines.recounts.operations import alerts, understood, values
from compat_tests.spark.pipelines.surviving import check_changed_topics, command, heartbeat, survive
from compat_tests.support.quick import create_topic, fill
from compat_tests.support.services import Broker
from kpybroker.pipelines.operations.pipeline import OPERATIONS, OperationsOptions
from kpybroker.pipelines.runtime.options import Options, result_topic
from kpybroker.pipelines.runtime.run import run
from tests.pipelines.operations.generator import BROKEN, Workload, lines

MINUTE_MS = 60_000
PLAN = Workload(seed=5, start=datetime(2024, 3, 5, 8, tzinfo=UTC))


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Options[OperationsOptions]:
    return options_for(broker, topic(partitions=1), tmp_path, name)


def options_for(broker: Broker, topic: str, place: Path, name: str) -> Options[OperationsOptions]:
    return Options(
        broker.bootstrap,
        (topic,),
        OperationsOptions(),
        checkpoint=str(place / "checkpoint"),
        output=(str(place / "results"), f"topics:{name}-out"),
    )


@pytest.mark.wide
def test_values_and_alerts_are_those_of_a_recount(
    spark: SparkSession, broker: Broker, options: Options[OperationsOptions]
) -> None:
    """Over two runs: the windows that are open at the end of the first are closed by the second."""
    given = [*BROKEN, *lines(PLAN)]
    half = len(given) // 2
    write(broker, options.input[0], given[:half])
    first = run(spark, OPERATIONS, options)
    write(broker, options.input[0], given[half:])
    heartbeat(broker.bootstrap, options.input[0])
    second = run(spark, OPERATIONS, options)
    broken = [line for line in given if understood(line) is None]
    assert (first.read + second.read, first.broken + second.broken) == (len(given), len(broken))
    assert len(broken) > 10
    compare(spark, broker, options, given)
    found = {place: row["state"] for place, row in from_topic(broker, options, "alerts").items()}
    begins = round(PLAN.trouble[0].timestamp() * 1000)
    assert found[begins, "host-0", "cpu.used.percent"] == "high"
    assert found[begins, "host-1", "disk.used.percent"] == "silent"


@pytest.mark.wide
def test_values_and_alerts_are_there_once_after_driver_and_broker_were_killed(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "samples", 1)
    options = replace(options_for(broker, "samples", tmp_path, "killed"), max_offsets=600)
    given = list(lines(PLAN))
    write(broker, "samples", given)
    survive(broker, command(OPERATIONS, options), tmp_path, ["values", "alerts", "dead_letters"])
    heartbeat(broker.bootstrap, "samples")
    run(spark, OPERATIONS, options)
    compare(spark, broker, options, given)
    broken = sum(1 for line in given if understood(line) is None)
    assert len(committed(broker.bootstrap, result_topic(options.prefixes[0], "dead_letters"))) == broken
    assert spark.read.parquet(f"{options.directories[0]}/dead_letters").count() == broken


@pytest.mark.wide
def test_partitions_that_are_added_are_read_and_a_topic_made_again_is_refused(
    spark: SparkSession, broker: Broker, options: Options[OperationsOptions]
) -> None:
    given = list(lines(replace(PLAN, minutes=2, broken=0.0, late=0.0)))

    def write_to(partition: int) -> int:
        write(broker, options.input[0], given, partition)
        return len(given)

    check_changed_topics(spark, broker, OPERATIONS, options, write_to)


def compare(spark: SparkSession, broker: Broker, options: Options[OperationsOptions], given: list[str]) -> None:
    """Values and alerts with a recount, in topics, and how many there are on disk."""
    expected = values(given, MINUTE_MS)
    rows = from_topic(broker, options, "values")
    assert {place: approximate(row) for place, row in rows.items()} == {
        place: approximate(row) for place, row in expected.items()
    }
    found = {place: row["state"] for place, row in from_topic(broker, options, "alerts").items()}
    assert found == alerts(expected, MINUTE_MS, 10, 4.0)
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


def write(broker: Broker, topic: str, given: list[str], partition: int = 0) -> None:
    fill(broker.bootstrap, topic, given, partition)
