"""`Logs`: lines of brokers and services to events by hour, requests across services, and bursts of errors."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.logs.formats import as_correlation, as_level, as_time, fields, once, severity, understood
from kpybroker.pipelines.logs.results import bursts, correlated, error_counts
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.event_time import after_watermark, events, is_heartbeat, usual
from kpybroker.pipelines.runtime.pipeline import ByHour, Pipeline, Query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEADERS = ("service", "host", "file")
"""What a record's headers may say. The line's own service and host count where a header is missing."""
AHEAD = "1 hour"
EVENT = ("event_time", "host", "service", "level", "logger", "message", "details", "correlation_id", "format", "file")
PLACE = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class LogsOptions:
    """What is computed; the help of the command line explains each."""

    watermark: str = "2 minutes"
    correlation_gap: str = "1 minute"
    window: str = "1 minute"
    history: int = 20
    burst_errors: int = 10
    burst_factor: float = 3.0


class Logs(Pipeline[LogsOptions]):
    """The pipeline `logs`."""

    name = "logs"
    summary = "Lines of brokers and services: parsed, stored by hour, correlated across services; bursts of errors."
    keys = {"events": "service", "correlated": "correlation_id", "bursts": "service"}
    source = {"includeHeaders": "true"}
    by_hour = {"events": ByHour("event_time", ("service", "event_time"))}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What belongs together, and what a burst is."""
        group = parser.add_argument_group("results")
        late = "how late a line may be for requests and bursts (2 minutes); events have all lines"
        group.add_argument("--watermark", default="2 minutes", type=is_a.duration, help=late)
        group.add_argument(
            "--correlation-gap", default="1 minute", type=is_a.duration, help="silence that ends a request (1 minute)"
        )
        group.add_argument("--window", default="1 minute", type=is_a.duration, help="that errors are counted in")
        group.add_argument(
            "--history", default=20, type=is_a.positive, metavar="N", help="windows whose median is the usual (20)"
        )
        group.add_argument(
            "--burst-errors", default=10, type=is_a.positive, metavar="N", help="the least errors of a window (10)"
        )
        group.add_argument(
            "--burst-factor",
            default=3.0,
            type=is_a.positive_number,
            metavar="X",
            help="a window of a burst has more than X times the usual errors (3)",
        )

    def own(self, values: Mapping[str, Any]) -> LogsOptions:
        """See `Pipeline`."""
        return LogsOptions(**{name: values[name] for name in LogsOptions.__dataclass_fields__})

    def kept(self, own: LogsOptions) -> Mapping[str, object]:
        """See `Pipeline`. What a burst is changes no state."""
        return {
            "watermark": own.watermark,
            "correlation-gap": own.correlation_gap,
            "window": own.window,
            "history": own.history,
        }

    def parse(self, records: DataFrame, own: LogsOptions) -> DataFrame:
        """A row: `EVENT`, `severity`, and what every pipeline has."""
        from pyspark.sql import functions as F

        records = records.withColumn("text", F.rtrim(F.make_valid_utf8(records["value"].cast("string"))))
        records = records.withColumn("fields", once(fields(F.col("text"))))
        records = records.withColumn("line", once(understood(F.col("text"), F.col("fields"))))
        line, heartbeat = F.col("line"), is_heartbeat(records)
        time = F.when(line["format"] == "python-basic", F.col("timestamp")).otherwise(as_time(line["time"]))
        parsed = records.select(
            *PLACE,
            *("key", "value", "timestamp", "text"),
            heartbeat.alias("heartbeat"),
            usual(F.when(heartbeat, F.col("text").try_cast("timestamp")).otherwise(time)).alias("event_time"),
            F.coalesce(_header("service"), line["service"]).alias("service"),
            F.coalesce(_header("host"), line["host"]).alias("host"),
            _header("file").alias("file"),
            as_level(line["level"]).alias("level"),
            as_correlation(line["correlation_id"]).alias("correlation_id"),
            *(line[name].alias(name) for name in ("logger", "message", "details", "format")),
        )
        columns = (*PLACE, "key", "value", "heartbeat", *EVENT)
        row = F.struct(*columns, severity(F.col("level")).alias("severity"), _reason())
        return parsed.select(once(row).alias("row")).select("row.*")

    def queries(self, rows: DataFrame, own: LogsOptions) -> Sequence[Query]:
        """Events, which have no state and are never late; requests; and bursts, which are a third step of windows."""
        from pyspark.sql import functions as F

        timely = events(rows, own.watermark).select(*PLACE, *EVENT, "severity")
        requests = timely.where(after_watermark(F.col("correlation_id").isNotNull()))
        counts = error_counts(timely, own.window)
        window_s = is_a.seconds(own.window)
        found = bursts(counts, own.window, window_s, own.history, own.burst_errors, own.burst_factor)
        return [
            Query("events", rows.where(~rows["heartbeat"]).select(*EVENT, *PLACE), lambda batch: {"events": batch}),
            Query("correlated", correlated(requests, own.correlation_gap), lambda batch: {"correlated": batch}),
            Query("bursts", found, lambda batch: {"bursts": batch}),
        ]


def _header(name: str) -> Column:
    """The first header of that name as text; null where there is none, or an empty one."""
    from pyspark.sql import functions as F

    value = F.get(F.filter("headers", lambda one: one["key"] == name), F.lit(0))["value"]
    text = F.make_valid_utf8(value.cast("string"))
    return F.when(text != "", text)


def _reason() -> Column:
    from pyspark.sql import functions as F

    time, latest = F.col("event_time"), usual(F.col("timestamp")) + F.expr(f"interval {AHEAD}")
    return (
        F.when(F.col("heartbeat") & time.isNull(), F.lit("the value of a heartbeat is not a time"))
        .when(F.col("heartbeat"), F.lit(None))
        .when(F.coalesce(F.trim("text"), F.lit("")) == "", F.lit("empty"))
        .when(F.col("format").isNull(), F.lit("in no known format"))
        .when(time.isNull(), F.lit("no time, or one that is none"))
        .when(F.col("service").isNull(), F.lit("no service: neither a header nor the line names one"))
        .when(time > latest, F.lit(f"dated more than {AHEAD} after its record"))
    ).alias("reason")


LOGS = Logs()
