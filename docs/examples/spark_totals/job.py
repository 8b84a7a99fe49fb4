"""A Spark job that keeps the total of each customer's orders: read from Kafka, written back as a compacted topic.

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 job.py SERVERS ORDERS TOTALS CHECKPOINT
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def run(spark: SparkSession, servers: str, orders: str, totals: str, checkpoint: str) -> None:
    """Process what is there, and end. The next run goes on from the checkpoint."""
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", orders)
        .option("startingOffsets", "earliest")
        .load()
    )
    order = F.from_json(F.col("value").cast("string"), "customer STRING, amount LONG")
    total = source.select(order.alias("order")).groupBy("order.customer").agg(F.sum("order.amount").alias("total"))
    (
        total.select(F.col("customer").alias("key"), F.col("total").cast("string").alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", totals)
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    run(SparkSession.builder.appName("totals").getOrCreate(), *sys.argv[1:])
