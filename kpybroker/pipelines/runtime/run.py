"""One run of a pipeline: its streams over the topics of `--input`, until all is read or it is stopped.

Each query keeps its offsets, its open windows and its watermark under the checkpoint; the next run with the same
checkpoint and options continues from there, however the run was stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kpybroker.pipelines.errors import JVM_GONE, explain
from kpybroker.pipelines.runtime import checkpoint, start
from kpybroker.pipelines.runtime.event_time import HEARTBEAT
from kpybroker.pipelines.runtime.options import Options, Run, result_topic
from kpybroker.pipelines.runtime.outputs import Outputs, client, dead_letters, refuse_leftovers
from kpybroker.pipelines.runtime.pipeline import DEAD_LETTERS, REASON, Batch, Pipeline, Query
from kpybroker.pipelines.runtime.progress import Report, counted
from kpybroker.pipelines.runtime.session import JOB_SETTINGS
from kpybroker.pipelines.runtime.topics import create_compacted, partition_counts, topic_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 1
BATCH_END_SECONDS_MAX = 30
Own = TypeVar("Own")
Say = Callable[[str], None]


def run(
    spark: SparkSession,
    pipeline: Pipeline[Own],
    options: Options[Own],
    say: Say = lambda _line: None,
    stop_asked: Callable[[], bool] = lambda: False,
) -> Report:
    """Run to the end, or until `stop_asked()`. `say` receives each line of progress.

    Raises `PipelineError` for an error that a user can fix.
    """
    spark = spark.newSession()
    for key, value in {**JOB_SETTINGS, "spark.sql.session.timeZone": options.timezone}.items():
        spark.conf.set(key, value)
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        ids = topic_ids(spark, client(options), options.input)
        if compacted := {result_topic(prefix, one) for prefix in options.prefixes for one in pipeline.compacted}:
            create_compacted(spark, client(options), compacted)
        if options.run is Run.WHOLE:
            return _run_whole(spark, pipeline, options, say)
        assert options.checkpoint is not None
        if not checkpoint.is_claimed(spark, options.checkpoint):
            refuse_leftovers(spark, pipeline, options)
        job = checkpoint.claim(spark, options.checkpoint, pipeline.name, ids, pipeline.kept(options.own))
        return _run_stream(spark, Outputs(pipeline, options, job, say), stop_asked)
    except (PySparkException, Py4JJavaError) as error:
        raise explain(str(error)) from error
    except (Py4JError, ConnectionError) as error:
        raise JVM_GONE from error


def _source(spark: SparkSession, pipeline: Pipeline[Any], options: Options[Any]) -> dict[str, str]:
    partitions = partition_counts(spark, client(options), options.input)
    source = {
        **pipeline.source,
        **{f"kafka.{key}": value for key, value in client(options).items()},
        "subscribe": ",".join(options.input),
        **start.beginning(options.starting_offsets, options.timezone, partitions),
        "failOnDataLoss": "false" if options.allow_data_loss else "true",
    }
    if options.max_offsets is not None:
        source["maxOffsetsPerTrigger"] = str(options.max_offsets)
    if options.min_partitions is not None:
        source["minPartitions"] = str(options.min_partitions)
    return source


def _queries(outputs: Outputs, records: DataFrame) -> list[Query]:
    """The queries of the pipeline, and the one of the broken records."""
    pipeline, own = outputs.pipeline, outputs.options.own
    rows = pipeline.rows(records, own)
    broken = Query(DEAD_LETTERS, dead_letters(counted(rows)), lambda batch: {DEAD_LETTERS: batch})
    return [broken, *pipeline.queries(rows.where(rows[REASON].isNull()).drop(REASON), own)]


def _keep(outputs: Outputs, query: Query) -> Callable[[DataFrame, int], None]:
    def keep(batch: DataFrame, batch_id: int) -> None:
        kept = batch.persist()
        try:
            own = Batch(kept, batch_id, outputs.options.directories)
            results = query.results(kept) if query.fold is None else query.fold(own)
            for result, frame in results.items():
                outputs.keep(result, frame, batch_id)
        finally:
            kept.unpersist()

    return keep


def _run_whole(spark: SparkSession, pipeline: Pipeline[Own], options: Options[Own], say: Say) -> Report:
    outputs = Outputs(pipeline, options, f"whole-{time.time_ns()}", say)
    refuse_leftovers(spark, pipeline, options)
    source = {**_source(spark, pipeline, options), **start.ending(options.until, options.timezone)}
    source.pop("maxOffsetsPerTrigger", None)
    records = spark.read.format("kafka").options(**source).load().persist()
    for query in _queries(outputs, records):
        _keep(outputs, query)(query.frame, 0)
    report = Report(outputs.rows)
    rows = pipeline.parse(records, options.own)
    report.heartbeats = rows.where(rows[HEARTBEAT]).count()
    report.read = records.count() - report.heartbeats
    records.unpersist()
    return report


def _run_stream(spark: SparkSession, outputs: Outputs, stop_asked: Callable[[], bool]) -> Report:
    report = Report(outputs.rows)
    records = spark.readStream.format("kafka").options(**_source(spark, outputs.pipeline, outputs.options)).load()
    queries = [_start(outputs, query) for query in _queries(outputs, records)]
    try:
        running = queries
        while running and not stop_asked():
            running = [query for query in running if _watch(query, report, outputs.say)]
        if running:
            outputs.say("stopping; the next run with this checkpoint continues from here")
            _let_batches_end(running, report, outputs.say)
    finally:
        _stop(queries)
    return report


def _stop(queries: list[StreamingQuery]) -> None:
    """Stop them. One that waits for a broker that is gone does not stop in time, and hides no error of another."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for query in queries:
        with suppress(PySparkException, Py4JJavaError):
            query.stop()


def _let_batches_end(queries: list[StreamingQuery], report: Report, say: Say) -> None:
    """Wait for running batches: a batch that is cut off is done again by the next run."""
    deadline = time.monotonic() + BATCH_END_SECONDS_MAX
    while any(query.status["isTriggerActive"] for query in queries) and time.monotonic() < deadline:
        for query in queries:
            query.awaitTermination(POLL_S)
    for query in queries:
        _watch(query, report, say)


def _start(outputs: Outputs, query: Query) -> StreamingQuery:
    options = outputs.options
    writer = query.frame.writeStream.queryName(query.name).outputMode(query.mode).foreachBatch(_keep(outputs, query))
    writer = writer.option("checkpointLocation", f"{options.checkpoint}/{query.name}")
    if options.run is Run.FOLLOW:
        return writer.trigger(processingTime=options.every).start()
    return writer.trigger(availableNow=True).start()


def _watch(query: StreamingQuery, report: Report, say: Say) -> bool:
    """Wait shortly for `query` and note what it has read; False once it has ended. Raises the error that ended it."""
    ended = query.awaitTermination(POLL_S)
    for progress in query.recentProgress:
        report.note(query.name, progress, say)
    return not ended
