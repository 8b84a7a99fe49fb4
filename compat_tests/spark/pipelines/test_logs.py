"""The pipeline `logs` against a recount in plain Python, over lines in five formats, some late, some broken."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.deps import ROOT
from compat_tests.spark.pipelines.activity.test_pipeline import committed, millis
from compat_tests.spark.pipelines.recounts.logs import Burst, Event, Recount, Request, understood
from compat_tests.spark.pipelines.surviving import check_changed_topics, command, heartbeat, survive
from compat_tests.support.quick import DEADLINE_S, QUIET, create_topic
from compat_tests.support.services import Broker
from kpybroker.pipelines.logs.pipeline import LOGS, LogsOptions
from kpybroker.pipelines.runtime.options import Options, result_topic
from kpybroker.pipelines.runtime.run import run
from tests.pipelines.logs.generator import FAILING, NOISY, TRACE, Record, Workload, records

# the middle, in which a service fails, is at the end of an hour
PLAN = Workload(seed=5, start=datetime(2024, 3, 5, 8, 43, 30, tzinfo=UTC))
Chosen = Options[LogsOptions]


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Chosen:
    return options_for(broker, topic(partitions=1), tmp_path, name)


def options_for(broker: Broker, topic: str, place: Path, name: str) -> Chosen:
    return Options(
        broker.bootstrap,
        (topic,),
        LogsOptions(),
        checkpoint=str(place / "checkpoint"),
        output=(str(place / "results"), f"topics:{name}-out"),
    )


@pytest.mark.wide
def test_results_are_those_of_a_recount(spark: SparkSession, broker: Broker, options: Chosen) -> None:
    """Over two runs: what is open at the end of the first is closed by the second, in which some lines are too late."""
    given = list(records(PLAN))
    half = len(given) * 2 // 3
    write(broker, options.input[0], given[:half])
    first = run(spark, LOGS, options)
    write(broker, options.input[0], given[half:])
    heartbeat(broker.bootstrap, options.input[0])
    second = run(spark, LOGS, options)
    recount = Recount()
    recount.run(events_of(given[:half]))
    recount.run(events_of(given[half:]), ends=True)
    assert recount.late > 0
    broken = [record for record in given if understood(record.value, record.headers) is None]
    assert (first.read + second.read, first.broken + second.broken) == (len(given), len(broken))
    assert len(broken) > 10
    compare(spark, broker, options, given, recount)
    found = recount.bursts()
    assert [(burst.windows, burst.usual) for burst in found if burst.service == FAILING] == [(4, 0)]
    errors = [count for (service, _), count in recount.counts.items() if service == NOISY]
    assert max(errors) > LogsOptions().burst_errors, "a service that always has many errors has no burst"
    assert NOISY not in {burst.service for burst in found}
    check_hours(spark, options, given)


@pytest.mark.wide
def test_results_are_there_once_after_driver_and_broker_were_killed(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "lines", 1)
    options = replace(options_for(broker, "lines", tmp_path, "killed"), max_offsets=300)
    given = list(records(replace(PLAN, too_late=0.0)))
    write(broker, "lines", given)
    survive(broker, command(LOGS, options), tmp_path, ["events", "correlated", "bursts", "dead_letters"])
    heartbeat(broker.bootstrap, "lines")
    run(spark, LOGS, options)
    recount = Recount()
    recount.run(events_of(given), ends=True)
    compare(spark, broker, options, given, recount)
    broken = sum(1 for record in given if understood(record.value, record.headers) is None)
    assert len(committed(broker.bootstrap, result_topic(options.prefixes[0], "dead_letters"))) == broken
    assert spark.read.parquet(f"{options.directories[0]}/dead_letters").count() == broken
    check_hours(spark, options, given)


@pytest.mark.wide
def test_partitions_that_are_added_are_read_and_a_topic_made_again_is_refused(
    spark: SparkSession, broker: Broker, options: Chosen
) -> None:
    given = list(records(replace(PLAN, minutes=2, broken=0.0, late=0.0, too_late=0.0)))

    def write_to(partition: int) -> int:
        write(broker, options.input[0], given, partition)
        return len(given)

    check_changed_topics(spark, broker, LOGS, options, write_to)


BROKER = (
    '[2024-03-05 08:00:00,250] ERROR Failed (kafka.server.Broker)\njava.io.IOException: "no (x)"\n\tat A.b(C.java:1)'
)
LINES: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    # the line, its headers, and what is to be in its row
    (
        BROKER,
        {"service": "broker", "host": "node-1", "file": "/var/log/server.log"},
        {
            "format": "log4j",
            "level": "ERROR",
            "logger": "kafka.server.Broker",
            "message": "Failed",
            "host": "node-1",
            "file": "/var/log/server.log",
            "details": BROKER.split("\n", 1)[1],
            "ms": 1_709_625_600_250,
        },
    ),
    (
        '{"ts": 1709625600.5, "severity": "warning", "service": "own", "message": "m", "request_id": "abcdefgh-1"}',
        {"service": "header"},
        {
            "format": "json",
            "service": "header",
            "level": "WARN",
            "correlation_id": "abcdefgh-1",
            "ms": 1_709_625_600_500,
        },
    ),
    (
        '{"time": 1709625600750, "app": "own", "msg": "m", "error": "why", "trace_id": "0000000000000000"}\nmore',
        {"service": ""},
        {"format": "json", "service": "own", "details": "why", "correlation_id": None, "ms": 1_709_625_600_750},
    ),
    (
        '<165>1 2024-03-05T09:00:00.003+01:00 gate app 7 ID47 [a@1 x="\\]"][b@1] said correlation_id=deadbeef',
        {},
        {"format": "syslog", "host": "gate", "service": "app", "level": "INFO", "correlation_id": "deadbeef"},
    ),
    ("2024-03-05T08:00:00Z gate sshd[4]: Accepted", {}, {"format": "journal", "service": "sshd", "level": None}),
    (
        "ERROR:root:failed",
        {"service": "old"},
        {"format": "python-basic", "logger": "root", "level": "ERROR", "ms": 1_709_627_400_000},
    ),
    ("2024-03-05 08:00:00,000 - a.b - INFO - m", {}, {"reason": "no service: neither a header nor the line names one"}),
    ('{"message": "m", "service": "s"}', {}, {"reason": "no time, or one that is none"}),
    ('{"time": "0000-01-01T00:00:00Z", "service": "s"}', {}, {"reason": "no time, or one that is none"}),
    ("x", {}, {"reason": "in no known format"}),
    ("", {}, {"reason": "empty"}),
    ('{"time": "2999-01-01T00:00:00Z", "service": "s"}', {}, {"reason": "dated more than 1 hour after its record"}),
]


def test_a_line_of_each_format_and_its_headers(spark: SparkSession) -> None:
    """And why a line is broken."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    schema = (
        "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
        "headers array<struct<key string, value binary>>"
    )
    now = datetime(2024, 3, 5, 8, 30, tzinfo=UTC)
    rows = [
        (
            "t",
            0,
            place,
            now,
            None,
            bytearray(line, "utf-8"),
            [(key, bytearray(value, "utf-8")) for key, value in headers.items()],
        )
        for place, (line, headers, _) in enumerate(LINES)
    ]
    parsed = LOGS.parse(session.createDataFrame(rows, schema), LogsOptions())
    parsed = parsed.withColumn("ms", F.unix_millis("event_time"))
    found = {row["offset"]: row.asDict() for row in parsed.collect()}
    for place, (line, _, expected) in enumerate(LINES):
        expected = {"reason": None, **expected}
        assert {name: found[place][name] for name in expected} == expected, line


def events_of(given: Iterable[Record]) -> list[Event]:
    return [event for one in given if (event := understood(one.value, one.headers)) is not None]


def compare(spark: SparkSession, broker: Broker, options: Chosen, given: list[Record], recount: Recount) -> None:
    """All results with a recount, in topics, and how many there are on disk."""
    rows = {result: from_topic(broker, options, result) for result in ("events", "correlated", "bursts")}
    places = [(row["partition"], row["offset"]) for row in rows["events"]]
    assert len(places) == len(set(places))
    assert Counter(map(as_event, rows["events"])) == Counter(events_of(given))
    assert any(row.get("details") == TRACE for row in rows["events"])
    assert Counter(map(as_request, rows["correlated"])) == Counter(recount.requests)
    assert Counter(map(as_burst, rows["bursts"])) == Counter(recount.bursts())
    for result, in_topic in rows.items():
        assert spark.read.parquet(f"{options.directories[0]}/{result}").count() == len(in_topic)


def check_hours(spark: SparkSession, options: Chosen, given: list[Record]) -> None:
    """Files are in the directories of their hours, sorted by service and time."""
    place = Path(options.directories[0], "events")
    expected = Counter(
        datetime.fromtimestamp(event.ms / 1000, UTC).strftime("%Y-%m-%d %H") for event in events_of(given)
    )
    assert len(expected) == 2
    found: Counter[str] = Counter()
    for file in place.glob("date=*/hour=*/batch=*/*.parquet"):
        rows = spark.read.parquet(str(file)).selectExpr("service", "unix_millis(event_time) as ms").collect()
        order = [(row.service, row.ms) for row in rows]
        assert order == sorted(order)
        hour = int(file.parts[-3].removeprefix("hour="))
        found[f"{file.parts[-4].removeprefix('date=')} {hour:02d}"] += len(rows)
    assert found == expected
    sample = runpy.run_path(str(ROOT / "docs" / "samples" / "spark" / "search_logs.py"))
    of_hour = [
        event
        for event in events_of(given)
        if datetime.fromtimestamp(event.ms / 1000, UTC).hour == 8 and (event.service, event.level) == (FAILING, "ERROR")
    ]
    searched = sample["errors"](spark, options.directories[0], "2024-03-05", 8, FAILING).collect()
    assert [row.message for row in searched] == [event.message for event in sorted(of_hour)] != []


def as_event(row: dict[str, Any]) -> Event:
    names = ("level", "message", "correlation_id", "details")
    level, message, *others = (row.get(name) for name in names)
    return Event(millis(row["event_time"]), row["service"], row["host"], level, str(message), *others)


def as_request(row: dict[str, Any]) -> Request:
    times = millis(row["first_time"]), millis(row["last_time"])
    services = tuple(row["services"])
    return Request(row["correlation_id"], *times, services, row["events"], row["errors"], row.get("worst"))


def as_burst(row: dict[str, Any]) -> Burst:
    assert row["sample"]
    times = millis(row["burst_start"]), millis(row["burst_end"])
    return Burst(row["service"], *times, *(row[name] for name in ("errors", "windows", "most", "usual")))


def from_topic(broker: Broker, options: Chosen, result: str) -> list[dict[str, Any]]:
    rows = []
    for message in committed(broker.bootstrap, result_topic(options.prefixes[0], result)):
        rows.append(json.loads(message.value()))
        assert message.key().decode() == rows[-1][LOGS.keys[result]]
    return rows


def write(broker: Broker, topic: str, given: Iterable[Record], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **QUIET})
    for record in given:
        producer.produce(topic, record.value, record.key, partition=partition, headers=list(record.headers))
    assert producer.flush(DEADLINE_S) == 0
