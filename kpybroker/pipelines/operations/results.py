"""From samples to values per window, and from those to alerts: the same over a stream and over a bounded set.

A series is a host and a name. Its value in a window is the average of a gauge, and the rate of a counter: what it
grew between the samples of the window, a second. A counter that falls was started again, and counts from 0. A counter
with one sample in a window has no rate there.

An alert compares the last window with those before it (`history` windows): more than `threshold` standard deviations
away is `high` or `low`. A deviation below a hundredth of the average counts as that, so that a series that never
changes does not make an alert of a rounding. A series that had a value in each window before, and none in the last, is
`silent`. With fewer than `LEAST` values there is nothing to compare with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEAST = 5
SMALLEST_DEVIATION = 0.01
COUNTER = "counter"


def values(samples: DataFrame, window: str) -> DataFrame:
    """(window, host, name, kind, samples, least, most, value): one row for each series and window.

    `samples` has `event_time`, `host`, `name`, `kind` (`gauge`, `counter`) and `value`.
    """
    from pyspark.sql import functions as F

    ordered = F.sort_array(F.collect_list(F.struct("event_time", "value")))
    grouped = samples.groupBy(F.window("event_time", window), "host", "name", "kind").agg(
        F.count("*").alias("samples"),
        F.min("value").alias("least"),
        F.max("value").alias("most"),
        F.avg("value").alias("average"),
        ordered.alias("ordered"),
    )
    value = F.when(F.col("kind") == COUNTER, _rate(F.col("ordered"))).otherwise(F.col("average"))
    return grouped.select("window", "host", "name", "kind", "samples", "least", "most", value.alias("value"))


def _rate(ordered: Column) -> Column:
    """What a counter grew a second, null with fewer than two samples or no time between them."""
    from pyspark.sql import functions as F

    steps = F.size(ordered) - 1
    grown = F.zip_with(
        F.slice(ordered, 1, steps),
        F.slice(ordered, 2, steps),
        lambda before, now: F.when(now["value"] >= before["value"], now["value"] - before["value"]).otherwise(
            now["value"]
        ),
    )
    total = F.aggregate(grown, F.lit(0.0), lambda sum_, step: sum_ + step)
    first, last = F.element_at(ordered, 1)["event_time"], F.element_at(ordered, -1)["event_time"]
    took_s = (F.unix_micros(last) - F.unix_micros(first)) / 1e6
    return F.when(took_s > 0, total / took_s)


def value_rows(found: DataFrame) -> DataFrame:
    """The columns of the result `values`."""
    start, end = "window.start as window_start", "window.end as window_end"
    return found.selectExpr(start, end, "host", "name", "kind", "samples", "least", "most", "value")


def alerts(found: DataFrame, window: str, window_s: int, history: int, threshold: float) -> DataFrame:
    """(window_start, window_end, host, name, state, value, expected, deviation) of `values` as a stream.

    `state` is `high`, `low` or `silent`; `deviation` is that of the windows before.
    """
    from pyspark.sql import functions as F

    stretch = F.window(F.window_time("window"), f"{window_s * (history + 1)} seconds", window)
    with_value = found.where(F.col("value").isNotNull())
    grouped = with_value.groupBy(stretch, "host", "name").agg(
        F.collect_list(F.struct(F.col("window.start").alias("start"), "value")).alias("seen")
    )
    last_start = F.col("window.end") - F.expr(f"interval {window_s} seconds")
    before = F.transform(
        F.sort_array(F.filter("seen", lambda one: one["start"] < last_start)), lambda one: one["value"]
    )
    last = F.element_at(F.filter("seen", lambda one: one["start"] == last_start), 1)["value"]
    compared = grouped.select(
        last_start.alias("window_start"),
        F.col("window.end").alias("window_end"),
        "host",
        "name",
        F.when(F.exists("seen", lambda one: one["start"] == last_start), last).alias("value"),
        before.alias("before"),
    )
    count = F.size("before")
    average = F.aggregate("before", F.lit(0.0), lambda sum_, one: sum_ + one) / count
    squares = F.aggregate("before", F.lit(0.0), lambda sum_, one: sum_ + (one - F.col("expected")) ** 2)
    judged = compared.where(count >= LEAST).withColumn("expected", average)
    judged = judged.withColumn(
        "deviation", F.greatest(F.sqrt(squares / count), F.abs("expected") * F.lit(SMALLEST_DEVIATION))
    )
    away = F.col("value") - F.col("expected")
    state = (
        F.when(F.col("value").isNull() & (count == history), F.lit("silent"))
        .when(away > F.col("deviation") * threshold, F.lit("high"))
        .when(-away > F.col("deviation") * threshold, F.lit("low"))
    )
    found_states = judged.withColumn("state", state).where(F.col("state").isNotNull())
    return found_states.select("window_start", "window_end", "host", "name", "state", "value", "expected", "deviation")
