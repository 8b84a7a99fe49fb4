"""The job's totals are those of plain Python, over two runs. `SPARK_KAFKA_JARS`: a directory with Spark's connector."""

import glob
import os
import random

import pytest
from job import run
from pyspark.sql import SparkSession

JARS = glob.glob(os.path.join(os.environ.get("SPARK_KAFKA_JARS", "jars"), "*.jar"))


@pytest.fixture
def spark():
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(JARS))
    session = builder.config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


def latest(broker, topic):
    return {record.key_text: int(record.text) for record in broker.records(topic, limit=10_000)}


def test_totals_go_on_from_the_checkpoint(spark, kafka_broker, kafka_topic, tmp_path):
    kafka_broker.create_topic("totals", config={"cleanup.policy": "compact"})
    chance = random.Random(1)
    expected: dict[str, int] = {}
    for _ in range(2):
        orders = [{"customer": chance.choice("abc"), "amount": chance.randint(1, 9)} for _ in range(100)]
        for order in orders:
            expected[order["customer"]] = expected.get(order["customer"], 0) + order["amount"]
        kafka_broker.produce(kafka_topic, orders)
        run(spark, kafka_broker.bootstrap_servers, kafka_topic, "totals", str(tmp_path / "checkpoint"))
        assert latest(kafka_broker, "totals") == expected
