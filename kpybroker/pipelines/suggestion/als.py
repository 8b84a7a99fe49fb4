"""Products for each user by ALS: alternating least squares on who bought what, for feedback that is implicit.

How much a user wants a product is not known, only how much of it was bought. So each pair of a user and a product is
wanted or not, and the logarithm of the quantity says how certain that is (Hu, Koren, Volinsky: Collaborative Filtering
for Implicit Feedback Datasets). What a user has bought already is not suggested.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = 1
CHECKPOINT_INTERVAL = 2
"""Iterations between two checkpoints."""
BOUGHT_MAX = 500
"""Of the best products for a user, so many may be left out as bought; a user who has bought more gets fewer."""
SCORE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Factors:
    """`top` suggestions for each user; the others are parameters of ALS."""

    top: int = 10
    rank: int = 16
    iterations: int = 10
    alpha: float = 2.0
    regularization: float = 0.1


def for_users(lines: DataFrame, factors: Factors) -> DataFrame:
    """(user, products, suggestions) of lines with `user`, `product`, `quantity`.

    `products` is how many different ones the user has bought; `suggestions` are at most `top` of (product, score).
    """
    from pyspark.ml.recommendation import ALS
    from pyspark.sql import functions as F

    bought = lines.groupBy("user", "product").agg(F.log2(F.sum("quantity") + 1).alias("rating"))
    users, products = _numbered(bought, "user"), _numbered(bought, "product")
    ratings = bought.join(users, "user").join(products, "product").persist()
    try:
        most = ratings.groupBy("user_id").count().agg(F.max("count")).first()
        if most is None or most[0] is None:
            return lines.sparkSession.createDataFrame([], RESULT)
        blocks = lines.sparkSession.sparkContext.defaultParallelism
        als = ALS(
            checkpointInterval=CHECKPOINT_INTERVAL,
            rank=factors.rank,
            maxIter=factors.iterations,
            regParam=factors.regularization,
            alpha=factors.alpha,
            implicitPrefs=True,
            seed=SEED,
            numUserBlocks=blocks,
            numItemBlocks=blocks,
            userCol="user_id",
            itemCol="product_id",
            ratingCol="rating",
        )
        with _place_for_checkpoints(lines.sparkSession):
            found = als.fit(ratings).recommendForAllUsers(factors.top + min(most[0], BOUGHT_MAX))
            return _listed(found, ratings, users, products, factors.top).localCheckpoint()
    finally:
        ratings.unpersist()


@contextmanager
def _place_for_checkpoints(spark: SparkSession) -> Iterator[None]:
    """Each iteration adds to what Spark must remember, until the stack of the JVM is too small for it.

    With a place for checkpoints that is cut off now and then. On a cluster all workers must reach the place, so there
    it is the user's: `spark.checkpoint.dir`.
    """
    context = spark.sparkContext
    if not (context.master or "").startswith("local") or context.getConf().contains("spark.checkpoint.dir"):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="kpybroker-als-") as place:
        context.setCheckpointDir(place)
        yield


RESULT = "user string, products bigint, suggestions array<struct<product string, score double>>"


def _numbered(bought: DataFrame, name: str) -> DataFrame:
    """ALS takes whole numbers; here they do not depend on the order of the lines."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    number = F.row_number().over(Window.orderBy(name)) - 1
    return bought.select(name).distinct().select(name, number.alias(f"{name}_id"))


def _listed(found: DataFrame, ratings: DataFrame, users: DataFrame, products: DataFrame, top: int) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    flat = found.select("user_id", F.explode("recommendations").alias("one")).select(
        "user_id", F.col("one.product_id").alias("product_id"), F.col("one.rating").cast("double").alias("score")
    )
    new = flat.join(ratings.select("user_id", "product_id"), ["user_id", "product_id"], "left_anti")
    best = Window.partitionBy("user_id").orderBy(F.desc("score"), F.asc("product_id"))
    ranked = new.withColumn("rank", F.row_number().over(best)).where(F.col("rank") <= top).join(products, "product_id")
    score = F.round("score", SCORE_DIGITS).alias("score")
    one = F.struct("rank", F.struct("product", score).alias("one"))
    lists = ranked.groupBy("user_id").agg(F.sort_array(F.collect_list(one)).alias("list"))
    counts = ratings.groupBy("user_id").agg(F.count("*").alias("products"))
    whole = lists.join(counts, "user_id").join(users, "user_id")
    return whole.select("user", "products", F.transform("list", lambda each: each["one"]).alias("suggestions"))
