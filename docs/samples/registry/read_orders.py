"""Orders with a schema as a table: the registry says what the bytes after the id are."""

from confluent_kafka.schema_registry import SchemaRegistryClient
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import expr

PACKAGES = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0,org.apache.spark:spark-avro_2.13:4.0.0"

schema = SchemaRegistryClient({"url": "http://127.0.0.1:8081"}).get_latest_version("orders-value").schema.schema_str
spark = SparkSession.builder.master("local[2]").config("spark.jars.packages", PACKAGES).getOrCreate()
orders = spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:9092").option("subscribe", "orders")
bytes_of_avro = expr("substring(value, 6)")  # a zero byte and four of the id are in front
orders.load().select(from_avro(bytes_of_avro, schema).alias("order")).select("order.*").show()
