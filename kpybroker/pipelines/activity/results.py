"""From events to results: the same functions over a stream and over a bounded set.

A result is final: a window or a session is written once, when the watermark has passed its end (append mode). The
watermark is the newest event time of the batches before, less the allowed lateness; an event whose window or session
has ended by then is late and is dropped.

Times are not checked: a line dated in the future moves the watermark there, and older lines are then late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
