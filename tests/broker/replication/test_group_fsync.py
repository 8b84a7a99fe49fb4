"""Group fsync on a whole broker: what waits for the disk, which requests share an fsync, and what a failed one does."""

from __future__ import annotations

import errno
import queue
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.config_requests import DELETE, SET, TOPIC, incremental
from tests.support.storage.batches import batch
from tests.support.storage.lossy_files import LossyFiles

LOGS = Path("/logs")
OTHER_LOGS = Path("/other")
WITHOUT_LIMIT = str(2**63 - 1)


class Disk(LossyFiles):
    """Counts the fsyncs of topic t's segments. While it `holds`, each waits until `let` releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0
        self.holds = False
        self.fails = False
        self._begun: queue.Queue[None] = queue.Queue()
        self._permits: queue.Queue[None] = queue.Queue()
        self.before_operation = self._sync

    def _sync(self, _number: int, kind: str, path: str) -> None:
        if kind != "sync" or "/t-" not in path or not path.endswith(names.LOG_SUFFIX):
            return
        self.syncs += 1
        if self.holds:
            self._begun.put(None)
            self._permits.get()
        if self.fails:
            raise OSError(errno.EIO, "the disk is broken")

    async def begun(self) -> None:
        """Until an fsync is under way."""
        await trio.to_thread.run_sync(self._begun.get)

    def let(self, count: int = 1) -> None:
        for _ in range(count):
            self._permits.put(None)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@asynccontextmanager
async def broker_on(disk: Disk, directory: Path = LOGS, **keys: Any) -> AsyncIterator[Broker]:
    async with running_broker(directory, files=disk, **keys) as broker:
        try:
            yield broker
        finally:
            disk.holds = disk.fails = False
            disk.let(100)


def log_of(broker: Broker, index: int = 0) -> Log:
    log = broker.logs.get("t", index)
    assert log is not None
    return log


async def write(broker: Broker, *, index: int = 0, acks: int = -1, records: int = 1) -> tuple[int, int]:
    """(error code, base offset)"""
    data = ProduceRequest.PartitionProduceData(index=index, records=bytes(batch(*[b"v"] * records)))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    response = await ask(broker, ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[topic]), 9)
    found = response.responses[0].partition_responses[0]
    return found.error_code, found.base_offset


async def readable(broker: Broker) -> tuple[int, int]:
    """(high watermark, bytes) that a consumer gets."""
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="t", partitions=[wanted])], max_wait_ms=0)
    found = (await ask(broker, request, 11)).responses[0].partitions[0]
    return found.high_watermark, len(bytes(found.records or b""))


async def alter(broker: Broker, key: str, value: str | None) -> None:
    operation = DELETE if value is None else SET
    await ask(broker, incremental((TOPIC, "t", [(key, operation, value)])), 1)


async def until(condition: Callable[[], bool]) -> None:
    """Mock time does not wait for threads, so give them many seconds of it."""
    for _ in range(100_000):
        if condition():
            return
        await trio.sleep(1)
    raise AssertionError("never")


@pytest.mark.parametrize("acks", [1, -1])
async def test_appends_during_an_fsync_share_the_next_and_are_invisible_until_then(disk: Disk, acks: int) -> None:
    async with broker_on(disk) as broker:
        await create_topic(broker, "t", flush_messages="1")
        responses: list[tuple[int, int]] = []

        async def produce() -> None:
            responses.append(await write(broker, acks=acks))

        disk.holds = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            await disk.begun()
            for _ in range(10):
                nursery.start_soon(produce)
            await trio.testing.wait_all_tasks_blocked()
            assert (log_of(broker).log_end_offset, disk.syncs, responses) == (11, 1, [])
            assert await readable(broker) == (0, 0)
            disk.let()
            await disk.begun()
            assert (responses, disk.syncs) == ([(0, 0)], 2)
            assert (await readable(broker))[0] == 1
            disk.let()
        assert (disk.syncs, sorted(responses)) == (2, [(0, offset) for offset in range(11)])
        assert (await readable(broker))[0] == 11


async def test_partitions_do_not_wait_for_each_others_disk(disk: Disk) -> None:
    async with broker_on(disk) as broker:
        await create_topic(broker, "t", partitions=2, flush_messages="1")
        disk.holds = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, broker)
            await disk.begun()
            disk.holds = False
            assert await write(broker, index=1) == (0, 0)
            disk.let()


async def test_an_fsync_a_batch_of_records_as_flush_messages_says(disk: Disk) -> None:
    async with broker_on(disk) as broker:
        await create_topic(broker, "t", flush_messages="3")
        for _ in range(6):
            await write(broker)
        assert (disk.syncs, log_of(broker).recovery_point) == (2, 6)
        await write(broker, records=2)
        assert (disk.syncs, (await readable(broker))[0]) == (2, 8)
        await write(broker, records=2)
        assert (disk.syncs, log_of(broker).recovery_point) == (3, 10)


async def test_flush_messages_takes_effect_live(disk: Disk) -> None:
    async with broker_on(disk) as broker:
        await create_topic(broker, "t")
        await write(broker)
        assert disk.syncs == 0
        for value, syncs in (("1", 1), (WITHOUT_LIMIT, 1), ("1", 2), (None, 2)):
            await alter(broker, "flush.messages", value)
            await write(broker)
            assert disk.syncs == syncs, value


async def test_the_brokers_flush_interval_is_for_topics_without_their_own(disk: Disk) -> None:
    async with broker_on(disk, log_flush_interval_messages="1") as broker:
        await create_topic(broker, "t")
        await write(broker)
        assert disk.syncs == 1
        await alter(broker, "flush.messages", WITHOUT_LIMIT)
        await write(broker)
        assert disk.syncs == 1


async def test_flush_ms_takes_effect_live(disk: Disk, autojump_clock: trio.testing.MockClock) -> None:
    """The scheduler looks every ten seconds; the broker's own clock, which barely moves, decides what is due."""
    async with broker_on(disk, log_flush_scheduler_interval_ms="10000") as broker:
        await create_topic(broker, "t")
        await write(broker)
        await trio.sleep(11)
        assert disk.syncs == 0
        await alter(broker, "flush.ms", "0")
        await until(lambda: log_of(broker).recovery_point == 1)
        assert disk.syncs == 1
        await trio.sleep(11)
        assert disk.syncs == 1, "nothing new, nothing to sync"
        await alter(broker, "flush.ms", None)
        await write(broker)
        await trio.sleep(11)
        assert disk.syncs == 1


async def test_the_recovery_point_is_checkpointed_as_far_as_was_synced(
    disk: Disk, autojump_clock: trio.testing.MockClock
) -> None:
    def checkpointed() -> int | None:
        path = f"{LOGS}/{names.RECOVERY_POINT_CHECKPOINT}"
        return decode_offsets(read_file(disk, path) or b"", path).get(TopicPartition("t", 0))

    async with broker_on(disk, log_flush_offset_checkpoint_interval_ms="10000") as broker:
        await create_topic(broker, "t", flush_messages="1")
        await write(broker)
        await alter(broker, "flush.messages", None)
        await write(broker)
        await until(lambda: checkpointed() == 1)
        await trio.sleep(11)
        assert checkpointed() == 1
        await alter(broker, "flush.messages", "1")
        await write(broker)
        await until(lambda: checkpointed() == 3)


async def test_a_failed_fsync_acknowledges_nothing_and_takes_the_directory_offline(disk: Disk) -> None:
    async with broker_on(disk, log_dirs=f"{LOGS},{OTHER_LOGS}") as broker:
        await create_topic(broker, "t", flush_messages="1")
        assert await write(broker) == (0, 0)
        directory = log_of(broker).log_dir
        responses: list[tuple[int, int]] = []

        async def produce() -> None:
            responses.append(await write(broker))

        disk.holds = disk.fails = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            await disk.begun()
            for _ in range(3):
                nursery.start_soon(produce)
            await trio.testing.wait_all_tasks_blocked()
            disk.let()
        assert responses == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)] * 4
        assert disk.syncs == 2, "never tried again"
        assert list(broker.logs.dirs.offline) == [directory]
        assert len(broker.logs.dirs.live) == 1
        assert (await write(broker))[0] in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def test_a_producer_that_disconnects_does_not_disturb_the_fsync_of_others(disk: Disk) -> None:
    async with broker_on(disk) as broker:
        await create_topic(broker, "t", flush_messages="1")
        disk.holds = True
        async with trio.open_nursery() as others:
            async with trio.open_nursery() as leaving:
                leaving.start_soon(write, broker)
                await disk.begun()
                others.start_soon(write, broker)
                await trio.testing.wait_all_tasks_blocked()
                leaving.cancel_scope.cancel()
                disk.let()
            await disk.begun()
            disk.let()
        assert (log_of(broker).recovery_point, (await readable(broker))[0]) == (2, 2)
