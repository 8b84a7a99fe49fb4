"""Share groups (KIP-932) with the test kit: a worker that accepts, releases and loses its lock, and its faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType

from kpybroker.testing import Broker

SETTLE_S = 60
LOCK_S = 30


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


@pytest.fixture
def worker(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A member that says itself what becomes of a record, in a group and on a topic of the test's name."""
    name = request.node.name
    broker.create_topic(name)
    broker.produce(name, ["job"])
    consumer = broker.share_consumer(name, name, share_acknowledgement_mode="explicit")
    yield consumer
    consumer.close()


def polled(broker: Broker, worker: Any) -> list[Any]:
    return broker.wait_for(lambda: [*worker.poll(0.1)], SETTLE_S, "records")


def test_a_released_record_is_delivered_again_and_an_accepted_one_is_not(broker: Broker, worker: Any) -> None:
    (first,) = polled(broker, worker)
    assert (first.value(), first.delivery_count()) == (b"job", 1)
    worker.acknowledge(first, AcknowledgeType.RELEASE)
    (again,) = polled(broker, worker)
    assert (again.offset(), again.delivery_count()) == (first.offset(), 2)
    worker.acknowledge(again, AcknowledgeType.ACCEPT)
    assert set(worker.commit_sync(SETTLE_S).values()) == {None}
    broker.produce(first.topic(), ["next"])
    assert [one.value() for one in polled(broker, worker)] == [b"next"]


def test_the_clock_ends_a_lock(broker: Broker, worker: Any) -> None:
    (held,) = polled(broker, worker)
    with broker.share_consumer(held.topic(), held.topic(), share_acknowledgement_mode="explicit") as other:
        broker.clock.advance(seconds=LOCK_S)
        (taken,) = polled(broker, other)
        assert (taken.offset(), taken.delivery_count()) == (held.offset(), 2)


def test_an_acknowledgement_can_fail(broker: Broker, worker: Any) -> None:
    (record,) = polled(broker, worker)
    fault = broker.faults.error("ShareAcknowledge", "INVALID_RECORD_STATE", times=1)
    worker.acknowledge(record, AcknowledgeType.ACCEPT)
    (error,) = worker.commit_sync(SETTLE_S).values()
    assert error is not None
    assert error.args[0].name() == "INVALID_RECORD_STATE"
    assert fault.hits == 1


@pytest.mark.parametrize(
    "api",
    [
        "ShareGroupHeartbeat",
        "ShareFetch",
        "ShareAcknowledge",
        "ShareGroupDescribe",
        "DescribeShareGroupOffsets",
        "AlterShareGroupOffsets",
        "DeleteShareGroupOffsets",
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "WriteShareGroupState",
        "DeleteShareGroupState",
        "ReadShareGroupStateSummary",
    ],
)
def test_each_api_of_share_groups_has_its_faults(broker: Broker, api: Any) -> None:
    fault = broker.faults.error(api, "COORDINATOR_NOT_AVAILABLE", once=False, expect_unused=True)
    assert fault.hits == 0
    fault.remove()
