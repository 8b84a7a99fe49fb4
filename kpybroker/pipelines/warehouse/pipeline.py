"""`Warehouse`: lines of orders to facts by the hour in which they happened, and sums of each hour.

A fact is identified by its record: topic, partition and offset. A line that comes late goes to the hour in which it
happened, however long ago that is, and the sums of that hour are written again. So nothing is ever too late, there is
no watermark, and the state is one row for each hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.event_time import is_heartbeat, time_of, usual
from kpybroker.pipelines.runtime.outputs import PLACE
from kpybroker.pipelines.runtime.pipeline import ByHour, Pipeline, Query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SCHEMA = "id string, time string, customer string, country string, product string, quantity string, price string"
TEXTS = ("id", "customer", "country", "product")
FACT = ("event_time", *TEXTS, "quantity", "amount", "arrived", *PLACE)
AHEAD = "1 hour"
HOUR_S = 3600
SUMMED = "decimal(18,0)"
"""What amounts are summed as: a sum of bigint that is too large would end the run for good."""


@dataclass(frozen=True, slots=True)
class WarehouseOptions:
    """The help of the command line explains each."""

    late_after: str = "10 minutes"


class Warehouse(Pipeline[WarehouseOptions]):
    """The pipeline `warehouse`."""

    name = "warehouse"
    summary = "Lines of orders as facts by hour, in Parquet and PostgreSQL; sums of each hour, corrected by late lines."
    keys = {"facts": "id", "hours": "hour"}
    by_hour = {"facts": ByHour("event_time", ("event_time",))}
    tables = {"facts": PLACE, "hours": ("hour",)}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """See `WarehouseOptions`."""
        group = parser.add_argument_group("results")
        text = "a line that arrives so long after the end of its hour is counted as late (10 minutes); none is dropped"
        group.add_argument("--late-after", default="10 minutes", type=is_a.duration, help=text)

    def own(self, values: Mapping[str, Any]) -> WarehouseOptions:
        """See `Pipeline`."""
        return WarehouseOptions(values["late_after"])

    def kept(self, own: WarehouseOptions) -> Mapping[str, object]:
        """See `Pipeline`."""
        return {"late-after": own.late_after}

    def parse(self, records: DataFrame, own: WarehouseOptions) -> DataFrame:
        """A row: the columns of `FACT`, and what every pipeline has. `amount` is in the smallest unit of money."""
        from pyspark.sql import functions as F

        text = records["value"].cast("string")
        heartbeat = is_heartbeat(records)
        line = F.from_json(text, SCHEMA)
        time = time_of(line["time"])
        arrived = usual(records["timestamp"])
        quantity, price = _whole(line["quantity"], 6), _whole(line["price"], 12)
        return records.select(
            *(*PLACE, "key", "value"),
            time.alias("event_time"),
            *(line[name].alias(name) for name in TEXTS),
            quantity.alias("quantity"),
            (quantity * price).alias("amount"),
            arrived.alias("arrived"),
            heartbeat.alias("heartbeat"),
            _reason(heartbeat, time, line, quantity, price, arrived).alias("reason"),
        )

    def queries(self, rows: DataFrame, own: WarehouseOptions) -> Sequence[Query]:
        """Facts, which have no state; and the sums of hours as they change."""
        from pyspark.sql import functions as F

        facts = rows.where(~rows["heartbeat"]).select(*FACT)
        hour = F.floor(F.unix_seconds("event_time") / HOUR_S) * HOUR_S
        closed = hour + HOUR_S + is_a.seconds(own.late_after)
        hours = facts.groupBy(F.timestamp_seconds(hour).alias("hour")).agg(
            F.count("*").alias("lines"),
            F.sum("quantity").alias("quantity"),
            F.sum(F.col("amount").cast(SUMMED)).alias("amount"),
            F.count_if(F.unix_seconds("arrived") >= closed).alias("late"),
            F.max("arrived").alias("newest"),
        )
        return [
            Query("facts", facts, lambda batch: {"facts": batch}),
            Query("hours", hours, lambda batch: {"hours": batch}, "update"),
        ]


def _whole(column: Column, digits: int) -> Column:
    """A whole number of so many digits; null for all else, which a cast would round."""
    from pyspark.sql import functions as F

    return F.when(column.rlike(rf"^-?\d{{1,{digits}}}$"), column.try_cast("bigint"))


def _reason(heartbeat: Column, time: Column, line: Column, quantity: Column, price: Column, arrived: Column) -> Column:
    from pyspark.sql import functions as F

    missing = [line[name].isNull() for name in TEXTS]
    return (
        F.when(heartbeat, F.lit(None))
        .when(time.isNull(), F.lit("no time"))
        .when(time > arrived + F.expr(f"interval {AHEAD}"), F.lit(f"dated more than {AHEAD} after its record"))
        .when(F.array_contains(F.array(*missing), True), F.lit(f"one of {', '.join(TEXTS)} is missing"))
        .when(quantity.isNull(), F.lit("quantity is not a whole number of at most 6 digits"))
        .when(price.isNull(), F.lit("price is not a whole number of at most 12 digits"))
    )


WAREHOUSE = Warehouse()
