"""What is wrong ends with its cause and its fix, in two lines, and never with the stack of a JVM.

What is wrong with options is in tests/pipelines/runtime, with a topic or a checkpoint in
`activity/test_pipeline_once.py`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.deps import jars_dir
from compat_tests.spark.pipelines.test_operations import options_for
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client, create_topic, fill
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.operations.pipeline import OPERATIONS, OperationsOptions
from kpybroker.pipelines.runtime.options import Options, Run
from kpybroker.pipelines.runtime.run import run
from tests.pipelines.operations.generator import Workload, lines

GIVEN = list(lines(Workload(seed=6, start=datetime(2024, 3, 5, 8, tzinfo=UTC), minutes=4)))
RUN_S = 300.0


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Options[OperationsOptions]:
    options = options_for(broker, topic(), tmp_path, name)
    fill(broker.bootstrap, options.input[0], GIVEN)
    (tmp_path / "file").touch()
    return options


def check(spark: SparkSession, options: Options[OperationsOptions], cause: str) -> None:
    """The run ends with `cause`, in two lines."""
    with pytest.raises(PipelineError) as caught:
        run(spark, OPERATIONS, options)
    assert (caught.value.cause, caught.value.is_unknown) == (cause, False)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.wide
def test_a_place_that_cannot_be_written(
    spark: SparkSession, options: Options[OperationsOptions], tmp_path: Path
) -> None:
    """Below a file, where root may not write either; on a file system that is away, or that Spark does not have."""
    below = tmp_path / "file" / "x"
    cannot = f"{tmp_path}/file cannot be made."
    check(spark, replace(options, checkpoint=str(below)), cannot)
    check(spark, replace(options, output=(str(below),), checkpoint=f"{options.checkpoint}-1"), cannot)
    check(spark, replace(options, output=("foo://a/b",)), "Spark has no file system 'foo'.")
    check(spark, replace(options, checkpoint="s3a://a/b"), "Spark has no file system 'S3AFileSystem'.")
    check(spark, replace(options, output=("hdfs://localhost:1/x",)), "The file system at localhost:1 does not respond.")


def test_a_setting_that_the_client_refuses(spark: SparkSession, options: Options[OperationsOptions]) -> None:
    with pytest.raises(PipelineError, match=r"client refuses a setting: .*NOPE.*security.protocol"):
        run(spark, OPERATIONS, replace(options, kafka={"security.protocol": "NOPE"}))


@pytest.mark.wide
def test_a_time_of_a_record_that_spark_does_not_have(
    spark: SparkSession, broker: Broker, options: Options[OperationsOptions]
) -> None:
    """The fix that the error names is one: records up to it are deleted, and the same checkpoint continues."""
    topic = options.input[0]
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    producer.produce(topic, b"never", partition=0, timestamp=2**62)
    assert producer.flush(DEADLINE_S) == 0
    check(spark, options, "A record has a timestamp that Spark cannot represent.")
    fill(broker.bootstrap, topic, GIVEN[:1])
    admin = admin_client(broker.bootstrap)
    for future in admin.delete_records([TopicPartition(topic, 0, len(GIVEN) + 1)]).values():
        future.result(DEADLINE_S)
    assert run(spark, OPERATIONS, replace(options, allow_data_loss=True)).read == 1


@pytest.mark.wide
def test_a_broker_that_goes_away_in_the_middle_and_comes_back(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    """The run ends with an error, and the same checkpoint continues."""
    broker = own_broker()
    create_topic(broker.bootstrap, "samples", 1)
    fill(broker.bootstrap, "samples", GIVEN)
    options = replace(options_for(broker, "samples", tmp_path, "away"), max_offsets=100)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if broker.service.running:
            broker.kill()

    with pytest.raises(PipelineError) as caught:
        run(spark, OPERATIONS, options, say)
    assert caught.value.cause in (
        "The broker does not respond.",
        "The broker did not take the rows of a result in time.",
    )
    broker.start()
    run(spark, OPERATIONS, options)


@pytest.fixture
def quick_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.mark.wide
@pytest.mark.usefixtures("quick_jvm")
@pytest.mark.parametrize(
    ("master", "jars", "cause"),
    [
        ("nonsense", "", "Spark did not start: Master must either be yarn or start with spark, k8s, or local"),
        ("local[2]", "none.jar", "Spark has no Kafka connector."),
        ("local[2]", "", "The topic to read from does not exist."),
    ],
)
def test_the_command_writes_two_lines(master: str, jars: str, cause: str, broker: Broker, tmp_path: Path) -> None:
    """Without a line of the JVM's."""
    (tmp_path / "none.jar").write_bytes(b"PK\x05\x06" + bytes(18))  # an archive of no files
    where = str(tmp_path / jars) if jars else str(jars_dir("spark-4.0.0"))
    whole = ["run", "operations", "--bootstrap-servers", broker.bootstrap, "--input", "nowhere", "--master", master]
    whole += ["--output", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint"), "--jars", where]
    done = run_process([sys.executable, "-m", "kpybroker.pipelines", *whole], check=False, deadline_s=RUN_S)
    first, second = done.err.splitlines()
    assert (done.code, first) == (1, f"kpybroker: {cause}")
    assert second.startswith("fix: ")


@pytest.mark.wide
def test_a_whole_run_reports_the_same(spark: SparkSession, options: Options[OperationsOptions], tmp_path: Path) -> None:
    bounded = replace(options, run=Run.WHOLE, checkpoint=None, output=(str(tmp_path / "file" / "x"),))
    check(spark, bounded, f"{tmp_path}/file cannot be made.")
