"""Where a batch of results is written: to a topic as JSON, to a directory as Parquet.

Parquet is exactly-once: each batch has a directory of its own (`batch=N`) that a repeated batch overwrites. A topic is
at-least-once, as Spark's own sink is: a run that dies between its write and its commit writes that batch again, and a
reader recognizes a repeated row by its key and its window. Parquet is written first, so what is in the topic is on
disk too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.options import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = {"page_counts": "page", "top_pages": "window_start", "sessions": "visitor"}
"""Result -> the column that is the key of its records."""
JSON_OPTIONS = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"}


@dataclass(slots=True)
class Sinks:
    """The outputs of one run. `rows` counts the rows written by result; `say` receives each line of progress."""

    options: Options
    kafka: Mapping[str, str]
    say: Callable[[str], None]
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))

    def directory(self, result: str) -> str:
        """The Parquet directory of a result; only with `--to-parquet`."""
        assert self.options.to_parquet is not None
        return f"{self.options.to_parquet.rstrip('/')}/{result}"

    def keep(self, result: str, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it has no rows. `frame` is used more than once, so the caller persists it."""
        count = frame.count()
        if count == 0:
            return
        if self.options.to_parquet is not None:
            frame.write.mode("overwrite").parquet(f"{self.directory(result)}/batch={batch_id}")
        if self.options.to_topics is not None:
            self._write_topic(result, frame)
        self.rows[result] += count
        self.say(f"{result}: {count} rows in batch {batch_id}")

    def _write_topic(self, result: str, frame: DataFrame) -> None:
        from pyspark.sql import functions as F

        value = F.to_json(F.struct(*frame.columns), JSON_OPTIONS)
        # the key has the same text as in the value, times included
        key = F.get_json_object(value, f"$.{KEYS[result]}")
        writer = frame.select(key.alias("key"), value.alias("value")).write.format("kafka")
        writer.options(**self.kafka).option("topic", self.options.result_topic(result)).save()

    def refuse_leftovers(self, spark: SparkSession) -> None:
        """Raise `PipelineError` for results of an earlier run: a first run numbers its batches from 0 again."""
        if self.options.to_parquet is None:
            return
        for result in KEYS:
            if exists(spark, self.directory(result)):
                raise PipelineError(
                    f"{self.directory(result)} has the results of an earlier run.",
                    "Give the --checkpoint of that run, another --to-parquet, or remove the directory.",
                    2,
                )


def exists(spark: SparkSession, place: str) -> bool:
    """Whether `place` exists: a path, or a URI of any file system that Spark supports."""
    jvm = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)  # type: ignore[union-attr]
    return bool(path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path))
