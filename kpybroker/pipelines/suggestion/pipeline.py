"""`Suggestion`: purchases to suggestions, for each product by what is bought with it, for each user by ALS.

`suggestions` is a stream: a basket closes with a silence of its lines, a window of baskets with the watermark, and
then each product in it gets its new suggestions. `user_suggestions` is made of a bounded set (`--run whole`). Both
topics are compacted: the last record of a product or a user counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime import avro
from kpybroker.pipelines.runtime.event_time import events, is_heartbeat, time_of
from kpybroker.pipelines.runtime.pipeline import Pipeline, Query
from kpybroker.pipelines.suggestion.als import Factors, for_users
from kpybroker.pipelines.suggestion.results import Ranking, for_products, pairs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SCHEMA = "time string, user string, basket string, order string, product string, quantity string"
CO_PURCHASES, ALS = "co-purchases", "als"
COLUMNS = ("event_time", "user", "basket", "product", "quantity")


@dataclass(frozen=True, slots=True)
class SuggestionOptions:
    """The help of the command line explains each. `whole`: the run is over a bounded set."""

    model: str = CO_PURCHASES
    window: str = "28 days"
    slide: str = "7 days"
    watermark: str = "1 hour"
    basket_gap: str = "30 minutes"
    basket_max: int = 100
    ranking: Ranking = field(default_factory=Ranking)
    factors: Factors = field(default_factory=Factors)
    schema_registry: str | None = None
    value_format: str = "json"
    whole: bool = False


class Suggestion(Pipeline[SuggestionOptions]):
    """The pipeline `suggestion`."""

    name = "suggestion"
    summary = "Products that are bought together, and products for each user, in compacted topics for a service."
    keys = {"suggestions": "product", "user_suggestions": "user"}
    compacted = frozenset(keys)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """See `SuggestionOptions`."""
        avro.add_arguments(parser)
        group = parser.add_argument_group("results")
        group.add_argument(
            "--model",
            default=CO_PURCHASES,
            choices=[CO_PURCHASES, ALS],
            help="co-purchases: suggestions for each product (default); als: for each user, needs --run whole",
        )
        group.add_argument("--top", default=10, type=is_a.positive, metavar="N", help="suggestions of each (10)")
        _co_purchases(parser.add_argument_group("co-purchases"))
        _als(parser.add_argument_group("als"))

    def own(self, values: Mapping[str, Any]) -> SuggestionOptions:
        """See `Pipeline`."""
        names = ("model", "window", "slide", "watermark", "basket_gap", "basket_max", "schema_registry", "value_format")
        top = values["top"]
        return SuggestionOptions(
            **{name: values[name] for name in names},
            ranking=Ranking(top, values["least"], values["shrink"]),
            factors=Factors(top, values["rank"], values["iterations"], values["alpha"], values["regularization"]),
            whole=values["run"] == "whole",
        )

    def contradictions(self, own: SuggestionOptions) -> Sequence[tuple[str, str]]:
        """See `Pipeline`."""
        found = list(avro.contradictions(own.value_format, own.schema_registry))
        if own.model == ALS and not own.whole:
            found.append(("ALS is computed over a bounded set, not over a stream.", "Give --run whole."))
        if is_a.seconds(own.window) % is_a.seconds(own.slide):
            found.append(("--window is not a multiple of --slide.", "Choose for example 28 days and 7 days."))
        return found

    def kept(self, own: SuggestionOptions) -> Mapping[str, object]:
        """See `Pipeline`. What is ranked, and how values are written, changes no state."""
        names = {"window": own.window, "slide": own.slide, "watermark": own.watermark, "basket-gap": own.basket_gap}
        return {**names, "basket-max": own.basket_max}

    def parse(self, records: DataFrame, own: SuggestionOptions) -> DataFrame:
        """A row: `event_time`, `user`, `basket`, `product`, `quantity`, and what every pipeline has."""
        from pyspark.sql import functions as F

        records = avro.as_text(records, own.schema_registry)
        heartbeat = is_heartbeat(records)
        text = F.col(avro.TEXT)
        line = F.from_json(text, SCHEMA)
        time = time_of(F.when(heartbeat, text).otherwise(line["time"]))
        basket = F.coalesce(line["basket"], line["order"])
        quantity = F.coalesce(line["quantity"], F.lit("1")).try_cast("double")
        return records.select(
            *("topic", "partition", "offset", "key", "value"),
            time.alias("event_time"),
            line["user"].alias("user"),
            basket.alias("basket"),
            line["product"].alias("product"),
            quantity.alias("quantity"),
            heartbeat.alias("heartbeat"),
            _reason(heartbeat, time, (line["user"], basket, line["product"]), quantity).alias("reason"),
        )

    def queries(self, rows: DataFrame, own: SuggestionOptions) -> Sequence[Query]:
        """One query: that of the model."""
        if own.model == ALS:
            bought = rows.where(~rows["heartbeat"]).select(*COLUMNS)
            return [Query("als", bought, lambda batch: {"user_suggestions": for_users(batch, own.factors)})]
        counted = pairs(
            events(rows, own.watermark).select(*COLUMNS), own.window, own.slide, own.basket_gap, own.basket_max
        )
        slide_s = is_a.seconds(own.slide) if own.whole else None
        return [
            Query("co-purchases", counted, lambda batch: {"suggestions": for_products(batch, own.ranking, slide_s)})
        ]


def _co_purchases(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--window", default="28 days", type=is_a.duration, help="of the baskets that count (28 days)")
    group.add_argument("--slide", default="7 days", type=is_a.duration, help="a new window begins each (7 days)")
    group.add_argument("--watermark", default="1 hour", type=is_a.duration, help="how late a line may be (1 hour)")
    text = "silence that closes a basket (30 minutes)"
    group.add_argument("--basket-gap", default="30 minutes", type=is_a.duration, help=text)
    text = "a basket of more products does not count (100)"
    group.add_argument("--basket-max", default=100, type=is_a.positive, metavar="N", help=text)
    text = "baskets that two products must share (2)"
    group.add_argument("--least", default=2, type=is_a.positive, metavar="N", help=text)
    text = "how many shared baskets halve the score (5)"
    group.add_argument("--shrink", default=5.0, type=is_a.positive_number, metavar="X", help=text)


def _als(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rank", default=16, type=is_a.positive, metavar="N", help="factors of users and products (16)")
    group.add_argument("--iterations", default=10, type=is_a.positive, metavar="N", help="of ALS (10)")
    text = "how much more a purchase counts than none (2)"
    group.add_argument("--alpha", default=2.0, type=is_a.positive_number, metavar="X", help=text)
    group.add_argument("--regularization", default=0.1, type=is_a.positive_number, metavar="X", help="of ALS (0.1)")


def _reason(heartbeat: Column, time: Column, names: tuple[Column, ...], quantity: Column) -> Column:
    from pyspark.sql import functions as F

    missing = F.lit(False)
    for name in names:
        missing = missing | name.isNull() | (name == "")
    counts = F.coalesce((quantity > 0) & (quantity < float("inf")) & ~F.isnan(quantity), F.lit(False))
    return (
        F.when(F.col(avro.UNREADABLE).isNotNull(), F.col(avro.UNREADABLE))
        .when(time.isNull(), F.lit("no time"))
        .when(heartbeat, F.lit(None))
        .when(missing, F.lit("no user, no basket or no product"))
        .when(~counts, F.lit("quantity is not a number above 0"))
    )


SUGGESTION = Suggestion()
