"""What a service logged as errors in one hour, from the files of the pipeline `logs`."""

from pyspark.sql import DataFrame, SparkSession


def errors(spark: SparkSession, directory: str, date: str, hour: int, service: str) -> DataFrame:
    events = spark.read.parquet(f"{directory}/events")
    found = events.where(f"date = '{date}' and hour = {hour} and service = '{service}' and level = 'ERROR'")
    return found.orderBy("event_time").select("event_time", "message", "details")
