"""Consumers of the new group protocol (KIP-848) with the test kit: made, waited for, failed, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError

from kpybroker.testing import Broker, UsageError

SETTLE_S = 60


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(topics={"t": 6}, group_protocol="consumer") as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()
    running.cap_versions()


def polled(*consumers: Consumer) -> Any:
    """A condition for `wait_for`: they are polled, and each has partitions."""

    def all_assigned() -> list[int] | None:
        for consumer in consumers:
            consumer.poll(0.01)
        counts = [len(consumer.assignment()) for consumer in consumers]
        return counts if all(counts) else None

    return all_assigned


def test_three_members_share_a_topic_and_are_waited_for(broker: Broker) -> None:
    with ExitStack() as stack:
        consumers = [broker.consumer("three", "t") for _ in range(3)]
        for consumer in consumers:
            stack.callback(consumer.close)
        settled = broker.wait_for(
            lambda: sorted(polled(*consumers)() or ()) == [2, 2, 2], SETTLE_S, "two partitions each"
        )
        assert settled
        group = broker.wait_group("three", members=3, timeout=SETTLE_S)
        assert (group.type, group.state, group.protocol, group.leader) == ("consumer", "Stable", "uniform", None)
        assert broker.wait_assigned("three", "t", members=3, timeout=SETTLE_S) == group
        assert broker.wait_assigned("three", timeout=SETTLE_S) == group
        assert {member.subscription for member in group.members} == {("t",)}
        owned = sorted(index for member in group.members for index in member.assignment["t"])
        assert owned == list(range(6))
    broker.wait_group("three", "Empty", members=0, timeout=SETTLE_S)


def test_a_consumer_may_name_its_own_protocol(broker: Broker) -> None:
    consumer = broker.consumer("classic", "t", group_protocol="classic")
    try:
        broker.wait_for(polled(consumer), SETTLE_S)
        assert broker.wait_group("classic", members=1).type == "classic"
    finally:
        consumer.close()
    consumer_of: Any = broker.consumer  # which has a type that excludes it
    with pytest.raises(UsageError, match="kafka-python has only the classic group protocol"):
        consumer_of("python", "t", library="kafka-python", group_protocol="consumer")


def test_heartbeats_fail_as_the_test_says(broker: Broker) -> None:
    """By the names of Kafka: the client is fenced, joins again, and goes on."""
    broker.clear_requests()
    fault = broker.faults.error("ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH", group="fenced", nth=4)
    consumer = broker.consumer("fenced", "t")
    try:

        def was_fenced() -> bool:
            consumer.poll(0.01)
            failed = [one for one in broker.requests("ConsumerGroupHeartbeat") if fault.id in one.faults]
            return bool(failed) and failed[0].errors == ("FENCED_MEMBER_EPOCH",)

        broker.wait_for(was_fenced, SETTLE_S, "the fence")
        broker.wait_for(polled(consumer), SETTLE_S)
        joins = [one for one in broker.requests("ConsumerGroupHeartbeat") if (one.request or {})["member_epoch"] == 0]
        assert len(joins) >= 2
        described = broker.faults.error("ConsumerGroupDescribe", "GROUP_AUTHORIZATION_FAILED", group="fenced")
        admin = broker.admin(library="confluent-kafka")
        with pytest.raises(Exception, match="GROUP_AUTHORIZATION_FAILED"):
            admin.describe_consumer_groups(["fenced"])["fenced"].result(SETTLE_S)
        described.remove()
        assert admin.describe_consumer_groups(["fenced"])["fenced"].result(SETTLE_S).group_id == "fenced"
    finally:
        consumer.close()


def test_a_broker_in_the_place_of_3_9_refuses_the_protocol(broker: Broker) -> None:
    broker.cap_versions("4.0")
    consumer = broker.consumer("capped", "t")
    try:
        broker.wait_for(polled(consumer), SETTLE_S)
        broker.cap_versions("3.9", apis={"ConsumerGroupHeartbeat": 1})

        def error() -> KafkaError | None:
            message = consumer.poll(0.1)
            return None if message is None else message.error()

        refusal = broker.wait_for(error, SETTLE_S, "the refusal")
        assert refusal is not None
        assert refusal.code() == KafkaError._FATAL
    finally:
        broker.cap_versions()
        consumer.close()
