"""The samples of docs/guides/spark.md read a topic; the connector is taken from files in place of a download."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.deps import jars_dir
from compat_tests.support.quick import DEADLINE_S
from tests.support.programs.samples import dev_broker, run_sample


def connector() -> dict[str, str]:
    jars = ",".join(str(jar) for jar in sorted(jars_dir("spark-4.0.0").glob("*.jar")))
    return {"spark.jars.packages": "spark.jars", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0": jars}


@pytest.mark.wide
def test_the_sample_shows_a_topic(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data") as broker:
        place = {"127.0.0.1:9092": broker.bootstrap}
        run_sample("start/first_message.py", tmp_path, place)
        assert "hello" in run_sample("spark/read_topic.py", tmp_path, {**place, **connector()})


@pytest.mark.wide
def test_the_sample_of_a_locked_broker_shows_a_topic(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data", "--tls", "--sasl", "scram") as broker:
        (ca,) = tmp_path.rglob("ca.pem")
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(ca),
                "sasl.mechanisms": "SCRAM-SHA-256",
                "sasl.username": "alice",
                "sasl.password": "alice-secret",
            }
        )
        producer.produce("greetings", "hello")
        assert producer.flush(DEADLINE_S) == 0
        place = {"127.0.0.1:9092": broker.bootstrap, "certificates/ca.pem": str(ca)}
        assert "hello" in run_sample("spark/read_locked_topic.py", tmp_path, {**place, **connector()})
