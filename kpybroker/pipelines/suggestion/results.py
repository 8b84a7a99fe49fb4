"""Lines of purchases to baskets, baskets to counts of pairs, counts to suggestions: over a stream or a bounded set.

A basket is the lines of one user and one basket id without a silence longer than the gap. It belongs to the windows in
which it ends, which is its last line plus the gap. A window slides: with 28 days and 7 days a basket counts in four of
them. Every pair of products in a basket is counted, in both directions, and each product with itself, which is the
number of its baskets.

The score of B for A is the cosine of their baskets, `both / sqrt(a * b)`, times `both / (both + shrink)`, so that two
baskets that agree by chance do not win over a hundred that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCORE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Ranking:
    """`top` suggestions for each product, of those with `least` baskets in common; `shrink` is in baskets."""

    top: int = 10
    least: int = 2
    shrink: float = 5.0


def pairs(lines: DataFrame, window: str, slide: str, basket_gap: str, basket_max: int) -> DataFrame:
    """(window, product, other, baskets) of lines with `event_time`, `user`, `basket`, `product`.

    A basket of more than `basket_max` products does not count: it is a shop's or a robot's, and has the square of its
    size in pairs.
    """
    from pyspark.sql import functions as F

    baskets = lines.groupBy(F.session_window("event_time", basket_gap), "user", "basket").agg(
        F.collect_set("product").alias("products")
    )
    counted = baskets.where(F.size("products") <= basket_max).select("session_window", "products")
    products = counted.select("session_window", "products", F.explode("products").alias("product"))
    both = products.select("session_window", "product", F.explode("products").alias("other"))
    # the end of a basket, by which Spark knows the watermark of what follows
    windows = F.window(F.window_time("session_window"), window, slide)
    return both.groupBy(windows, "product", "other").agg(F.count("*").alias("baskets"))


def for_products(counted: DataFrame, ranking: Ranking, slide_s: int | None = None) -> DataFrame:
    """(product, window_start, window_end, baskets, suggestions) of whole windows of `pairs`.

    `suggestions` are at most `top` of (product, baskets, score), the best first. Where several windows have closed at
    once, a product has the newest of those in which it was bought with another.

    Windows that are not over have only a part of their baskets. A bounded set has them too; `slide_s` is given there,
    and windows that end more than that after the start of the last one are left out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if slide_s is not None:
        counted = _without_unfinished(counted, slide_s)
    alone = counted.where(F.col("product") == F.col("other")).select("window", "product", "baskets")
    of_other = alone.select("window", F.col("product").alias("other"), F.col("baskets").alias("b"))
    both = counted.where((F.col("product") != F.col("other")) & (F.col("baskets") >= ranking.least))
    joined = (
        both.withColumnRenamed("baskets", "both").join(alone, ["window", "product"]).join(of_other, ["window", "other"])
    )
    cosine = F.col("both") / F.sqrt(F.col("baskets") * F.col("b"))
    score = F.round(cosine * F.col("both") / (F.col("both") + ranking.shrink), SCORE_DIGITS)
    best = Window.partitionBy("product", "window").orderBy(F.desc("score"), F.asc("other"))
    newest = Window.partitionBy("product").orderBy(F.desc("window.end"))
    ranked = (
        joined.withColumn("score", score)
        .withColumn("age", F.dense_rank().over(newest))
        .withColumn("rank", F.row_number().over(best))
        .where((F.col("age") == 1) & (F.col("rank") <= ranking.top))
    )
    one = F.struct(
        "rank", F.struct(F.col("other").alias("product"), F.col("both").alias("baskets"), "score").alias("one")
    )
    listed = ranked.groupBy("product", "window", "baskets").agg(F.sort_array(F.collect_list(one)).alias("list"))
    return listed.select(
        "product",
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "baskets",
        F.transform("list", lambda each: each["one"]).alias("suggestions"),
    )


def _without_unfinished(counted: DataFrame, slide_s: int) -> DataFrame:
    from pyspark.sql import functions as F

    last = counted.agg(F.max("window.start").alias("last_start"))
    over = F.col("window.end") <= F.col("last_start") + F.expr(f"interval {slide_s} seconds")
    return counted.join(F.broadcast(last)).where(over).drop("last_start")
