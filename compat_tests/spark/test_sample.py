"""The sample of docs/guides/spark.md reads a topic; the connector is taken from files in place of a download."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.deps import jars_dir
from tests.support.samples import dev_broker, run_sample


@pytest.mark.wide
def test_the_sample_shows_a_topic(tmp_path: Path) -> None:
    jars = ",".join(str(jar) for jar in sorted(jars_dir("spark-4.0.0").glob("*.jar")))
    connector = {"spark.jars.packages": "spark.jars", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0": jars}
    with dev_broker(tmp_path / "data") as broker:
        place = {"127.0.0.1:9092": broker.bootstrap}
        run_sample("start/first_message.py", tmp_path, place)
        assert "hello" in run_sample("spark/read_topic.py", tmp_path, {**place, **connector})
