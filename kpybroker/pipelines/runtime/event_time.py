"""Event time: watermarks, and heartbeats, which advance it without being events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEARTBEAT_KEY = "heartbeat"
EVENT_TIME, HEARTBEAT = "event_time", "heartbeat"


def is_heartbeat(records: DataFrame) -> Column:
    """Whether a record is a heartbeat: its key is `heartbeat`, its value an ISO 8601 time."""
    from pyspark.sql import functions as F

    return F.coalesce(records["key"].cast("string") == HEARTBEAT_KEY, F.lit(False))


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
