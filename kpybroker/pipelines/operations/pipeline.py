"""`Operations`: samples of machines and services to values per window, rates, and alerts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.operations.results import alerts, value_rows, values
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.event_time import events, is_heartbeat, time_of
from kpybroker.pipelines.runtime.pipeline import Pipeline, Query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SCHEMA = "time string, host string, name string, kind string, value double"
KINDS = ("gauge", "counter")


@dataclass(frozen=True, slots=True)
class OperationsOptions:
    """What is computed; the help of the command line explains each."""

    window: str = "1 minute"
    watermark: str = "1 minute"
    history: int = 10
    threshold: float = 4.0


class Operations(Pipeline[OperationsOptions]):
    """The pipeline `operations`."""

    name = "operations"
    summary = "Values per window, rates of counters, and alerts where a series leaves its usual range or falls silent."
    keys = {"values": "name", "alerts": "name"}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Windows, and what an alert is."""
        group = parser.add_argument_group("results")
        group.add_argument("--window", default="1 minute", type=is_a.duration, help="of the values (1 minute)")
        group.add_argument("--watermark", default="1 minute", type=is_a.duration, help="how late a sample may be")
        group.add_argument(
            "--history", default=10, type=is_a.positive, metavar="N", help="windows that an alert compares with (10)"
        )
        group.add_argument(
            "--threshold",
            default=4.0,
            type=is_a.positive_number,
            metavar="X",
            help="standard deviations that a usual value may be away from the average (4)",
        )

    def own(self, values: Mapping[str, Any]) -> OperationsOptions:
        """See `Pipeline`."""
        names = ("window", "watermark", "history", "threshold")
        return OperationsOptions(**{name: values[name] for name in names})

    def kept(self, own: OperationsOptions) -> Mapping[str, object]:
        """See `Pipeline`. Another threshold changes no state."""
        return {name: value for name, value in asdict(own).items() if name != "threshold"}

    def parse(self, records: DataFrame, own: OperationsOptions) -> DataFrame:
        """A row: `event_time`, `host`, `name`, `kind`, `number`, and what every pipeline has."""
        from pyspark.sql import functions as F

        text = records["value"].cast("string")
        heartbeat = is_heartbeat(records)
        sample = F.from_json(text, SCHEMA)
        time = time_of(F.when(heartbeat, text).otherwise(sample["time"]))
        return records.select(
            *("topic", "partition", "offset", "key", "value"),
            time.alias("event_time"),
            *(sample[name].alias(name) for name in ("host", "name", "kind")),
            sample["value"].alias("number"),
            heartbeat.alias("heartbeat"),
            _reason(heartbeat, time, sample).alias("reason"),
        )

    def queries(self, rows: DataFrame, own: OperationsOptions) -> Sequence[Query]:
        """Values, and alerts, which are a second step over the values."""
        samples = events(rows, own.watermark).select(
            "event_time", "host", "name", "kind", rows["number"].alias("value")
        )
        found = values(samples, own.window)
        raised = alerts(found, own.window, is_a.seconds(own.window), own.history, own.threshold)
        return [
            Query("values", value_rows(found), lambda batch: {"values": batch}),
            Query("alerts", raised, lambda batch: {"alerts": batch}),
        ]


def _reason(heartbeat: Column, time: Column, sample: Column) -> Column:
    from pyspark.sql import functions as F

    finite = sample["value"].isNotNull() & ~F.isnan(sample["value"]) & (F.abs(sample["value"]) < float("inf"))
    named = sample["host"].isNotNull() & sample["name"].isNotNull()
    return (
        F.when(time.isNull(), F.lit("no time"))
        .when(heartbeat, F.lit(None))
        .when(~named, F.lit("no host or no name"))
        .when(~F.coalesce(sample["kind"].isin(*KINDS), F.lit(False)), F.lit(f"kind is none of {', '.join(KINDS)}"))
        .when(~finite, F.lit("value is not a finite number"))
    )


OPERATIONS = Operations()
