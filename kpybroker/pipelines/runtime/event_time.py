"""Event time: watermarks, and heartbeats, which advance it without being events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEARTBEAT_KEY = "heartbeat"
EVENT_TIME, HEARTBEAT = "event_time", "heartbeat"
FIRST, LAST = "0001-01-02T00:00:00Z", "9999-12-31T00:00:00Z"
"""Times that Spark's arithmetic, Python and PostgreSQL all have, in any time zone."""


def is_heartbeat(records: DataFrame) -> Column:
    """Whether a record is a heartbeat: its key is `heartbeat`, its value an ISO 8601 time."""
    from pyspark.sql import functions as F

    return F.coalesce(records["key"].cast("string") == HEARTBEAT_KEY, F.lit(False))


def time_of(text: Column) -> Column:
    """The time of an ISO 8601 text; null for a text that is none, and for a time that is not `usual`."""
    return usual(text.try_cast("timestamp"))


def usual(time: Column) -> Column:
    """The time if it is between `FIRST` and `LAST`, else null.

    Spark reads years up to 294247, and one such record would end the run for good: windows and intervals overflow, and
    Python has no such time.
    """
    from pyspark.sql import functions as F

    first, last = (F.lit(limit).cast("timestamp") for limit in (FIRST, LAST))
    return F.when((time >= first) & (time < last), time)


def events(rows: DataFrame, watermark: str) -> DataFrame:
    """Rows (`event_time`, `heartbeat`, ...) as a stream with a watermark, without the heartbeats that advanced it."""
    from pyspark.sql import functions as F

    return rows.withWatermark(EVENT_TIME, watermark).where(after_watermark(~F.col(HEARTBEAT))).drop(HEARTBEAT)


def after_watermark(condition: Column) -> Column:
    """A filter of `events` that heartbeats do not pass.

    The condition on the time is never true. It keeps the optimizer from moving the filter below the watermark, where
    heartbeats would be dropped before they advance it.
    """
    from pyspark.sql import functions as F

    return condition | (F.col(EVENT_TIME) < F.lit("0001-01-01").cast("timestamp"))
