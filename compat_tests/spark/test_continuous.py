"""Spark's continuous mode, which is experimental in 4.0: rows that are mapped from topic to topic, and what it refuses.

A task for each partition reads without end, so there are no batches, and it needs a core for each. Its state is the
offsets alone: rows after the last epoch are written again by the next run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from compat_tests.conftest import MakeTopic
from compat_tests.spark.pipelines.activity.test_pipeline import committed
from compat_tests.support.quick import DEADLINE_S, fill
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

EPOCH, END_S = "500 milliseconds", 60


def rows(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()


def to_topic(frame: DataFrame, broker: Broker, topic: str, checkpoint: Path) -> StreamingQuery:
    """Start the mapping: a filter, an expression of a column, and the key."""
    value = F.col("value").cast("string")
    mapped = frame.where(~value.endswith("0")).select("key", F.upper(value).alias("value"))
    writer = mapped.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", topic).option("checkpointLocation", str(checkpoint))
    return writer.trigger(continuous=EPOCH).start()


@pytest.mark.wide
def test_rows_that_are_mapped_from_topic_to_topic(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path
) -> None:
    """Rows that are written while the query runs too; the next run goes on after the last epoch at the latest."""
    name, out = topic(), topic(suffix="-out")
    given = [f"value {n}" for n in range(100)]
    query: StreamingQuery | None = None

    def is_written(wanted: set[str]) -> bool:
        assert query is not None
        if (error := query.exception()) is not None:
            raise RuntimeError(str(error))
        return {message.value().decode() for message in committed(broker.bootstrap, out)} == wanted

    try:
        for first in (0, 50):
            query = to_topic(rows(spark, broker, name), broker, out, tmp_path / "checkpoint")
            for start in (first, first + 25):
                fill(broker.bootstrap, name, given[start : start + 25])
                wanted = {one.upper() for one in given[: start + 25] if not one.endswith("0")}
                eventually(partial(is_written, wanted), "the mapped rows", DEADLINE_S)
            query.stop()
    finally:
        if query is not None:
            query.stop()


REFUSED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "aggregations": lambda frame: frame.groupBy("key").count(),
    "windows": lambda frame: (
        frame.withWatermark("timestamp", "1 minute").groupBy(F.window("timestamp", "1 minute")).count()
    ),
    "duplicates": lambda frame: frame.dropDuplicates(["key"]),
    "joins": lambda frame: frame.join(frame.select("key", F.col("value").alias("other")), "key"),
}


@pytest.mark.wide
@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_state_is_refused(
    kind: str, spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path
) -> None:
    frame = REFUSED[kind](rows(spark, broker, topic()))
    writer = frame.select(F.to_json(F.struct(*frame.columns)).alias("value")).writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", "never")
    refused(writer.outputMode("update" if kind in ("aggregations", "windows") else "append"), tmp_path)


@pytest.mark.wide
def test_files_and_functions_of_batches_are_refused(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path
) -> None:
    """So no pipeline here runs in this mode: each writes batches."""
    frame = rows(spark, broker, topic())
    refused(frame.writeStream.foreachBatch(lambda _batch, _number: None), tmp_path)
    refused(frame.writeStream.format("parquet").option("path", str(tmp_path / "out")), tmp_path)


def refused(writer: DataStreamWriter, place: Path) -> None:
    """Some at the start of the query, some by its end."""

    def run_it() -> None:
        query = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(continuous=EPOCH).start()
        try:
            query.awaitTermination(END_S)
        finally:
            query.stop()

    with pytest.raises(PySparkException, match=r"(?i)continuous"):
        run_it()
