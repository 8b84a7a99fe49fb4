"""Read a topic as a table."""

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0")
    .getOrCreate()
)
lines = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", "127.0.0.1:9092")
    .option("subscribe", "greetings")
    .load()
)
lines.selectExpr("cast(value as string)", "partition", "offset", "timestamp").show()
