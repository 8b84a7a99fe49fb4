"""Where a batch of results is written, each row once: to topics as JSON, to directories as Parquet.

In a directory each batch has a directory of its own (`batch=N`), or one for each hour that it has rows of
(`date=D/hour=H/batch=N`, in UTC); a repeated batch overwrites its own. How a topic has each row once: `topic_output`,
and a table: `table_output`. A batch is written to directories first, then to tables, then to topics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options, result_topic
from kpybroker.pipelines.runtime.pipeline import DEAD_LETTERS, REASON, ByHour, Pipeline
from kpybroker.pipelines.sinks import table_output, topic_output
from kpybroker.pipelines.sinks.client_settings import for_librdkafka
from kpybroker.pipelines.sinks.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACE = ("topic", "partition", "offset")
"""What identifies a record."""
HOUR_MICROS = 3_600_000_000
JSON_OPTIONS = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"}


@dataclass(slots=True)
class Outputs:
    """The outputs of one run. `job` is the identity of the checkpoint; `rows` counts the rows written by result."""

    pipeline: Pipeline[Any]
    options: Options[Any]
    job: str
    say: Callable[[str], None]
    rows: dict[str, int] = field(init=False)
    client: Mapping[str, str] = field(init=False)
    _prepared: set[table_output.Table] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.rows = dict.fromkeys(self.pipeline.results, 0)
        # a setting that topics cannot have is an error before anything is read
        self.client = for_librdkafka(client(self.options)) if self.options.prefixes else {}
        for database in self.options.databases:
            table_output.connect(database).close()

    def keep(self, result: str, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it has no rows."""
        kept = frame.persist()
        try:
            count = kept.count()
            if count == 0:
                return
            for directory in self.options.directories:
                write_files(kept, f"{directory}/{result}", batch_id, self.pipeline.by_hour.get(result))
            self._write_tables(result, kept)
            if self.options.prefixes:
                self._write_topics(result, kept, batch_id)
        finally:
            kept.unpersist()
        self.rows[result] += count
        self.say(f"{result}: {count} rows in batch {batch_id}")

    def _write_tables(self, result: str, frame: DataFrame) -> None:
        for database in self.options.databases:
            table = table_of(self.pipeline, database, result)
            if table not in self._prepared:
                table_output.prepare(table, frame.schema)
                self._prepared.add(table)
            table_output.write(frame, table)

    def _write_topics(self, result: str, frame: DataFrame, batch_id: int) -> None:
        if result == DEAD_LETTERS:
            records = dead_letter_records(frame)
        elif result in self.pipeline.values:
            value = frame[self.pipeline.values[result]]
            records = frame.select(frame[self.pipeline.keys[result]].alias("key"), value.alias("value"))
        else:
            records = json_records(frame, self.pipeline.keys[result])
        for prefix in self.options.prefixes:
            topic = result_topic(prefix, result)
            topic_output.write(records, topic_output.Target(topic, f"{topic}.{self.job}", batch_id, self.client))


def write_files(frame: DataFrame, place: str, batch_id: int, by_hour: ByHour | None) -> None:
    """Write a batch as Parquet. The same batch has the same hours each time, so a repeated one overwrites all of it."""
    from pyspark.sql import functions as F

    if by_hour is None:
        frame.write.mode("overwrite").parquet(f"{place}/batch={batch_id}")
        return
    hours = F.floor(F.unix_micros(by_hour.time) / HOUR_MICROS)
    split = frame.withColumns(
        {
            "date": F.date_add(F.lit("1970-01-01").cast("date"), F.floor(hours / 24).cast("int")),
            "hour": F.pmod(hours, F.lit(24)).cast("int"),
            # no literal: the optimizer leaves those out of the order, and the writer then sorts again, without `order`
            "batch": F.spark_partition_id() * 0 + batch_id,
        }
    )
    folders = ("date", "hour", "batch")
    ordered = split.repartition("date", "hour").sortWithinPartitions(*folders, *by_hour.order)
    # dynamic: only the directories that this batch writes are replaced
    writer = ordered.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy(*folders).parquet(place)


def table_of(pipeline: Pipeline[Any], database: str, result: str) -> table_output.Table:
    """The table of a result, which has its name."""
    key = PLACE if result == DEAD_LETTERS else pipeline.tables[result]
    return table_output.Table(database, result, key)


def refuse_leftovers(spark: SparkSession, pipeline: Pipeline[Any], options: Options[Any]) -> None:
    """Raise `PipelineError` for results of an earlier run: a first run numbers its batches from 0 again."""
    for directory in options.directories:
        for result in (*pipeline.results, *pipeline.folders):
            if Files(spark, directory).exists(f"{directory}/{result}"):
                raise PipelineError(
                    f"{directory}/{result} has the results of an earlier run.",
                    "Give the --checkpoint of that run, another --output, or remove the directory.",
                    2,
                )


def client(options: Options[Any]) -> dict[str, str]:
    """The settings of the Java client."""
    own = {key.removeprefix("kafka."): value for key, value in options.kafka.items()}
    return {**own, "bootstrap.servers": options.bootstrap_servers}


def json_records(frame: DataFrame, key: str) -> DataFrame:
    """`key`, `value`: each row as JSON; the key has the same text as in the value, times included."""
    from pyspark.sql import functions as F

    value = F.to_json(F.struct(*frame.columns), JSON_OPTIONS)
    return frame.select(F.get_json_object(value, f"$.{key}").alias("key"), value.alias("value"))


def dead_letters(rows: DataFrame) -> DataFrame:
    """The broken of the rows of `Pipeline.parse`: where each was, what it was, and why it is here."""
    return rows.where(rows[REASON].isNotNull()).select("topic", "partition", "offset", "key", "value", REASON)


def dead_letter_records(frame: DataFrame) -> DataFrame:
    """Broken records as they were, with headers that say where each was and why it is here."""
    from pyspark.sql import functions as F

    headers = F.array(
        *(
            F.struct(F.lit(f"error.{name}").alias("key"), F.col(name).cast("string").cast("binary").alias("value"))
            for name in ("topic", "partition", "offset", REASON)
        )
    )
    return frame.select("key", "value", headers.alias("headers"))
