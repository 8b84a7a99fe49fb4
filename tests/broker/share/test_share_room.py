"""What share partitions take of the budget of who fetches them: charged as records are cut apart, and given back."""

from __future__ import annotations

import gc
from pathlib import Path

import trio
import trio.testing

from kpybroker.broker.share.led import CHANGES_MIN, LED_BYTES, RUN_BYTES
from kpybroker.core.budget import Owner
from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.runs import Run
from kpybroker.core.share.sessions import PARTITION_BYTES, SESSION_BYTES
from kpybroker.core.share_coordinator.values import SharePartitionKey
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import create_topic
from tests.support.share.members import Member, MemoryPersister, produce, rows, share_broker

SESSION = SESSION_BYTES + PARTITION_BYTES
RECORDS = 200
ACCEPT = [1]
DEADLINE_S = 60


async def test_runs_are_charged_as_they_are_cut_and_given_back_when_they_are_finished(tmp_path: Path) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        member = Member(broker, topic_id)
        await member.open()
        owner = Owner(address=member.connection.client_host)
        began = broker.budget.held(owner)
        assert began == SESSION + LED_BYTES
        produce(broker, *[b"x"] * RECORDS)
        assert rows(await member.fetch(max_records=RECORDS)) == [(0, RECORDS - 1, 1)]
        assert broker.budget.held(owner) <= began + RUN_BYTES * CHANGES_MIN, "one run"
        for offset in range(1, RECORDS, 2):
            await member.acknowledge({0: [(offset, offset, ACCEPT)]})
        led = broker.coordinators.share_partitions.get(SharePartitionKey("g", topic_id, 0))
        assert led is not None
        assert led.machine is not None
        assert len(list(led.machine.runs())) == RECORDS
        assert broker.budget.held(owner) >= began + RUN_BYTES * RECORDS
        await member.acknowledge({0: [(offset, offset, ACCEPT) for offset in range(0, RECORDS, 2)]})
        assert not list(led.machine.runs())
        assert broker.budget.held(owner) <= began + RUN_BYTES * CHANGES_MIN
        broker.coordinators.share_partitions.disconnected(member.connection.connection_id)
        assert broker.budget.held(owner) == 0


async def test_nothing_of_a_share_partition_is_left_when_its_last_member_is_gone(tmp_path: Path) -> None:
    """Two hundred runs, half of them with a member whose connection is lost."""
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        member = Member(broker, topic_id)
        await member.open()
        produce(broker, *[b"x"] * RECORDS)
        await member.fetch(max_records=RECORDS)
        for offset in range(1, RECORDS, 2):
            await member.acknowledge({0: [(offset, offset, ACCEPT)]})
        gc.collect()
        assert count_of(Run) >= RECORDS
        partitions = broker.coordinators.share_partitions
        partitions.disconnected(member.connection.connection_id)
        with trio.fail_after(DEADLINE_S):
            while partitions.get(SharePartitionKey("g", topic_id, 0)) is not None:
                await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        assert (count_of(Run), count_of(SharePartition)) == (0, 0)


def count_of(kind: type) -> int:
    return sum(type(one) is kind for one in gc.get_objects())


async def test_who_has_no_room_gets_no_share_partition(tmp_path: Path) -> None:
    room = SESSION + 2 * PARTITION_BYTES + LED_BYTES
    async with share_broker(tmp_path, MemoryPersister(), kpybroker_max_state_bytes_per_ip=str(room)) as broker:
        topic_id = await create_topic(broker, "t", 2)
        member = Member(broker, topic_id)
        await member.open()
        produce(broker, b"x")
        found = await member.fetch([1], max_wait_ms=0)
        errors = {one.partition_index: one.error_code for topic in found.responses for one in topic.partitions}
        assert errors[1] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert errors.get(0, ErrorCode.NONE) == ErrorCode.NONE
        produce(broker, b"y")
        assert rows(await member.fetch(max_wait_ms=0)) != [], "what it has goes on"
