"""Spark's batch reads: what is chosen by name, pattern and partition, and where a read begins and ends."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.spark.support import FIRST_MS, STEP_MS, Seen, batch, records, write
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker

# both ways of learning offsets
by_both = pytest.mark.usefixtures("readers")

EARLIEST, LATEST = -2, -1


@pytest.fixture
def filled(broker: Broker, topic: MakeTopic) -> tuple[str, list[Seen]]:
    """A topic of three partitions with 40, 25 and no records."""
    made = topic(partitions=3)
    all_records = records(made, 0, 40) + records(made, 1, 25)
    write(broker.bootstrap, all_records)
    return made, all_records


def slice_of(all_records: list[Seen], wanted: dict[int, range]) -> list[Seen]:
    return [one for one in all_records if one.offset in wanted.get(one.partition, ())]


@by_both
def test_subscribe_reads_every_column_of_every_record(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]], topic: MakeTopic
) -> None:
    name, expected = filled
    other = topic(suffix="-other")
    more = records(other, 0, 5)
    write(broker.bootstrap, more)
    assert batch(spark, broker.bootstrap, subscribe=name) == expected
    assert batch(spark, broker.bootstrap, subscribe=f"{name},{other}") == expected + more


@by_both
def test_subscribe_pattern_reads_the_topics_that_match_whole(
    spark: SparkSession, broker: Broker, name: str, topic: MakeTopic
) -> None:
    """Anchored: Spark's AdminClient way finds a pattern anywhere in a name, its consumer way matches all of it."""
    expected = []
    for suffix in ("-a1", "-a2", "-b1", "-a1x"):
        made = topic(suffix=suffix)
        write(broker.bootstrap, some := records(made, 0, 3))
        expected += some if suffix in ("-a1", "-a2") else []
    assert batch(spark, broker.bootstrap, subscribePattern=f"^{name}-a[0-9]$") == expected


@by_both
def test_assign_reads_the_named_partitions_only(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]]
) -> None:
    name, expected = filled
    assert batch(spark, broker.bootstrap, assign={name: [1, 2]}) == slice_of(expected, {1: range(25)})


@by_both
@pytest.mark.parametrize(
    ("starting", "ending", "wanted"),
    [
        ({0: 10, 1: 5, 2: 0}, {0: 20, 1: 25, 2: 0}, {0: range(10, 20), 1: range(5, 25)}),
        ({0: EARLIEST, 1: 24, 2: EARLIEST}, {0: 1, 1: LATEST, 2: LATEST}, {0: range(1), 1: range(24, 25)}),
        ({0: 40, 1: 25, 2: 0}, {0: LATEST, 1: LATEST, 2: LATEST}, {}),
    ],
    ids=["numbers", "earliest-latest", "at-the-end"],
)
def test_offsets_bound_a_read(
    spark: SparkSession,
    broker: Broker,
    filled: tuple[str, list[Seen]],
    starting: dict[int, int],
    ending: dict[int, int],
    wanted: dict[int, range],
) -> None:
    name, expected = filled
    got = batch(spark, broker.bootstrap, subscribe=name, startingOffsets={name: starting}, endingOffsets={name: ending})
    assert got == slice_of(expected, wanted)


@by_both
def test_one_timestamp_bounds_all_partitions(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]]
) -> None:
    """A timestamp stands for the first offset whose record is not older; where none is, an end is the latest."""
    name, expected = filled
    got = batch(
        spark,
        broker.bootstrap,
        subscribe=name,
        startingTimestamp=str(FIRST_MS + 10 * STEP_MS + 1),
        endingTimestamp=str(FIRST_MS + 30 * STEP_MS),
        startingOffsetsByTimestampStrategy="latest",
    )
    # partition 1 is a millisecond ahead of partition 0
    assert got == slice_of(expected, {0: range(11, 30), 1: range(10, 25)})


@by_both
def test_each_partition_has_timestamps_of_its_own(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]]
) -> None:
    name, expected = filled
    starting = {name: {"0": FIRST_MS, "1": FIRST_MS + 20 * STEP_MS, "2": FIRST_MS}}
    ending = {name: {"0": FIRST_MS + 3 * STEP_MS, "1": FIRST_MS + 22 * STEP_MS, "2": FIRST_MS}}
    got = batch(
        spark,
        broker.bootstrap,
        subscribe=name,
        startingOffsetsByTimestamp=starting,
        endingOffsetsByTimestamp=ending,
        startingOffsetsByTimestampStrategy="latest",
    )
    assert got == slice_of(expected, {0: range(3), 1: range(20, 22)})


@by_both
def test_a_start_after_every_record_is_an_error_unless_an_option_says_otherwise(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]]
) -> None:
    name, _ = filled
    late = str(FIRST_MS + 1000 * STEP_MS)
    options: dict[str, object] = {"startingTimestamp": late, "fetchOffset.retryIntervalMs": "1"}
    with pytest.raises(Exception, match="No offset matched"):
        batch(spark, broker.bootstrap, subscribe=name, **options)
    options["startingOffsetsByTimestampStrategy"] = "latest"
    assert batch(spark, broker.bootstrap, subscribe=name, **options) == []


def test_a_partition_is_read_by_several_tasks(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]]
) -> None:
    name, expected = filled
    assert batch(spark, broker.bootstrap, subscribe=name, minPartitions="9") == expected


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(
    spark: SparkSession, own_broker: object, broker: Broker, name: str, codec: str
) -> None:
    create_topic(broker.bootstrap, name, 1, compression_type=codec)
    write(broker.bootstrap, expected := records(name, 0, 30))
    assert batch(spark, broker.bootstrap, subscribe=name) == expected


def test_transactional_readers_get_all_that_is_not_in_a_transaction(
    spark: SparkSession, broker: Broker, filled: tuple[str, list[Seen]]
) -> None:
    name, expected = filled
    options: dict[str, object] = {"kafka.isolation.level": "read_committed"}
    assert batch(spark, broker.bootstrap, subscribe=name, **options) == expected
