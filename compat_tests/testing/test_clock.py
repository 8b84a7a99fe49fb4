"""Stock clients on a broker whose clock a test moves: they notice what the broker has done, and go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from compat_tests.support.waiting import eventually
from kpybroker.testing import Broker

KEEPS_BROKERS = "none"
"""`metadata.recovery.strategy` of clients whose idle connections are closed. librdkafka forgets its brokers when no
connection is left, and 2.16 deadlocks if it waits for an OffsetForLeaderEpoch then: its main thread has the partition
and wants the client, the broker's thread has the client and wants the partition. After that no poll returns a record,
and no close ends."""


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    with Broker(topics={"t": 2}, config={"transaction.state.log.num.partitions": 1}) as running:
        yield running


def polled(consumer: Consumer, until: Callable[[], bool], what: str) -> None:
    """Poll, as an application does, until something is so."""

    def check() -> bool:
        consumer.poll(0.1)
        return until()

    eventually(check, what, 60)


def test_a_consumer_whose_session_is_over_joins_again(own_broker: Broker) -> None:
    lost: list[Any] = []
    consumer = own_broker.consumer(
        "g", library="confluent-kafka", session_timeout_ms=30_000, heartbeat_interval_ms=1_000
    )
    consumer.subscribe(["t"], on_lost=lambda *_: lost.append(1))
    try:
        polled(consumer, lambda: len(consumer.assignment()) == 2, "it has all partitions")
        before = own_broker.wait_assigned("g", "t", members=1)
        own_broker.clock.advance(seconds=29)
        polled(consumer, lambda: bool(own_broker.requests("Heartbeat")), "it has sent a heartbeat")
        assert (after := own_broker.group("g")) is not None
        assert (after.generation, after.state) == (before.generation, "Stable")
        own_broker.clock.advance(seconds=31)
        assert own_broker.group("g") is None  # it has neither members nor offsets
        polled(consumer, lambda: bool(lost), "it has noticed")
        polled(consumer, lambda: len(consumer.assignment()) == 2, "it has all partitions again")
        assert own_broker.wait_assigned("g", "t", members=1).members[0].member_id != before.members[0].member_id
    finally:
        consumer.close()


def test_a_dead_consumer_gives_its_partitions_to_the_other(own_broker: Broker) -> None:
    """Without waiting for its session of five minutes."""
    dead = own_broker.consumer("g", "t", library="confluent-kafka", session_timeout_ms=300_000)
    polled(dead, lambda: len(dead.assignment()) == 2, "it has all partitions")
    other = own_broker.consumer("g", "t", library="confluent-kafka", client_id="other", session_timeout_ms=300_000)
    try:
        # What it still sends, if anything, is not to keep it in the group.
        silent = own_broker.faults.hold(
            ["Heartbeat", "JoinGroup", "SyncGroup"], client_id="rdkafka", expect_unused=True
        )
        with silent:
            other.poll(0.1)
            own_broker.wait_group("g", "PreparingRebalance")
            own_broker.clock.advance(minutes=6)
            polled(other, lambda: len(other.assignment()) == 2, "the other has all partitions")
    finally:
        other.close()
        dead.close()


def test_a_transaction_that_is_not_ended_is_aborted_and_its_producer_fenced(own_broker: Broker) -> None:
    producer: Producer = own_broker.producer(
        library="confluent-kafka", transactional_id="x", transaction_timeout_ms=60_000
    )
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce("t", b"a", partition=0)
    producer.flush(60)
    assert own_broker.transactions()["x"].state == "Ongoing"
    own_broker.clock.advance(seconds=50)
    assert own_broker.transactions()["x"].state == "Ongoing"
    own_broker.clock.advance(seconds=20)
    assert own_broker.transactions()["x"].state == "CompleteAbort"
    own_broker.assert_records("t", [])
    with pytest.raises(KafkaException):
        producer.commit_transaction(120)


def test_retention_makes_a_consumer_start_over(own_broker: Broker) -> None:
    own_broker.create_topic("short", config={"retention.ms": 3_600_000})
    own_broker.produce("short", ["old"])
    consumer = own_broker.consumer("g", "short", library="confluent-kafka", metadata_recovery_strategy=KEEPS_BROKERS)
    try:
        assert [message.value() for message in consumer.consume(1, timeout=60)] == [b"old"]
        own_broker.clock.advance(hours=2)
        own_broker.assert_records("short", [])
        own_broker.produce("short", ["new"])
        assert [message.value() for message in consumer.consume(1, timeout=60)] == [b"new"]
        assert own_broker.end_offsets("short") == {0: 2}
    finally:
        consumer.close()


def test_clients_outlive_many_advances(own_broker: Broker) -> None:
    """A day closes their idle connections, which they open again; no record is lost."""
    producer = own_broker.producer(library="confluent-kafka", log_level=0, metadata_recovery_strategy=KEEPS_BROKERS)
    consumer = own_broker.consumer(
        None, library="confluent-kafka", log_level=0, metadata_recovery_strategy=KEEPS_BROKERS
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    try:
        for number in range(5):
            producer.produce("t", b"%d" % number, partition=0)
            assert producer.flush(60) == 0
            seen = eventually(lambda: consumer.poll(0.5), "it reads on", 60)
            assert seen.value() == b"%d" % number
            own_broker.clock.advance(days=1)
    finally:
        consumer.close()
