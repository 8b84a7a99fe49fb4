"""Each result once, whatever is killed, and a checkpoint that is used for what it was made for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.spark.pipelines.activity.test_pipeline import (
    END_OF_TIME,
    Lines,
    arguments,
    as_events,
    committed,
    compare,
    millis,
    options_for,
    own,
    recount,
    run,
    some_lines,
    with_topics,
    write,
)
from compat_tests.spark.pipelines.surviving import check_changed_topics, heartbeat, survive
from compat_tests.support.quick import DEADLINE_S, QUIET, create_topic, fill
from compat_tests.support.services import Broker
from kpybroker.pipelines.activity.pipeline import ACTIVITY
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.sinks import topic_output

KEYS = 25  # so many that each writer has rows of a batch
LONG = {"transaction.timeout.ms": 600_000, **QUIET}  # longer than the test waits


def test_a_batch_that_is_written_again_is_there_once(spark: SparkSession, broker: Broker, topic: MakeTopic) -> None:
    """Also where a writer died with its transaction open; a reader of committed records sees nothing of that."""
    name = topic(partitions=3)

    def target(batch: int) -> topic_output.Target:
        return topic_output.Target(name, f"{name}.job", batch, {"bootstrap.servers": broker.bootstrap})

    def batch(first: int) -> None:
        rows = [(f"key {n % KEYS}", f"value {n}", [("n", str(n).encode())]) for n in range(first, first + 50)]
        frame = spark.createDataFrame(rows, "key string, value string, headers array<struct<key:string,value:binary>>")
        topic_output.write(frame, target(first // 50))

    for first in (0, 0, 50, 50):
        batch(first)
    for writer in range(topic_output.WRITERS):
        dead = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{name}.job-{writer}", **LONG})
        dead.init_transactions(DEADLINE_S)
        dead.begin_transaction()
        dead.produce(name, b"never committed")
        assert dead.flush(DEADLINE_S) == 0
    for first in (100, 100):
        batch(first)
    values = Counter(message.value().decode() for message in committed(broker.bootstrap, name))
    assert values == Counter(f"value {n}" for n in range(150))
    for message in committed(broker.bootstrap, name):
        number = message.value().decode().split()[1]
        assert (message.key(), message.headers()) == (f"key {int(number) % KEYS}".encode(), [("n", number.encode())])


@pytest.fixture
def away(own_broker: StartBroker, tmp_path: Path) -> tuple[Broker, Lines]:
    """A broker of the test's own, with a topic, and options with topics as one of the outputs."""
    broker = own_broker()
    create_topic(broker.bootstrap, "lines", 2)
    return broker, with_topics(options_for(broker, "lines", tmp_path), "killed")


@pytest.mark.wide
def test_results_are_there_once_after_driver_and_broker_were_killed(
    spark: SparkSession, away: tuple[Broker, Lines], tmp_path: Path
) -> None:
    """At the points of `dying`, each in a batch of another result; so is the broker."""
    broker, options = away
    lines = sorted(some_lines("activity", 21, 0, 600, 400))
    places = write(broker, options.input[0], lines)
    options = replace(options, max_offsets=80)
    survive(broker, arguments(options), tmp_path, ["page_counts", "sessions", "top_pages"])
    heartbeat(broker.bootstrap, options.input[0], 2)
    run(spark, options)
    expected = recount()
    expected.batch(as_events("activity", lines, places), millis(END_OF_TIME))
    compare(spark, broker, options, expected)


@pytest.mark.wide
def test_a_checkpoint_of_another_job_is_refused(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, name: str
) -> None:
    options = options_for(broker, topic(partitions=2), tmp_path)
    create_topic(broker.bootstrap, f"{name}-other", 1)
    write(broker, options.input[0], some_lines("activity", 22, 0, 60, 20))
    run(spark, options)
    with pytest.raises(PipelineError, match="made with --window 10 minutes, and this run has 1 hour"):
        run(spark, own(options, window="1 hour"))
    with pytest.raises(PipelineError, match=f"of a run that reads {options.input[0]}"):
        run(spark, replace(options, input=(f"{name}-other",)))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(PipelineError, match="home is not a checkpoint of this pipeline"):
        run(spark, replace(options, checkpoint=str(tmp_path / "home"), output=(str(tmp_path / "elsewhere"),)))
    assert run(spark, options).read == 0


@pytest.mark.wide
def test_a_topic_with_more_partitions_is_read_and_one_that_was_made_again_is_not(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path
) -> None:
    """A topic of the same name has other records at the offsets of the checkpoint, as many or more."""
    options = options_for(broker, topic(partitions=2), tmp_path)

    def write(partition: int) -> int:
        lines = some_lines("activity", 23 + partition, 60 * (partition // 2), 60, 10)
        fill(broker.bootstrap, options.input[0], lines, partition)
        return len(lines)

    check_changed_topics(spark, broker, ACTIVITY, options, write)


def test_broken_records_go_to_the_dead_letters_with_the_reason(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, name: str
) -> None:
    """As they were, bytes that are no text included; a broken heartbeat is one too."""
    options = with_topics(options_for(broker, topic(partitions=1), tmp_path), name)
    broken = [(b"key", b"\xff\xfe"), (None, b"{"), (b"heartbeat", b"soon"), (None, None)]
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for line in some_lines("activity", 26, 0, 60, 3):
        producer.produce(options.input[0], line)
    for key, value in broken:
        producer.produce(options.input[0], value, key)
    assert producer.flush(DEADLINE_S) == 0
    assert run(spark, options).broken == len(broken)
    found = {}
    for message in committed(broker.bootstrap, f"{name}-out-dead-letters"):
        headers = {key: value.decode() for key, value in message.headers()}
        found[int(headers["error.offset"])] = message
        assert (headers["error.topic"], headers["error.partition"]) == (options.input[0], "0")
        beat = message.key() == b"heartbeat"
        assert headers["error.reason"] == ("the value of a heartbeat is not a time" if beat else NOT_A_LINE)
    assert [(found[n].key(), found[n].value()) for n in range(3, 7)] == broken
    rows = spark.read.parquet(f"{options.directories[0]}/dead_letters").orderBy("offset").collect()
    assert [row.offset for row in rows] == [3, 4, 5, 6]


NOT_A_LINE = "not a line of format activity"
