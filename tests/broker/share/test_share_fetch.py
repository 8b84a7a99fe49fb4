"""ShareFetch and ShareAcknowledge at a broker: what members get, wait for, acknowledge and lose."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.core.share_coordinator.values import SharePartitionKey, StateBatch
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_fetch import ShareFetchResponse
from tests.support.brokers.running_broker import create_topic
from tests.support.share.members import (
    Member,
    MemoryPersister,
    data_of,
    finalize_share_version,
    offsets,
    produce,
    rows,
    share_broker,
)

LOCK_S = 30.0
ACCEPT, RELEASE, REJECT, RENEW = [1], [2], [3], [4]


async def test_records_are_acquired_once_and_accepted_for_good(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    persister = MemoryPersister()
    async with share_broker(tmp_path, persister) as broker:
        topic_id = await create_topic(broker, "t")
        one, two = Member(broker, topic_id, "m1"), Member(broker, topic_id, "m2")
        await one.open()
        await two.open()
        produce(broker, b"a", b"b", b"c")
        response = await one.fetch()
        assert rows(response) == [(0, 2, 1)]
        assert offsets(response) == [0, 1, 2]
        assert response.acquisition_lock_timeout_ms == LOCK_S * 1000
        assert rows(await two.fetch()) == []
        response = await one.fetch(acks={0: [(0, 2, ACCEPT)]})
        data = data_of(response)
        assert data is not None
        assert (data.acknowledge_error_code, data.acquired_records) == (0, [])
        key = SharePartitionKey("g", topic_id, 0)
        assert persister.states[key].start_offset in (0, 3)
        assert persister.states[key].offsets == dict.fromkeys(range(3), (2, 1))
        produce(broker, b"d")
        assert rows(await two.fetch()) == [(3, 3, 1)]


async def test_a_fetch_waits_for_records(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        await member.open()
        responses: list[ShareFetchResponse] = []

        async def fetch() -> None:
            responses.append(await member.fetch(max_wait_ms=5_000))

        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            nursery.start_soon(fetch)
            await trio.sleep(1)
            assert not responses
            produce(broker, b"a")
        assert trio.current_time() - began == pytest.approx(1)
        assert rows(responses[0]) == [(0, 0, 1)]
        began = trio.current_time()
        assert rows(await member.fetch(max_wait_ms=5_000)) == []
        assert trio.current_time() - began == pytest.approx(5)
        assert broker.coordinators.share_partitions.fetches.waiting == 0


async def test_a_fetch_waits_for_records_that_another_member_releases(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        one, two = Member(broker, topic_id, "m1"), Member(broker, topic_id, "m2")
        await one.open()
        await two.open()
        produce(broker, b"a", b"b")
        assert rows(await one.fetch()) == [(0, 1, 1)]
        responses: list[ShareFetchResponse] = []

        async def fetch() -> None:
            responses.append(await two.fetch(max_wait_ms=60_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            await trio.sleep(1)
            response = await one.acknowledge({0: [(1, 1, RELEASE)]})
            assert response.responses[0].partitions[0].error_code == 0
        assert rows(responses[0]) == [(1, 1, 2)]


@pytest.mark.parametrize("is_read_first", [False, True])
async def test_a_fetch_waits_for_its_share_partition_to_be_read(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
    is_read_first: bool,
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        produce(broker, b"a")
        if is_read_first:
            await member.open()
        began = trio.current_time()
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(0, 0, 1)]
        assert trio.current_time() == began


async def test_locks_run_out_and_the_last_attempt_archives(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    persister = MemoryPersister()
    async with share_broker(tmp_path, persister) as broker:
        topic_id = await create_topic(broker, "t")
        one, two = Member(broker, topic_id, "m1"), Member(broker, topic_id, "m2")
        await one.open()
        await two.open()
        produce(broker, b"a")
        for attempt in range(1, 6):
            began = trio.current_time()
            response = await (one, two)[attempt % 2].fetch(max_wait_ms=60_000)
            assert rows(response) == [(0, 0, attempt)]
            assert trio.current_time() - began == pytest.approx(0 if attempt == 1 else LOCK_S)
        assert rows(await one.fetch(max_wait_ms=60_000)) == []
        assert persister.states[SharePartitionKey("g", topic_id, 0)].offsets[0] == (4, 5)


async def test_an_acknowledgement_of_what_another_member_holds_is_refused(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        one, two = Member(broker, topic_id, "m1"), Member(broker, topic_id, "m2")
        await one.open()
        await two.open()
        produce(broker, b"a", b"b")
        await one.fetch()
        response = await two.acknowledge({0: [(0, 1, ACCEPT)]})
        (refused,) = response.responses[0].partitions
        assert (refused.error_code, refused.error_message) == (
            ErrorCode.INVALID_RECORD_STATE,
            "Member is not the owner of batch record",
        )
        assert (await one.acknowledge({0: [(0, 1, ACCEPT)]})).responses[0].partitions[0].error_code == 0


async def test_a_response_waits_until_acknowledgements_are_persisted_and_says_if_that_fails(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    persister = MemoryPersister()
    async with share_broker(tmp_path, persister) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        produce(broker, b"a")
        await member.open()
        await member.fetch()
        persister.gate = trio.Event()
        persister.errors = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        codes: list[int] = []

        async def acknowledge() -> None:
            response = await member.acknowledge({0: [(0, 0, ACCEPT)]})
            codes.append(response.responses[0].partitions[0].error_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(acknowledge)
            await trio.sleep(1)
            assert not codes
            persister.gate.set()
        assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        await acknowledge()  # it is still held
        assert codes[1:] == [0]


async def test_what_is_changed_during_a_write_goes_into_the_next_one(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    persister = MemoryPersister()
    async with share_broker(tmp_path, persister) as broker:
        topic_id = await create_topic(broker, "t")
        members = [Member(broker, topic_id, f"m{number}") for number in range(4)]
        for place, member in enumerate(members):
            await member.open()
            produce(broker, b"a")
            assert rows(await member.fetch()) == [(place, place, 1)]
        persister.gate = trio.Event()
        async with trio.open_nursery() as nursery:
            for place, member in enumerate(members):
                nursery.start_soon(member.acknowledge, {0: [(place, place, ACCEPT)]})
                await trio.testing.wait_all_tasks_blocked()
            persister.gate.set()
        first, second = persister.writes
        assert first.state_batches == (StateBatch(0, 0, 2, 1),)
        assert second.state_batches == tuple(StateBatch(place, place, 2, 1) for place in (1, 2, 3))


@pytest.mark.parametrize("by", ["fetch", "acknowledge", "disconnect"])
async def test_the_end_of_a_session_releases_what_the_member_holds(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, by: str
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        one, two = Member(broker, topic_id, "m1"), Member(broker, topic_id, "m2")
        await one.open()
        await two.open()
        produce(broker, b"a", b"b", b"c")
        assert rows(await one.fetch()) == [(0, 2, 1)]
        one.epoch = -1
        match by:
            case "fetch":
                response = await one.fetch(acks={0: [(0, 0, ACCEPT)]})
                data = data_of(response)
                assert data is not None
                assert data.acknowledge_error_code == 0
            case "acknowledge":
                await one.acknowledge({0: [(0, 0, ACCEPT)]})
            case "disconnect":
                broker._disconnected(one.connection.connection_id)
        expected = [(0, 2, 2)] if by == "disconnect" else [(1, 2, 2)]
        assert rows(await two.fetch(max_wait_ms=1_000)) == expected
        with pytest.raises(AssertionError):
            assert (await one.acknowledge({})).error_code == 0
        assert len(broker.coordinators.share_partitions.sessions) == 1


async def test_a_group_without_sessions_keeps_nothing_in_memory_and_goes_on_where_it_was(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        produce(broker, b"a", b"b")
        member = Member(broker, topic_id)
        await member.open()
        await member.fetch()
        await member.acknowledge({0: [(0, 0, REJECT)]})
        broker._disconnected(member.connection.connection_id)
        await trio.testing.wait_all_tasks_blocked()
        share_partitions = broker.coordinators.share_partitions
        assert (len(share_partitions), len(share_partitions._led_of)) == (0, 0)
        assert not broker.replicas.hosted("t", 0)._sessions
        member.epoch = 0
        assert rows(await member.fetch(max_wait_ms=1_000)) == [(1, 1, 2)]


async def test_lost_leadership_ends_waiting_fetches_and_names_the_new_leader(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        await member.open()
        responses: list[ShareFetchResponse] = []

        async def fetch() -> None:
            responses.append(await member.fetch(max_wait_ms=5_000))

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            await trio.sleep(1)
            broker.replicas.hosted("t", 0).follow(2, 7, [2])
        responses.append(await member.fetch(max_wait_ms=5_000))
        assert trio.current_time() - began == pytest.approx(1)
        for response in responses:
            data = data_of(response)
            assert data is not None
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 7)
        acknowledged = await member.acknowledge({0: [(0, 0, ACCEPT)]})
        assert acknowledged.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_retention_moves_the_start(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        for _ in range(5):
            produce(broker, b"a")
        await member.open()
        broker.replicas.hosted("t", 0).delete_records(3)
        assert rows(await member.fetch()) == []
        assert rows(await member.fetch()) == [(3, 4, 1)]


async def test_a_failed_read_of_the_state_is_the_error_of_the_partition(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    persister = MemoryPersister()
    persister.read_error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    async with share_broker(tmp_path, persister) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        produce(broker, b"a")
        data = data_of(await member.fetch(max_wait_ms=1_000))
        assert data is not None
        assert data.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        persister.read_error = ErrorCode.NONE
        assert rows(await member.fetch(max_wait_ms=1_000)) == [(0, 0, 1)]
        assert persister.reads == 2


async def test_a_fenced_write_ends_the_share_partition(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    persister = MemoryPersister()
    async with share_broker(tmp_path, persister) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        produce(broker, b"a")
        await member.open()
        await member.fetch()
        persister.errors = [ErrorCode.FENCED_STATE_EPOCH]
        response = await member.acknowledge({0: [(0, 0, ACCEPT)]})
        assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(broker.coordinators.share_partitions) == 0
        assert rows(await member.fetch(max_wait_ms=1_000)) == [(0, 0, 1)]


async def test_only_batches_with_acquired_records_are_sent(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        topic_id = await create_topic(broker, "t")
        one, two = Member(broker, topic_id, "m1"), Member(broker, topic_id, "m2")
        await one.open()
        await two.open()
        for _ in range(3):
            produce(broker, b"a", b"b")
        response = await one.fetch(max_records=1)
        assert rows(response) == [(0, 1, 1)]
        assert offsets(response) == [0, 1]
        response = await two.fetch(max_records=3)
        assert rows(response) == [(2, 5, 1)]
        assert offsets(response) == [2, 3, 4, 5]


async def test_a_strict_limit_is_kept_within_a_batch(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        produce(broker, b"a", b"b", b"c", b"d")
        await member.open()
        response = await member.fetch(max_records=3, share_acquire_mode=1)
        assert rows(response) == [(0, 2, 1)]
        assert offsets(response) == [0, 1, 2, 3]


async def test_without_the_feature_all_is_refused(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with share_broker(tmp_path, MemoryPersister()) as broker:
        member = Member(broker, await create_topic(broker, "t"))
        finalize_share_version(broker, 0)
        assert (await member.fetch()).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await member.acknowledge({})).error_code == ErrorCode.UNSUPPORTED_VERSION
