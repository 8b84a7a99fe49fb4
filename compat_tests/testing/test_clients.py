"""The clients that a `Broker` makes, in each library that it knows: they produce and consume as any of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kpybroker.testing import Broker, WaitTimeout

VALUES = [b"%d" % number for number in range(20)]


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_confluent_kafka(own_broker: Broker) -> None:
    topic = "confluent"
    assert len(own_broker.admin(library="confluent-kafka").list_topics(timeout=60).brokers) == 1
    producer = own_broker.producer(library="confluent-kafka", linger_ms=0)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    consumer = own_broker.consumer("g-confluent", topic, library="confluent-kafka")
    try:
        assert [message.value() for message in consumer.consume(len(VALUES), timeout=60)] == VALUES
        group = own_broker.wait_assigned("g-confluent", topic, members=1)
        assert group.members[0].assignment == {topic: (0,)}
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    own_broker.wait_group("g-confluent", "Empty", members=0)
    own_broker.assert_committed("g-confluent", topic, {0: len(VALUES)})
    own_broker.assert_lag("g-confluent", 0)


def test_confluent_kafka_without_a_group(own_broker: Broker) -> None:
    own_broker.produce("alone", VALUES)
    for _ in range(2):  # another group each time
        consumer = own_broker.consumer(None, "alone", library="confluent-kafka")
        assert [message.value() for message in consumer.consume(len(VALUES), timeout=60)] == VALUES
        consumer.close()


def test_kafka_python(own_broker: Broker) -> None:
    topic = "kafka-python"
    admin = own_broker.admin(library="kafka-python")
    assert topic not in admin.list_topics()
    admin.close()
    producer = own_broker.producer(library="kafka-python")
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(60)
    producer.close()
    consumer = own_broker.consumer("g-python", topic, library="kafka-python", consumer_timeout_ms=20_000)
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.commit()
    consumer.close()
    own_broker.assert_committed("g-python", topic, {0: len(VALUES)})


def test_aiokafka(own_broker: Broker) -> None:
    topic = "aiokafka"

    async def run() -> list[bytes]:
        async with own_broker.aio_producer() as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        async with own_broker.aio_consumer("g-aio", topic) as consumer:
            values = [(await consumer.getone()).value for _ in VALUES]
            await consumer.commit()
            return values

    assert asyncio.run(asyncio.wait_for(run(), 60)) == VALUES
    own_broker.assert_committed("g-aio", topic, {0: len(VALUES)})


def test_a_wait_that_fails_says_what_was_there(own_broker: Broker) -> None:
    own_broker.produce("late", VALUES)
    consumer = own_broker.consumer("g-late", "late", library="confluent-kafka")
    try:
        consumer.consume(1, timeout=60)
        with pytest.raises(WaitTimeout, match=r"g-late .* seen instead: Group.group_id='g-late'"):
            own_broker.wait_group("g-late", members=2, timeout=0.2)
    finally:
        consumer.close()


def test_what_they_send_is_seen(own_broker: Broker) -> None:
    own_broker.clear_requests()
    producer = own_broker.producer(library="confluent-kafka", client_id="watched")
    producer.produce("seen", b"a", key=b"k", headers={"h": b"1"})
    producer.flush(60)
    own_broker.wait_requests("Produce", client_id="watched")
    (request,) = own_broker.requests("Produce", client_id="watched")
    assert request.client_id == "watched"
    assert request.request is not None
    own_broker.assert_no_requests("Fetch", client_id="watched")
    with pytest.raises(AssertionError, match=r"1 requests have arrived: Produce v\d+ of watched"):
        own_broker.assert_no_requests("Produce", client_id="watched")
    (record,) = own_broker.assert_records("seen", ["a"], keys=["k"], count=1)
    assert record.headers == (("h", b"1"),)
