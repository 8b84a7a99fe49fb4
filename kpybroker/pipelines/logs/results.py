"""From events to requests across services, and to bursts of errors: the same over a stream and over a bounded set.

A request is the events of one correlation id without a silence of `gap`. State is kept until the watermark has passed
that silence, and grows with the events of the request: an id that is used without end is never written.
`as_correlation` leaves out what is known to be no id.

A burst is windows of a service with many errors, next to each other. A window has many errors where they are at least
`least`, and more than `factor` times the usual. The usual is the median of the `history` windows before, of those in
which the service wrote anything. So a state that lasts longer than half of the history is the usual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.pipelines.logs.formats import LEVELS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ERROR = tuple(LEVELS).index("ERROR")
SAMPLE_MAX = 500


def correlated(events: DataFrame, gap: str) -> DataFrame:
    """(correlation_id, first_time, last_time, services, events, errors, worst): one row for each request.

    `services` are in the order in which they were first seen; `worst` is the worst level, null if none is known.
    """
    from pyspark.sql import functions as F

    seen = F.sort_array(F.collect_list(F.struct("event_time", "partition", "offset", "service")))
    grouped = events.groupBy("correlation_id", F.session_window("event_time", gap)).agg(
        F.min("event_time").alias("first_time"),
        F.max("event_time").alias("last_time"),
        seen.alias("seen"),
        F.count("*").alias("events"),
        F.count_if(_is_error()).alias("errors"),
        F.max("severity").alias("worst"),
    )
    levels = F.array(*(F.lit(level) for level in LEVELS))
    return grouped.select(
        "correlation_id",
        "first_time",
        "last_time",
        F.array_distinct(F.col("seen")["service"]).alias("services"),
        "events",
        "errors",
        F.get(levels, F.col("worst")).alias("worst"),
    )


def _is_error() -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.col("severity") >= ERROR, F.lit(False))


def error_counts(events: DataFrame, window: str) -> DataFrame:
    """(window, service, errors, sample): windows in which a service wrote; `sample` is the first error's message."""
    from pyspark.sql import functions as F

    order = F.when(_is_error(), F.struct("event_time", "partition", "offset"))
    return events.groupBy(F.window("event_time", window), "service").agg(
        F.count_if(_is_error()).alias("errors"),
        F.substring(F.min_by("message", order), 1, SAMPLE_MAX).alias("sample"),
    )


def bursts(counts: DataFrame, window: str, window_s: int, history: int, least: int, factor: float) -> DataFrame:
    """(burst_start, burst_end, service, errors, windows, most, usual, sample) of `error_counts`.

    `most` is the errors of the worst window, `usual` what was usual before the first one.
    """
    from pyspark.sql import functions as F

    many = _with_many(_compared(counts, window, window_s, history), least, factor)
    first = F.col("window_start")
    grouped = many.groupBy("service", F.session_window("at", f"{window_s} seconds")).agg(
        F.min("window_start").alias("burst_start"),
        F.max("window_end").alias("burst_end"),
        F.sum("errors").alias("errors"),
        F.count("*").alias("windows"),
        F.max("errors").alias("most"),
        F.min_by("usual", first).alias("usual"),
        F.min_by("sample", first).alias("sample"),
    )
    return grouped.select("burst_start", "burst_end", "service", "errors", "windows", "most", "usual", "sample")


def _compared(counts: DataFrame, window: str, window_s: int, history: int) -> DataFrame:
    """(at, window_start, window_end, service, last, before): each window with the errors of those before it.

    `at` is in the window, and carries the watermark.
    """
    from pyspark.sql import functions as F

    stretch = F.window(F.window_time("window"), f"{window_s * (history + 1)} seconds", window)
    each = F.struct(F.col("window.start").alias("start"), "errors", "sample")
    grouped = counts.groupBy(stretch, "service").agg(F.collect_list(each).alias("seen"))
    last_start = F.col("window.end") - F.expr(f"interval {window_s} seconds")
    before = F.sort_array(F.filter("seen", lambda one: one["start"] < last_start)["errors"])
    return grouped.select(
        F.window_time("window").alias("at"),
        last_start.alias("window_start"),
        F.col("window.end").alias("window_end"),
        "service",
        F.get(F.filter("seen", lambda one: one["start"] == last_start), F.lit(0)).alias("last"),
        before.alias("before"),
    )


def _with_many(compared: DataFrame, least: int, factor: float) -> DataFrame:
    from pyspark.sql import functions as F

    # the lower one of two in the middle; nothing before is no errors before
    middle = F.get(F.col("before"), F.floor((F.size("before") - 1) / 2).cast("int"))
    usual = F.when(F.size("before") > 0, middle).otherwise(F.lit(0))
    judged = compared.where(F.col("last").isNotNull()).select(
        *("at", "window_start", "window_end", "service"),
        F.col("last.errors").alias("errors"),
        usual.cast("bigint").alias("usual"),
        F.col("last.sample").alias("sample"),
    )
    return judged.where((F.col("errors") >= least) & (F.col("errors") > F.col("usual") * factor))
