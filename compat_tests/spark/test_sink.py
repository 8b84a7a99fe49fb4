"""Spark's Kafka sink, batch and streaming; what it wrote is read back with librdkafka and with kcat."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.spark.support import Seen, Stream, records, seen, write
from compat_tests.support.clients import Client
from compat_tests.support.quick import read
from compat_tests.support.services import Broker

ROW = "topic string, partition int, key binary, value binary, headers array<struct<key: string, value: binary>>"


def frame_of(spark: SparkSession, rows: list[Seen]) -> DataFrame:
    data = [
        (one.topic, one.partition, one.key, one.value, [(name, data) for name, data in one.headers] or None)
        for one in rows
    ]
    return spark.createDataFrame(data, ROW).coalesce(1)


def stored(broker: Broker, topic: str, partition: int, count: int) -> list[tuple[object, ...]]:
    """Key, value and headers of what is in a partition, in order, as librdkafka reads it."""
    messages = read(broker.bootstrap, [(topic, partition)], count)
    assert [message.offset() for message in messages] == list(range(count))
    return [(message.key(), message.value(), tuple(message.headers() or ())) for message in messages]


def content(rows: list[Seen]) -> list[tuple[object, ...]]:
    return [(one.key, one.value, one.headers) for one in rows]


def test_a_batch_goes_to_the_topic_and_partition_of_each_row(
    spark: SparkSession, broker: Broker, topic: MakeTopic
) -> None:
    first, second = topic(suffix="-1", partitions=2), topic(suffix="-2")
    rows = {(first, 0): records(first, 0, 40), (first, 1): records(first, 1, 15), (second, 0): records(second, 0, 9)}
    frame = frame_of(spark, [one for part in rows.values() for one in part])
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option(
        "includeHeaders", "true"
    ).save()
    for (name, partition), wanted in rows.items():
        assert stored(broker, name, partition, len(wanted)) == content(wanted)


def test_the_topic_option_stands_above_the_column_and_kcat_reads_the_same(
    spark: SparkSession, broker: Broker, topic: MakeTopic
) -> None:
    name = topic()
    rows = [Seen(name, 0, n, 0, f"key {n}".encode(), f"værdi {n}".encode(), (("h", b"1"),)) for n in range(12)]
    writer = frame_of(spark, rows).selectExpr("'elsewhere' as topic", "key", "value", "headers").write
    writer.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", name).option(
        "includeHeaders", "true"
    ).save()
    assert stored(broker, name, 0, 12) == content(rows)
    got = Client("kcat", broker.bootstrap).consume([name], 12)
    assert [(one.key, one.value, one.headers) for one in got] == [
        (f"key {n}", f"værdi {n}", (("h", "1"),)) for n in range(12)
    ]


def test_keys_choose_the_partition_that_javas_partitioner_chooses(
    spark: SparkSession, broker: Broker, topic: MakeTopic
) -> None:
    """All rows of one key in one partition, in their order, and every row once."""
    name = topic(partitions=4)
    frame = spark.range(0, 200, 1, 1).selectExpr("concat('k', id % 13) as key", "cast(id as string) as value")
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", name).save()
    got = read(broker.bootstrap, [(name, partition) for partition in range(4)], 200)
    by_key: dict[bytes, list[tuple[int, int]]] = {}
    for message in sorted(got, key=lambda one: one.offset()):
        by_key.setdefault(message.key(), []).append((message.partition(), int(message.value())))
    assert len(by_key) == 13
    for key, found in by_key.items():
        remainder = int(key[1:])
        assert len({partition for partition, _ in found}) == 1
        assert [number for _, number in found] == [n for n in range(200) if n % 13 == remainder]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_and_idempotent_writes(spark: SparkSession, broker: Broker, topic: MakeTopic, codec: str) -> None:
    name = topic()
    rows = [one for one in records(name, 0, 50) if one.value is not None]
    writer = frame_of(spark, rows).write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.options(**{"includeHeaders": "true", "kafka.compression.type": codec, "kafka.acks": "all"}).save()
    assert stored(broker, name, 0, len(rows)) == content(rows)


def test_a_stream_from_topic_to_topic_restarts_without_repeating(
    spark: SparkSession, stream: Stream, broker: Broker, topic: MakeTopic
) -> None:
    source, sink = topic(suffix="-in", partitions=2), topic(suffix="-out", partitions=2)

    def run() -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        lines = reader.options(subscribe=source, startingOffsets="earliest", includeHeaders="true").load()
        writer = (
            lines.select("partition", "key", "value", "headers")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .options(topic=sink, includeHeaders="true", checkpointLocation=str(stream.checkpoint))
        )
        stream.query = writer.trigger(availableNow=True).start()
        assert stream.query.awaitTermination(60)

    first = records(source, 0, 20) + records(source, 1, 20)
    write(broker.bootstrap, first)
    run()
    second = records(source, 0, 5, first=20) + records(source, 1, 11, first=20)
    write(broker.bootstrap, second)
    run()
    assert stored(broker, sink, 0, 25) == content(first[:20] + second[:5])
    assert stored(broker, sink, 1, 31) == content(first[20:] + second[5:])
    back = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    rows = seen(back.options(subscribe=sink, includeHeaders="true").load())
    assert content(rows) == content(first[:20] + second[:5] + first[20:] + second[5:])


def test_a_missing_topic_is_made_by_the_first_write(spark: SparkSession, broker: Broker, name: str) -> None:
    frame = spark.range(3).selectExpr("cast(id as string) as value").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", name).save()
    assert [value for _, value, _ in stored(broker, name, 0, 3)] == [b"0", b"1", b"2"]
