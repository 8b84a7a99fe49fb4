"""From lines to results: the same functions over a stream and over a bounded set.

A result is final: a window or a session is written once, when the watermark has passed its end (append mode). The
watermark is the newest event time of the batches before, less the allowed lateness; an event whose window or session
has ended by then is late and is dropped. Event time stops when nothing is written; a heartbeat (a record with the key
`heartbeat` and an ISO 8601 time as its value) advances it without being an event.

Times are not checked: a line dated in the future moves the watermark there, and older lines are then late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.pipelines.formats import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEARTBEAT_KEY = "heartbeat"
LINES = "lines"
NO_VISITOR = "-"


def events(records: DataFrame, format_name: str, fields: Mapping[str, str], watermark: str) -> DataFrame:
    """Kafka records as events (event_time, page, visitor, action, partition, offset), with the watermark set.

    The metric `lines` observes `read`, `not_understood` and `heartbeats` of every batch.
    """
    from pyspark.sql import functions as F

    value = records["value"].cast("string")
    heartbeat = F.coalesce(records["key"].cast("string") == HEARTBEAT_KEY, F.lit(False))
    columns = FORMATS[format_name](value, fields)
    understood = columns.event_time.isNotNull() & columns.page.isNotNull()
    parsed = records.select(
        F.when(heartbeat, value.try_cast("timestamp")).when(understood, columns.event_time).alias("event_time"),
        F.when(~heartbeat & understood, columns.page).alias("page"),
        F.coalesce(columns.visitor, F.lit(NO_VISITOR)).alias("visitor"),
        columns.action.alias("action"),
        "partition",
        "offset",
        heartbeat.alias("heartbeat"),
    )
    counted = parsed.observe(
        LINES,
        F.count_if(~F.col("heartbeat")).alias("read"),
        F.count_if(F.col("event_time").isNull() & ~F.col("heartbeat")).alias("not_understood"),
        F.count_if(F.col("heartbeat")).alias("heartbeats"),
    )
    timed = counted.where(F.col("event_time").isNotNull()).withWatermark("event_time", watermark)
    return timed.where(_is_event()).drop("heartbeat")


def _is_event() -> Column:
    """Drop heartbeats after they have advanced the watermark.

    The condition on the time is never true. It keeps the optimizer from moving this filter below the watermark, where
    heartbeats would be dropped too early.
    """
    from pyspark.sql import functions as F

    return F.col("page").isNotNull() | (F.col("event_time") < F.lit("0001-01-01").cast("timestamp"))


def page_counts(activity: DataFrame, window: str, slide: str | None) -> DataFrame:
    """(window_start, window_end, page, events): one row for each page of each window."""
    from pyspark.sql import functions as F

    grouped = activity.groupBy(F.window("event_time", window, slide), "page").agg(F.count("*").alias("events"))
    return grouped.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "page", "events"
    )


def top_pages(counts: DataFrame, top: int) -> DataFrame:
    """(window_start, window_end, rank, page, events): the pages with the most events of each window, ties by name.

    For bounded sets, and for one batch of closed windows: all rows of a window are in the same batch.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy("window_start", "window_end").orderBy(F.desc("events"), F.asc("page"))
    ranked = counts.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= top)
    return ranked.select("window_start", "window_end", "rank", "page", "events")


def sessions(activity: DataFrame, gap: str) -> DataFrame:
    """(visitor, session_start, session_end, events, pages, first_page, last_page): events without a gap of `gap`.

    `session_end` is the time of the last event, `pages` the number of different pages. Equal times are ordered by
    offset.
    """
    from pyspark.sql import functions as F

    order = F.struct("event_time", "partition", "offset")
    grouped = activity.groupBy("visitor", F.session_window("event_time", gap)).agg(
        F.max("event_time").alias("session_end"),
        F.count("*").alias("events"),
        F.size(F.collect_set("page")).cast("bigint").alias("pages"),
        F.min_by("page", order).alias("first_page"),
        F.max_by("page", order).alias("last_page"),
    )
    start = F.col("session_window.start").alias("session_start")
    return grouped.select("visitor", start, "session_end", "events", "pages", "first_page", "last_page")
