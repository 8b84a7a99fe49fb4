"""From events to results: the same functions over a stream and over a bounded set.

A result is final: a window or a session is written once, when the watermark has passed its end (append mode). The
watermark is the newest event time of the batches before, less the allowed lateness; an event whose window or session
has ended by then is late and is dropped.

Times are not checked: a line dated in the future moves the watermark there, and older lines are then late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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


def bots(activity: DataFrame, window: str) -> DataFrame:
    """(window_start, window_end, agent, events): what programs that name themselves as such have read."""
    from pyspark.sql import functions as F

    grouped = activity.groupBy(F.window("event_time", window), "agent").agg(F.count("*").alias("events"))
    return grouped.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "agent", "events"
    )


def sessions(activity: DataFrame, gap: str, funnel: Sequence[str] = ()) -> DataFrame:
    """(session_window, visitor, session_start, session_end, events, pages, first_page, last_page, reached).

    A session is events without a gap of `gap`. `session_end` is the time of the last event, `pages` the number of
    different pages, `reached` the number of steps of the funnel that were seen in order. Equal times are ordered by
    offset.
    """
    from pyspark.sql import functions as F

    order = F.struct("event_time", "partition", "offset")
    visit = F.sort_array(F.collect_list(F.struct("event_time", "partition", "offset", "page")))
    grouped = activity.groupBy("visitor", F.session_window("event_time", gap)).agg(
        F.max("event_time").alias("session_end"),
        F.count("*").alias("events"),
        F.size(F.collect_set("page")).cast("bigint").alias("pages"),
        F.min_by("page", order).alias("first_page"),
        F.max_by("page", order).alias("last_page"),
        *([visit["page"].alias("visit")] if funnel else []),
    )
    start = F.col("session_window.start").alias("session_start")
    columns = ("visitor", start, "session_end", "events", "pages", "first_page", "last_page")
    reached = [_reached(F.col("visit"), funnel).alias("reached")] if funnel else []
    return grouped.select("session_window", *columns, *reached)


def _reached(visit: Column, funnel: Sequence[str]) -> Column:
    """How many steps the pages of a visit have in order, other pages between them or not."""
    from pyspark.sql import functions as F

    def next_step(done: Column, page: Column) -> Column:
        steps = F.when(F.lit(False), done)
        for number, step in enumerate(funnel):
            found = page.startswith(step[:-1]) if step.endswith("*") else page == F.lit(step)
            steps = steps.when((done == number) & found, F.lit(number + 1))
        return steps.otherwise(done)

    return F.aggregate(visit, F.lit(0), next_step)


def funnels(found: DataFrame, window: str, funnel: Sequence[str]) -> DataFrame:
    """(window_start, window_end, step, page, sessions): the sessions that ended in a window and came to each step.

    `found` is `sessions` as a stream; a session ends with the gap after its last event.
    """
    from pyspark.sql import functions as F

    steps = F.array(*(F.struct(F.lit(n).alias("step"), F.lit(page).alias("page")) for n, page in enumerate(funnel, 1)))
    each = found.select("session_window", F.explode(F.slice(steps, 1, F.col("reached"))).alias("at"))
    grouped = each.groupBy(F.window(F.window_time("session_window"), window), "at").agg(F.count("*").alias("sessions"))
    start, end = F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")
    return grouped.select(start, end, "at.step", "at.page", "sessions")
