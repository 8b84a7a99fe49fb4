"""Share groups (KIP-932) with the test kit: a worker that accepts, releases and loses its lock, and its faults."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from confluent_kafka import AcknowledgeType

from kpybroker.testing import Broker, WaitTimeout

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
    name = request.node.originalname
    broker.create_topic(name)
    broker.produce(name, ["job"] * getattr(request, "param", 1))
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
    broker.assert_acknowledged(first.topic(), first.topic(), [first.offset()])
    broker.produce(first.topic(), ["next"])
    assert [one.value() for one in polled(broker, worker)] == [b"next"]


def test_the_clock_ends_a_lock(broker: Broker, worker: Any) -> None:
    (held,) = polled(broker, worker)
    name = held.topic()
    group = broker.share_group(name)
    assert group is not None
    (member,) = group.members
    assert group.acquired(name) == {0: member.member_id}
    assert group.delivery_counts(name) == {0: 1}
    (run,) = group.partitions[0].records
    assert run.locked_until_ms is not None
    assert 0 < run.locked_until_ms - broker.clock.now_ms() <= LOCK_S * 1000
    with pytest.raises(AssertionError, match="has not acknowledged"):
        broker.assert_acknowledged(name, name, [0])
    with broker.share_consumer(name, held.topic(), share_acknowledgement_mode="explicit") as other:
        broker.clock.advance(seconds=LOCK_S)
        (taken,) = polled(broker, other)
        assert (taken.offset(), taken.delivery_count()) == (held.offset(), 2)


@pytest.mark.parametrize("worker", [3], indirect=True, ids=["three"])
def test_what_is_kept_of_records_outlives_the_members(
    broker: Broker, worker: Any, request: pytest.FixtureRequest
) -> None:
    released, rejected, accepted = polled(broker, worker)
    worker.acknowledge(released, AcknowledgeType.RELEASE)
    name = released.topic()
    worker.acknowledge(rejected, AcknowledgeType.REJECT)
    worker.acknowledge(accepted, AcknowledgeType.ACCEPT)
    worker.commit_sync(SETTLE_S)
    worker.close()
    group = broker.wait_share_group(name, "Empty", members=0, timeout=SETTLE_S)
    assert group.why_archived(name) == {1: "rejected"}
    assert broker.share_group(name) == group, "it is known without a member, too"
    assert group.acquired(name) == {}
    assert group.archived(name) == [1]
    assert [group.is_done(name, offset) for offset in range(3)] == [False, False, True]
    (partition,) = group.partitions
    assert (partition.start_offset, partition.lag) == (0, 1)
    assert broker.share_group("other") is None


async def waited(broker: Broker, worker: Any) -> None:
    (record,) = await broker.aio.call(polled, broker, worker)
    name = record.topic()
    group = await broker.aio.wait_share_group(name, members=1, timeout=SETTLE_S)
    assert group.acquired(name) == {0: group.members[0].member_id}
    with pytest.raises(WaitTimeout, match=r"has not acknowledged \[0\]"):
        await broker.aio.wait_acknowledged(name, name, [0], timeout=0)
    worker.acknowledge(record)
    await broker.aio.call(worker.commit_sync, SETTLE_S)
    assert (await broker.aio.wait_acknowledged(name, name, [0], timeout=SETTLE_S)).is_done(name, 0)


def test_members_and_acknowledgements_are_awaited_in_asyncio(broker: Broker, worker: Any) -> None:
    asyncio.run(waited(broker, worker))


def test_members_and_acknowledgements_are_awaited_in_trio(broker: Broker, worker: Any) -> None:
    trio.run(waited, broker, worker)


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
