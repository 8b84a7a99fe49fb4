"""A share group with all its parts at one broker: group coordinator, share coordinator, leader; also over a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.share.members import Member, produce, rows

ACCEPT, RELEASE, REJECT = [1], [2], [3]
KEYS: dict[str, Any] = {
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
}


@asynccontextmanager
async def whole_broker(directory: Path, **keys: Any) -> AsyncIterator[Broker]:
    async with running_broker(directory, keeps=True, **KEYS, **keys) as broker:
        yield broker


async def join(broker: Broker, member_id: str) -> None:
    """Until the member has topic `t`: its state is initialized before."""
    epoch = 0
    await ask(broker, FindCoordinatorRequest(coordinator_keys=["g"]), 4)  # creates the topic of groups
    with trio.fail_after(60):
        while True:
            names = ["t"] if epoch == 0 else None
            request = ShareGroupHeartbeatRequest(
                group_id="g", member_id=member_id, member_epoch=epoch, subscribed_topic_names=names
            )
            response = await ask(broker, request, 1)
            if response.error_code == ErrorCode.NONE:
                epoch = response.member_epoch
                if response.assignment is not None and response.assignment.topic_partitions:
                    return
            await trio.sleep(0.02)


async def member_that_holds_two(broker: Broker) -> Member:
    """Of the group of one member, which has the first two records of its topic."""
    topic_id = await create_topic(broker, "t")
    await join(broker, "m")
    member = Member(broker, topic_id)
    assert rows(await member.fetch(max_wait_ms=200)) == []
    produce(broker, b"a", b"b")
    assert rows(await member.fetch(max_wait_ms=5_000)) == [(0, 1, 1)]
    return member


async def test_a_group_consumes_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with whole_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        await join(broker, "m")
        member = Member(broker, topic_id)
        assert rows(await member.fetch(max_wait_ms=200)) == []  # the group begins at the end of the log
        produce(broker, *[b"x"] * 6)
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(0, 5, 1)]
        acknowledged = await member.acknowledge({0: [(0, 1, ACCEPT), (2, 2, REJECT), (3, 3, RELEASE)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.NONE
    async with whole_broker(tmp_path) as broker:
        await join(broker, "n")
        member = Member(broker, topic_id, "n")
        # what was released has its delivery on record; what was held when the broker stopped has none
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(3, 3, 2), (4, 5, 1)]
        acknowledged = await member.acknowledge({0: [(3, 5, ACCEPT)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.NONE
    async with whole_broker(tmp_path) as broker:
        await join(broker, "o")
        member = Member(broker, topic_id, "o")
        assert rows(await member.fetch(max_wait_ms=300)) == []
        produce(broker, b"y")
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(6, 6, 1)]


async def test_what_a_fetch_releases_is_for_the_next_one_if_there_is_anything_else(tmp_path: Path) -> None:
    async with whole_broker(tmp_path) as broker:
        member = await member_that_holds_two(broker)
        produce(broker, b"c")
        response = await member.fetch(acks={0: [(0, 0, ACCEPT), (1, 1, RELEASE)]}, max_wait_ms=5_000)
        assert rows(response) == [(2, 2, 1)]
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(1, 1, 2)]


async def test_a_fetch_that_has_to_wait_gets_what_it_releases(tmp_path: Path) -> None:
    async with whole_broker(tmp_path) as broker:
        member = await member_that_holds_two(broker)
        with trio.fail_after(60):  # else it would wait for so long as it may
            response = await member.fetch(acks={0: [(0, 0, ACCEPT), (1, 1, RELEASE)]}, max_wait_ms=600_000)
        assert rows(response) == [(1, 1, 2)]


async def test_what_a_fetch_that_fails_acknowledges_is_persisted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("as the test says")

    async with whole_broker(tmp_path) as broker:
        member = await member_that_holds_two(broker)
        with monkeypatch.context() as patched:
            patched.setattr(broker.coordinators.share_partitions.fetches, "fetch", fails)
            response = await member.fetch(acks={0: [(0, 0, ACCEPT)]})
            assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        (led,) = broker.coordinators.share_partitions.led
        assert not led.writes
        assert not led.is_writing
        assert led.machine is not None
        assert led.machine.start_offset == 1


async def test_a_partition_that_no_group_has_initialized_cannot_be_fetched(tmp_path: Path) -> None:
    async with whole_broker(tmp_path) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        response = await member.fetch(max_wait_ms=5_000)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert len(broker.coordinators.share_partitions) == 0


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.persister.NoOpStatePersister"])
async def test_states_that_are_not_kept_need_no_topic_and_end_with_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(KEYS, "group_share_persister_class_name", name)
    async with whole_broker(tmp_path) as broker:
        member = await member_that_holds_two(broker)
        acknowledged = await member.acknowledge({0: [(0, 0, ACCEPT)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert not broker.metadata.contains("__share_group_state")
    async with whole_broker(tmp_path) as broker:
        await join(broker, "n")
        member = Member(broker, member.topic_id, "n")
        assert rows(await member.fetch(max_wait_ms=200)) == []  # the end of the log again
        produce(broker, b"c")
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(2, 2, 1)]
