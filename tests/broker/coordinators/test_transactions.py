"""The transaction coordinators on a whole broker: what readers see, restarts, timeouts, leadership."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.core.features import TRANSACTION_VERSION, Ranges, VersionRange
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.core.transaction.values import InitProducerId
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import (
    Producer,
    completed,
    fetched,
    loaded,
    one_producer,
    read,
    transactional_broker,
)

# --- what readers see


async def test_only_committed_data_are_read(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.transact(b"a", b"b")
        await producer.transact(b"c", committed=False)
        await producer.transact(b"d")
        assert await producer.add(0) is ErrorCode.NONE
        assert await producer.write(b"open") is ErrorCode.NONE
        assert await read(broker) == [b"a", b"b", b"d"]
        everything = await fetched(broker, committed=False)
        assert (everything.high_watermark, everything.last_stable_offset) == (8, 7)


async def test_an_open_transaction_holds_back_what_is_written_after_it(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        slow, quick = Producer(broker, "slow"), Producer(broker, "quick")
        for producer in (slow, quick):
            await producer.init()
            await producer.add(0)
        await slow.write(b"slow")
        await quick.write(b"quick")
        await quick.end(True)
        await completed(broker, "quick")
        assert await read(broker) == []
        await slow.end(False)
        await completed(broker, "slow")
        assert await read(broker) == [b"quick"]


async def test_a_marker_wakes_a_waiting_reader(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    """Even though the marker is smaller than what the reader waits for: the data was there before."""
    async with one_producer(tmp_path, 0) as (broker, producer):
        found: list[Any] = []

        async def wait() -> None:
            from kpybroker.wire.messages.fetch import FetchRequest

            partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1_000_000)
            request = FetchRequest(
                isolation_level=1,
                max_bytes=1_000_000,
                max_wait_ms=3_600_000,
                min_bytes=150,
                topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
                session_epoch=-1,
            )
            found.append(await ask(broker, request, 11))

        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await producer.write(b"x" * 100)
            await trio.testing.wait_all_tasks_blocked()
            assert found == []
            await producer.end(True)
        assert found[0].responses[0].partitions[0].last_stable_offset == 2
        assert trio.current_time() - started < 3_600


# --- groups


async def committed_offset(broker: Broker) -> tuple[int, int]:
    """(error, offset) of t-0 for a reader that wants stable offsets."""
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    response = await ask(broker, OffsetFetchRequest(group_id="g", topics=[topic], require_stable=True), 7)
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


async def test_offsets_count_with_their_transaction(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        for offset, committed, expected in ((5, True, 5), (9, False, 5), (11, True, 11)):
            assert await producer.add_offsets() is ErrorCode.NONE
            assert await producer.commit_offset(offset) is ErrorCode.NONE
            assert await committed_offset(broker) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
            assert await producer.end(committed) is ErrorCode.NONE
            await completed(broker)
            assert await committed_offset(broker) == (ErrorCode.NONE, expected)


# --- restarts


async def test_an_open_transaction_survives_a_restart_and_is_committed_then(tmp_path: Path) -> None:
    async with one_producer(tmp_path, 0, keeps=True) as (broker, producer):
        await producer.write(b"before")
        await producer.add_offsets()
        await producer.commit_offset(7)
    async with transactional_broker(tmp_path, keeps=True) as broker:
        producer.broker = broker
        assert broker.transactions.describe("x").state == "Ongoing"
        assert await read(broker) == []
        assert await committed_offset(broker) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        assert await producer.write(b"after") is ErrorCode.NONE
        assert await producer.end(True) is ErrorCode.NONE
        assert await completed(broker) == "CompleteCommit"
        assert await read(broker) == [b"before", b"after"]
        assert await committed_offset(broker) == (ErrorCode.NONE, 7)


@pytest.mark.parametrize("committed", [True, False])
async def test_a_decision_is_carried_out_after_a_restart(
    tmp_path: Path, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await trio.sleep_forever()

    async with one_producer(tmp_path, 0, 1, keeps=True) as (broker, producer):
        await producer.write(b"a")
        await producer.write(b"b", index=1)
        with monkeypatch.context() as patched:
            patched.setattr(broker.markers, "write", never)
            assert await producer.end(committed) is ErrorCode.NONE
            await trio.testing.wait_all_tasks_blocked()
            assert await producer.add(2) is ErrorCode.CONCURRENT_TRANSACTIONS
    async with transactional_broker(tmp_path, keeps=True) as broker:
        assert await completed(broker) == ("CompleteCommit" if committed else "CompleteAbort")
        assert await read(broker) == ([b"a"] if committed else [])
        assert await read(broker, index=1) == ([b"b"] if committed else [])
        assert (await fetched(broker, index=1)).last_stable_offset == 2


async def test_epochs_continue_after_a_restart(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path, keeps=True) as broker:
        zombie = Producer(broker)
        await zombie.init()
    async with transactional_broker(tmp_path, keeps=True) as broker:
        producer = Producer(broker)
        assert await producer.init() is ErrorCode.NONE
        assert (producer.producer_id, producer.epoch) == (zombie.producer_id, zombie.epoch + 1)
        zombie.broker = broker
        assert await zombie.add(0) is ErrorCode.PRODUCER_FENCED
        assert await zombie.write(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH


# --- time


async def test_a_transaction_left_open_is_aborted(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with transactional_broker(tmp_path) as broker:
        producer = Producer(broker, timeout_ms=30_000)
        await producer.init()
        await producer.add(0)
        await producer.write(b"forgotten")
        await trio.sleep(29)
        assert broker.transactions.describe("x").state == "Ongoing"
        await trio.sleep(12)
        assert await completed(broker) == "CompleteAbort"
        assert (await fetched(broker)).last_stable_offset == 2
        assert await read(broker) == []
        assert await producer.end(True) is ErrorCode.PRODUCER_FENCED
        assert await producer.write(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_an_unused_id_is_forgotten(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    keys: dict[str, Any] = {
        "transactional_id_expiration_ms": "360000",
        "transaction_remove_expired_transaction_cleanup_interval_ms": "6000",
        # without this, retention would remove segments after a mock week
        "log_retention_ms": "-1",
        # mock time waits for every checkpoint of the high watermark, and hundreds would be due
        "replica_high_watermark_checkpoint_interval_ms": "3600000",
    }
    async with transactional_broker(tmp_path, **keys) as broker:
        await Producer(broker, "used").init()
        await Producer(broker, "unused").init()
        await trio.sleep(300)
        await Producer(broker, "used").init()
        await trio.sleep(70)
        assert broker.transactions.describe("unused").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert broker.transactions.describe("used").error is ErrorCode.NONE


# --- leadership


async def test_only_the_leader_of_an_ids_partition_serves_the_id(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        await Producer(broker).init()
        index = coordinator_partition("x", 2)
        broker.transactions.on_resigned(index)
        for refused in (lambda: broker.transactions.describe("x"), lambda: broker.transactions.verify("x", 0, 0, ())):
            with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.NOT_COORDINATOR):
                refused()
        broker.transactions.on_elected(index, 5)
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            broker.transactions.list_transactions(lambda row: True)
        await loaded(broker)
        assert [row.transactional_id for row in broker.transactions.list_transactions(lambda row: True)] == ["x"]


async def test_a_coordinator_that_stops_is_not_available(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        broker.transactions.stop()
        for refused in (
            lambda: broker.transactions.describe("x"),
            lambda: broker.transactions.list_transactions(lambda row: True),
        ):
            with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE):
                refused()


async def test_ids_are_claimed_only_when_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with transactional_broker(tmp_path) as broker:
        claimed = 0

        async def generate() -> int:
            nonlocal claimed
            claimed += 1
            await trio.lowlevel.checkpoint()
            return 1000 + claimed

        monkeypatch.setattr(broker.producer_ids, "generate", generate)
        first = await broker.transactions.init_producer_id(InitProducerId("x", 1000))
        second = await broker.transactions.init_producer_id(InitProducerId("x", 1000))
        assert (first.producer_id, second.producer_id, claimed) == (1001, 1001, 1)
        refused = await broker.transactions.init_producer_id(InitProducerId("y", 900_001))
        assert (refused.error, claimed) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, 1)


async def test_two_producers_that_begin_at_once_get_one_id(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        producers = [Producer(broker), Producer(broker)]
        async with trio.open_nursery() as nursery:
            for producer in producers:
                nursery.start_soon(producer.init)
        assert {producer.producer_id for producer in producers} == {producers[0].producer_id}
        assert sorted(producer.epoch for producer in producers) == [0, 1]


# --- the level of transaction.version


LEVELS: dict[int, Ranges] = {level: {TRANSACTION_VERSION: VersionRange(0, level)} for level in (0, 1, 2)}


@pytest.mark.parametrize("level", LEVELS)
async def test_the_level_decides_how_values_are_written_and_the_request_how_a_transaction_ends(
    tmp_path: Path, level: int
) -> None:
    """A producer of version 2 goes on in it below level 2: what it began before a downgrade ends as it began."""
    async with one_producer(tmp_path, features=LEVELS[level]) as (broker, producer):
        assert broker.metadata.snapshot.features.level(TRANSACTION_VERSION) == level
        epoch = producer.epoch
        for n, value in enumerate((b"a", b"b")):
            assert await producer.write(value, version=12) is ErrorCode.NONE
            assert await producer.commit_offset(n, version=5) is ErrorCode.NONE
            assert await producer.end(True, 5) is ErrorCode.NONE
            assert await completed(broker) == "CompleteCommit"
            assert producer.epoch == epoch + n + 1
        assert await read(broker) == [b"a", b"b"]
        shard = broker.transactions.partitions.shard_for("x")
        found = shard.partition.online_log().read(0, 1_000_000).slice
        assert found is not None
        data = found.read()
        found.release()
        values = [
            bytes(record.value or b"")
            for position, header in iter_batches(data)
            for record in iter_records(data, header, position)
        ]
        assert len(values) > 4
        assert {int.from_bytes(value[:2], "big") for value in values} == {min(level, 1)}


@pytest.mark.parametrize("level", LEVELS)
async def test_a_timeout_aborts_as_the_level_says(tmp_path: Path, level: int) -> None:
    """With a marker of a later epoch in each: before level 2 that fences alone, from it on it is the end's own."""
    keys = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "1"}
    async with one_producer(tmp_path, features=LEVELS[level], **keys) as (broker, producer):
        producer.timeout_ms = 1
        await producer.init()
        epoch = producer.epoch
        assert await producer.write(b"a", version=12) is ErrorCode.NONE
        while broker.transactions.describe("x").state != "CompleteAbort":
            await trio.lowlevel.checkpoint()
        found = broker.transactions.partitions.shard_for("x").machine.transactions["x"].current
        assert (found.producer_epoch, found.version) == (epoch + 1, 2 if level == 2 else 0)
        assert await producer.write(b"late", version=12) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await read(broker) == []
