"""One Spark for all of the Spark tests: a JVM takes seconds to start and hundreds of megabytes to keep.

It runs in local mode with Spark's own Kafka connector from `.cache/jvm/spark-4.0.0`; the broker is whatever the harness
was asked to run. `readers` runs a test twice, once with each of the two ways in which Spark's driver learns offsets.

This JVM lives long: its code needs more room than its compiler has by default, or it is looked through, thrown away and
compiled again and again. `QuickFiles.java` says what the modes of its files would cost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from compat_tests.deps import jars_dir
from compat_tests.spark.support import Stream
from compat_tests.support.tools import compiled

JARS = ("spark-4.0.0", "spark-avro-4.0.0")
QUICK_FILES = Path(__file__).with_name("QuickFiles.java")
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-Xss2m")
OFFSET_READER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = [jar for name in JARS for jar in sorted(jars_dir(name).glob("*.jar"))]
    assert jars, f"no jars in {jars_dir(JARS[0])}: run make test-deps"
    place = tmp_path_factory.mktemp("spark")
    hadoop = sorted(Path(pyspark.__file__).with_name("jars").glob("hadoop-client-*.jar"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": " ".join(JVM),
        "spark.driver.extraClassPath": str(compiled(QUICK_FILES, ":".join(map(str, hadoop)))),
        "spark.hadoop.fs.file.impl": "QuickFiles",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "QuickFiles$Contexts",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "100",
        "spark.sql.streaming.stopTimeout": "30s",  # a query whose broker is gone does not hold up the others
        "spark.local.dir": str(place / "local"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]").appName("kpybroker compatibility tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(params=["admin", pytest.param("consumer", marks=pytest.mark.wide)])
def readers(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Spark's driver asks for offsets with an AdminClient, or, when configured so, with a consumer."""
    spark.conf.set(OFFSET_READER, "true" if request.param == "consumer" else "false")
    yield request.param
    spark.conf.unset(OFFSET_READER)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    """A streaming query of this test's own, with its checkpoint and its Parquet output; stopped with the test."""
    made = Stream(spark, tmp_path / "checkpoint", tmp_path / "output")
    yield made
    made.stop()
