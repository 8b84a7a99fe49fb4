"""What the Spark tests share: records with everything in them, reading them with Spark, a query that can be stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.waiting import eventually

STEP_MS = 60_000
# hours ago, and not years: retention would take them away in the middle of a test
FIRST_MS = (int(time.time() * 1000) // STEP_MS - 180) * STEP_MS


@dataclass(frozen=True, slots=True, order=True)
class Seen:
    """One record as Spark's Kafka source shows it; also what we expect to see."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def records(topic: str, partition: int, count: int, first: int = 0, headers: bool = True) -> list[Seen]:
    """Records `first`.. of a partition, a minute apart; every seventh has no key, every eleventh no value."""
    return [
        Seen(
            topic,
            partition,
            n,
            FIRST_MS + n * STEP_MS + partition,
            None if n % 7 == 6 else f"key {n}".encode(),
            None if n % 11 == 10 else f"{topic}/{partition}/{n} æøå".encode() + bytes([n % 256]),
            (("number", str(n).encode()), ("twice", b"\xff\x00"), ("twice", None)) if headers and n % 3 == 0 else (),
        )
        for n in range(first, first + count)
    ]


def write(bootstrap: str, batch: Sequence[Seen]) -> None:
    """Write with librdkafka and check that each record went where it was expected to go."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET})
    delivered: list[tuple[str, int, int]] = []

    def report(error: object, message: Message) -> None:
        assert error is None, error
        delivered.append((message.topic(), message.partition(), message.offset()))

    for one in batch:
        producer.produce(
            one.topic,
            one.value,
            one.key,
            partition=one.partition,
            timestamp=one.timestamp_ms,
            headers=list(one.headers),
            on_delivery=report,
        )
    assert producer.flush(DEADLINE_S) == 0
    assert sorted(delivered) == sorted((one.topic, one.partition, one.offset) for one in batch)


COLUMNS = ["topic", "partition", "offset", "unix_millis(timestamp) as timestamp_ms", "key", "value", "headers"]


def seen(frame: DataFrame) -> list[Seen]:
    """The rows of Spark's Kafka source, in the order of topic, partition and offset."""
    rows = frame.selectExpr(*COLUMNS).collect()
    return sorted((_as_seen(row) for row in rows), key=lambda one: (one.topic, one.partition, one.offset))


def _as_seen(row: Row) -> Seen:
    headers = tuple((one.key, None if one.value is None else bytes(one.value)) for one in row.headers or ())
    key, value = (None if data is None else bytes(data) for data in (row.key, row.value))
    return Seen(row.topic, row.partition, row.offset, row.timestamp_ms, key, value, headers)


def batch(spark: SparkSession, bootstrap: str, **options: Any) -> list[Seen]:
    """One batch read of Spark's Kafka source; an option that is not text is written as JSON."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("includeHeaders", "true")
    return seen(reader.options(**as_options(options)).load())


def as_options(options: dict[str, object]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}


@dataclass(slots=True)
class Stream:
    """A streaming query from Kafka to Parquet, whose sink is exactly-once; each start goes on from the checkpoint."""

    spark: SparkSession
    checkpoint: Path
    output: Path
    query: StreamingQuery | None = field(default=None)

    def start(self, bootstrap: str, *, follow: bool = False, **options: Any) -> StreamingQuery:
        """Start: to the end of what is there now, or, with `follow`, until it is stopped."""
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        frame = reader.option("includeHeaders", "true").options(**as_options(options)).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        trigger: dict[str, Any] = {"processingTime": "100 milliseconds"} if follow else {"availableNow": True}
        self.query = writer.trigger(**trigger).start(str(self.output))
        return self.query

    def run(self, bootstrap: str, **options: Any) -> list[int]:
        """Take in all that is there now; the rows of each micro-batch that had any."""
        query = self.start(bootstrap, **options)
        assert query.awaitTermination(int(DEADLINE_S * 2)), "the query did not end"
        return [n for progress in query.recentProgress if (n := progress["numInputRows"])]

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    def rows(self) -> list[Seen]:
        """All rows that the query has written in all of its runs."""
        commits = self.output / "_spark_metadata"
        if not any(one.name.isdecimal() and "{" in one.read_text() for one in commits.glob("[0-9]*")):
            return []
        return seen(self.spark.read.parquet(str(self.output)))

    def has(self, expected: Sequence[Seen]) -> None:
        """Wait for the number of rows, then compare them all."""
        assert self.query is not None

        def enough() -> bool:
            assert self.query is not None
            if self.query.exception() is not None:
                raise RuntimeError(str(self.query.exception()))
            return len(self.rows()) >= len(expected)

        eventually(enough, f"{len(expected)} rows", 180)
        assert self.rows() == sorted(expected)
