"""failOnDataLoss: records that a query counted on are gone; it says so, or goes on with what is there."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.spark.support import Seen, Stream, batch, records, write
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

LOSS = r"KAFKA_DATA_LOSS|data may have been lost"
QUICK = {"fetchOffset.retryIntervalMs": "1", "kafkaConsumer.pollTimeoutMs": "5000"}


def delete_records(broker: Broker, topic: str, before: int) -> None:
    admin = admin_client(broker.bootstrap)
    part = TopicPartition(topic, 0, before)
    assert admin.delete_records([part])[part].result(120).low_watermark == before


def recreate(broker: Broker, topic: str) -> None:
    admin = admin_client(broker.bootstrap)
    admin.delete_topics([topic])[topic].result(120)

    def made() -> bool:
        try:
            create_topic(broker.bootstrap, topic, 1)
        except KafkaException as error:
            # real Kafka responds to a deletion before its files are gone
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise
        return True

    eventually(made, "the topic again")


def options(topic: str, fail: str) -> dict[str, object]:
    return {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": fail, **QUICK}


@pytest.fixture
def begun(stream: Stream, broker: Broker, topic: MakeTopic) -> tuple[str, list[Seen]]:
    """A query that has read twenty records and was stopped; twenty more are there."""
    name = topic()
    expected = records(name, 0, 20)
    write(broker.bootstrap, expected)
    assert stream.run(broker.bootstrap, **options(name, "true")) == [20]
    write(broker.bootstrap, more := records(name, 0, 20, first=20))
    return name, expected + more


@pytest.mark.usefixtures("readers")
def test_deleted_records_fail_a_query_that_must_not_lose_any(
    stream: Stream, broker: Broker, begun: tuple[str, list[Seen]]
) -> None:
    name, expected = begun
    delete_records(broker, name, 30)
    with pytest.raises(StreamingQueryException, match=LOSS):
        stream.run(broker.bootstrap, **options(name, "true"))
    assert stream.rows() == expected[:20]


@pytest.mark.usefixtures("readers")
def test_a_query_that_may_lose_records_goes_on_after_the_deleted_ones(
    stream: Stream, broker: Broker, begun: tuple[str, list[Seen]]
) -> None:
    name, expected = begun
    delete_records(broker, name, 30)
    stream.run(broker.bootstrap, **options(name, "false"))
    assert stream.rows() == expected[:20] + expected[30:]


@pytest.mark.usefixtures("readers")
def test_a_topic_made_again_fails_a_query_that_must_not_lose_any(
    stream: Stream, broker: Broker, begun: tuple[str, list[Seen]]
) -> None:
    name, expected = begun
    recreate(broker, name)
    write(broker.bootstrap, records(name, 0, 5))
    with pytest.raises(StreamingQueryException, match=LOSS):
        stream.run(broker.bootstrap, **options(name, "true"))
    assert stream.rows() == expected[:20]


def test_a_query_that_may_lose_records_goes_on_with_the_new_topic(
    stream: Stream, broker: Broker, begun: tuple[str, list[Seen]]
) -> None:
    """It reads on from where the new log ends: the first run learns that the offsets went back, and keeps them."""
    name, expected = begun
    recreate(broker, name)
    write(broker.bootstrap, records(name, 0, 5))
    stream.run(broker.bootstrap, **options(name, "false"))
    write(broker.bootstrap, later := records(name, 0, 6, first=5))
    stream.run(broker.bootstrap, **options(name, "false"))
    assert stream.rows() == sorted(expected[:20] + later)


def test_a_batch_read_of_deleted_offsets(spark: SparkSession, broker: Broker, topic: MakeTopic) -> None:
    name = topic()
    expected = records(name, 0, 10)
    write(broker.bootstrap, expected)
    delete_records(broker, name, 4)
    bounds: dict[str, object] = {"subscribe": name, "startingOffsets": {name: {"0": 2}}, **QUICK}
    with pytest.raises(Exception, match=LOSS):
        batch(spark, broker.bootstrap, **bounds, failOnDataLoss="true")
    assert batch(spark, broker.bootstrap, **bounds, failOnDataLoss="false") == expected[4:]
    assert batch(spark, broker.bootstrap, subscribe=name) == expected[4:]
