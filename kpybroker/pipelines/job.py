"""The job: two queries over one topic, one for pages and one for sessions, until it is read or stopped.

Each query keeps its offsets, its open windows and its watermark under the checkpoint; the next run
with the same checkpoint and options continues from there, however the run was stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.activity import HEARTBEAT_KEY, LINES, events, page_counts, sessions, top_pages
from kpybroker.pipelines.errors import explain
from kpybroker.pipelines.options import Options, Run
from kpybroker.pipelines.session import JOB_SETTINGS
from kpybroker.pipelines.sinks import Sinks, exists

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 1
BATCH_END_SECONDS_MAX = 30
Batch = Callable[["DataFrame", int], None]


@dataclass(slots=True)
class Report:
    """What a run did: rows written by result, and lines read. `read` does not include heartbeats."""

    rows: dict[str, int]
    read: int = 0
    not_understood: int = 0
    heartbeats: int = 0
    last_batch: int = -1

    def add_lines(self, metrics: dict[str, int]) -> None:
        """Add the lines of one batch, as the metric `lines` observed them."""
        self.read += metrics["read"]
        self.not_understood += metrics["not_understood"]
        self.heartbeats += metrics["heartbeats"]


def run(
    spark: SparkSession,
    options: Options,
    say: Callable[[str], None] = lambda _line: None,
    stop_asked: Callable[[], bool] = lambda: False,
) -> Report:
    """Run to the end, or until `stop_asked()`. `say` receives each line of progress.

    Raises `PipelineError` for an error that a user can fix.
    """
    spark = spark.newSession()
    for key, value in {**JOB_SETTINGS, "spark.sql.session.timeZone": options.timezone}.items():
        spark.conf.set(key, value)
    sinks = Sinks(options, _client(options), say)
    report = Report(sinks.rows)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        if options.run is Run.WHOLE:
            _run_whole(spark, options, sinks, report)
        else:
            _run_stream(spark, options, sinks, report, stop_asked)
    except (PySparkException, Py4JJavaError) as error:
        raise explain(str(error)) from error
    return report


def _client(options: Options) -> dict[str, str]:
    own = {key.removeprefix("kafka."): value for key, value in options.kafka.items()}
    return {f"kafka.{key}": value for key, value in {**own, "bootstrap.servers": options.bootstrap_servers}.items()}


def _source(options: Options) -> dict[str, str]:
    source = {
        **_client(options),
        "subscribe": options.topic,
        "startingOffsets": options.starting_offsets,
        "failOnDataLoss": "false" if options.allow_data_loss else "true",
    }
    if options.max_offsets is not None:
        source["maxOffsetsPerTrigger"] = str(options.max_offsets)
    return source


def _events(records: DataFrame, options: Options) -> DataFrame:
    return events(records, options.format, options.fields, options.watermark)


def _pages_batch(sinks: Sinks, top: int) -> Batch:
    def keep(counts: DataFrame, batch_id: int) -> None:
        kept = counts.persist()
        sinks.keep("page_counts", kept, batch_id)
        best = top_pages(kept, top).persist()
        sinks.keep("top_pages", best, batch_id)
        best.unpersist()
        kept.unpersist()

    return keep


def _sessions_batch(sinks: Sinks) -> Batch:
    def keep(found: DataFrame, batch_id: int) -> None:
        kept = found.persist()
        sinks.keep("sessions", kept, batch_id)
        kept.unpersist()

    return keep


def _run_whole(spark: SparkSession, options: Options, sinks: Sinks, report: Report) -> None:
    from pyspark.sql import functions as F

    sinks.refuse_leftovers(spark)
    source = _source(options)
    source.pop("maxOffsetsPerTrigger", None)
    records = (
        spark.read.format("kafka").options(**source).load().select("key", "value", "partition", "offset").persist()
    )
    activity = _events(records, options)
    _pages_batch(sinks, options.top)(page_counts(activity, options.window, options.slide), 0)
    _sessions_batch(sinks)(sessions(activity, options.session_gap), 0)
    report.heartbeats = records.where(F.col("key").cast("string") == HEARTBEAT_KEY).count()
    report.read = records.count() - report.heartbeats
    report.not_understood = report.read - activity.count()
    records.unpersist()


def _run_stream(
    spark: SparkSession, options: Options, sinks: Sinks, report: Report, stop_asked: Callable[[], bool]
) -> None:
    assert options.checkpoint is not None
    if not exists(spark, f"{options.checkpoint}/pages"):
        sinks.refuse_leftovers(spark)
    records = spark.readStream.format("kafka").options(**_source(options)).load()
    activity = _events(records, options)
    counts = page_counts(activity, options.window, options.slide)
    plan: list[tuple[str, DataFrame, Batch]] = [
        ("pages", counts, _pages_batch(sinks, options.top)),
        ("sessions", sessions(activity, options.session_gap), _sessions_batch(sinks)),
    ]
    queries = [_start(name, frame, keep, options) for name, frame, keep in plan]
    try:
        running = queries
        while running and not stop_asked():
            running = [query for query in running if _watch(query, report)]
        if running:
            sinks.say("stopping; the next run with this checkpoint continues from here")
            _let_batches_end(running, report)
    finally:
        for query in queries:
            query.stop()


def _let_batches_end(queries: list[StreamingQuery], report: Report) -> None:
    """Wait for running batches: the next run repeats a batch that is cut off, and a topic would have it twice."""
    deadline = time.monotonic() + BATCH_END_SECONDS_MAX
    while any(query.status["isTriggerActive"] for query in queries) and time.monotonic() < deadline:
        for query in queries:
            query.awaitTermination(POLL_S)
    for query in queries:
        _watch(query, report)


def _start(name: str, frame: DataFrame, keep: Batch, options: Options) -> StreamingQuery:
    writer = frame.writeStream.queryName(name).outputMode("append").foreachBatch(keep)
    writer = writer.option("checkpointLocation", f"{options.checkpoint}/{name}")
    if options.run is Run.FOLLOW:
        return writer.trigger(processingTime=options.every).start()
    return writer.trigger(availableNow=True).start()


def _watch(query: StreamingQuery, report: Report) -> bool:
    """Wait shortly for `query` and note what it has read; False once it has ended. Raises the error that ended it."""
    ended = query.awaitTermination(POLL_S)
    for progress in query.recentProgress:
        _note(query.name, progress, report)
    return not ended


def _note(name: str, progress: Any, report: Report) -> None:
    """Add the lines of a batch, of one query only: both read every line."""
    metrics = progress["observedMetrics"].get(LINES)
    if name != "pages" or metrics is None or progress["batchId"] <= report.last_batch or not progress["numInputRows"]:
        return
    report.last_batch = progress["batchId"]
    report.add_lines(metrics.asDict() if hasattr(metrics, "asDict") else dict(metrics))
