"""Read a topic as a table, over TLS and with a login."""

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0")
    .getOrCreate()
)
login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="alice-secret";'
security = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-256",
    "kafka.sasl.jaas.config": login,
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.truststore.location": "certificates/ca.pem",
}
lines = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", "127.0.0.1:9092")
    .option("subscribe", "greetings")
    .options(**security)
    .load()
)
lines.selectExpr("cast(value as string)", "partition", "offset", "timestamp").show()
