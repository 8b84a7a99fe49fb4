"""`Ledger`: entries of transfers to balances, which are nowhere but in the entries.

A transfer is two entries or more, written in one Kafka transaction, whose amounts sum to zero. What is committed is
read, so a transfer that was aborted, or whose producer died, never happened. Amounts are whole numbers of the smallest
unit, so sums are exact.

`balances` has the new balance of each account that a batch changed: in a topic the last one of each key counts (such a
topic is best compacted), in files that of the highest batch. `violations` has each transfer whose entries do not sum
to zero, once it is certain that no more of them come: when the watermark has passed its time.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.event_time import events, is_heartbeat, time_of
from kpybroker.pipelines.runtime.pipeline import Pipeline, Query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SCHEMA = "time string, transfer string, account string, amount string"
SUMMED = "decimal(18,0)"
"""What amounts are summed as: a sum of bigint that is too large would end the run for good."""


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """The help of the command line explains each."""

    watermark: str = "10 minutes"


class Ledger(Pipeline[LedgerOptions]):
    """The pipeline `ledger`."""

    name = "ledger"
    summary = "Balances of accounts, rebuilt from the entries of transfers; transfers that do not sum to zero."
    keys = {"balances": "account", "violations": "transfer"}
    source = {"kafka.isolation.level": "read_committed"}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """See `LedgerOptions`."""
        group = parser.add_argument_group("results")
        text = "how late an entry may be to be compared with the others of its transfer (10 minutes); balances have all"
        group.add_argument("--watermark", default="10 minutes", type=is_a.duration, help=text)

    def own(self, values: Mapping[str, Any]) -> LedgerOptions:
        """See `Pipeline`."""
        return LedgerOptions(values["watermark"])

    def kept(self, own: LedgerOptions) -> Mapping[str, object]:
        """See `Pipeline`."""
        return {"watermark": own.watermark}

    def parse(self, records: DataFrame, own: LedgerOptions) -> DataFrame:
        """A row: `event_time`, `transfer`, `account`, `amount`, and what every pipeline has."""
        from pyspark.sql import functions as F

        text = records["value"].cast("string")
        heartbeat = is_heartbeat(records)
        entry = F.from_json(text, SCHEMA)
        time = time_of(F.when(heartbeat, text).otherwise(entry["time"]))
        # a decimal point or an exponent would be rounded by a cast
        amount = F.when(entry["amount"].rlike(r"^-?\d{1,18}$"), entry["amount"].try_cast("bigint"))
        return records.select(
            *("topic", "partition", "offset", "key", "value"),
            time.alias("event_time"),
            entry["transfer"].alias("transfer"),
            entry["account"].alias("account"),
            amount.alias("amount"),
            heartbeat.alias("heartbeat"),
            _reason(heartbeat, time, entry, amount).alias("reason"),
        )

    def queries(self, rows: DataFrame, own: LedgerOptions) -> Sequence[Query]:
        """Balances as they change, and transfers once they are complete."""
        from pyspark.sql import functions as F

        total = F.sum(F.col("amount").cast(SUMMED))
        entries = rows.where(~rows["heartbeat"])
        balances = entries.groupBy("account").agg(
            total.alias("balance"), F.count("*").alias("entries"), F.max("event_time").alias("last_entry")
        )
        transfers = events(rows, own.watermark).groupBy("event_time", "transfer")
        sums = transfers.agg(total.alias("sum"), F.count("*").alias("entries"))
        wrong = sums.where(F.col("sum") != 0).select("transfer", "event_time", "sum", "entries")
        return [
            Query("balances", balances, lambda batch: {"balances": batch}, "update"),
            Query("violations", wrong, lambda batch: {"violations": batch}),
        ]


def _reason(heartbeat: Column, time: Column, entry: Column, amount: Column) -> Column:
    from pyspark.sql import functions as F

    return (
        F.when(time.isNull(), F.lit("no time"))
        .when(heartbeat, F.lit(None))
        .when(entry["transfer"].isNull() | entry["account"].isNull(), F.lit("no transfer or no account"))
        .when(amount.isNull(), F.lit("amount is not a whole number of at most 18 digits"))
    )


LEDGER = Ledger()
