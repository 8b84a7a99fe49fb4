"""The group coordinators' shell: loading, moving, waiting for the high watermark, timers, cleanup, failures."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.coordinators import record_versions
from kpybroker.core.group.records import RecordVersions
from kpybroker.core.group.values import (
    CommitOffsets,
    CommitResult,
    DescribeGroup,
    FetchOffsets,
    FetchOffsetsResult,
    Join,
    JoinResult,
    Sync,
    SyncResult,
)
from kpybroker.core.offsets.values import OffsetAndMetadata, coordinator_partition
from kpybroker.storage.errors import LogDirError
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from tests.support.fake_broker import FakeBroker, fake_broker

T0 = ("t", 0)


def commit(group_id: str = "g", offset: int = 1, producer_id: int = -1) -> CommitOffsets:
    value = OffsetAndMetadata(offset, -1, "", 0)
    return CommitOffsets(group_id, "", None, -1, {T0: value}, producer_id, 0)


def fetch(group_id: str = "g", require_stable: bool = False) -> FetchOffsets:
    return FetchOffsets(group_id, (T0,), require_stable)


def join(member_id: str = "", *, new_id: str = "c-1", session_ms: int = 6_000) -> Join:
    return Join("g", member_id, None, new_id, "c", "/h", 60_000, session_ms, "consumer", (("p", b""),), False, True, "")


async def committed(broker: FakeBroker, group_id: str = "g") -> int:
    result: FetchOffsetsResult = await broker.groups.ask(fetch(group_id))
    assert result.error is ErrorCode.NONE
    return result.offsets[T0].offset


async def stable_member(broker: FakeBroker) -> None:
    """c-1, alone in group g."""
    joined: JoinResult = await broker.groups.ask(join())
    synced: SyncResult = await broker.groups.ask(
        Sync("g", joined.generation_id, "c-1", None, None, None, {"c-1": b"x"})
    )
    assert synced == SyncResult(ErrorCode.NONE, "consumer", "p", b"x")


async def refusal(broker: FakeBroker, request: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await broker.groups.ask(request)
    return caught.value.code


# -- leadership and loading --------------------------------------------------------------------------------------------


async def test_only_the_leader_of_a_groups_partition_answers_for_it() -> None:
    async with fake_broker(4, leads=False) as broker:
        index = coordinator_partition("g", 4)
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR
        await broker.lead(index)
        assert await committed(broker) == -1
        broker.groups.on_resigned(index, 0)
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR


async def test_while_it_loads_requests_are_refused() -> None:
    async with fake_broker(leads=False) as broker:
        broker.groups.on_elected(0, 0)
        assert await refusal(broker, fetch()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert broker.groups.list_groups((), ()) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
        await broker.loaded()
        assert await committed(broker) == -1


async def test_groups_and_offsets_survive_a_move() -> None:
    async with fake_broker(offsets_load_buffer_size="1") as broker:
        await stable_member(broker)
        for offset in range(20):
            await broker.groups.ask(commit("h", offset))
        broker.groups.on_resigned(0, 0)
        await broker.lead(0, 1)
        assert await committed(broker, "h") == 19
        described = await broker.groups.ask(DescribeGroup("g"))
        assert (described.state, described.members[0].assignment) == ("Stable", b"x")
        log = broker.partitions[0].online_log()
        assert len(log.slices) > 20
        assert {found.released for found in log.slices} == {1}


@pytest.mark.parametrize("codec", list(Codec))
async def test_the_offsets_topics_codec_is_honoured(codec: Codec) -> None:
    async with fake_broker(offsets_topic_compression_codec=str(codec.value)) as broker:
        await broker.groups.ask(commit(offset=7))
        ((_, header),) = iter_batches(broker.partitions[0].online_log().data)
        assert header.codec is codec
        broker.groups.on_resigned(0, 0)
        await broker.lead(0, 1)
        assert await committed(broker) == 7


async def test_an_older_epoch_neither_elects_nor_resigns() -> None:
    async with fake_broker(leads=False) as broker:
        await broker.lead(0, 5)
        broker.groups.on_resigned(0, 4)
        assert await committed(broker) == -1
        broker.groups.on_elected(0, 6)  # led all the while: nothing to load
        assert await committed(broker) == -1
        broker.groups.on_resigned(0, 5)
        assert await committed(broker) == -1
        broker.groups.on_resigned(0, 6)
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR


async def test_resigning_while_loading_ends_the_loading() -> None:
    async with fake_broker() as broker:
        await broker.groups.ask(commit())
        broker.groups.on_resigned(0, 0)
        broker.groups.on_elected(0, 1)
        broker.groups.on_resigned(0, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR
        await broker.lead(0, 2)
        assert await committed(broker) == 1


async def test_a_partition_without_a_log_is_not_loaded() -> None:
    async with fake_broker(leads=False) as broker:
        broker.partitions[0].log = None
        await broker.lead()
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR


async def test_unknown_and_unreadable_records_are_passed_over() -> None:
    async with fake_broker(leads=False) as broker:
        partition = broker.partitions[0]
        future_key, bad_value = b"\x00\x63future", b"\x00\x63"
        for key, value in (
            (future_key, b""),
            (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", bad_value),
            (b"\x00", b""),
        ):
            partition.append_internal(build_batch([(key, value, 0)]), now_ms=0)
        await broker.lead()
        await broker.groups.ask(commit(offset=3))
        assert await committed(broker) == 3


async def test_markers_in_the_log_end_transactions() -> None:
    async with fake_broker() as broker:
        for producer_id, control_type in ((7, ControlRecordType.COMMIT), (8, ControlRecordType.ABORT)):
            await broker.groups.ask(commit(f"g{producer_id}", 5, producer_id))
            marker = build_end_transaction_batch(
                EndTransactionMarker(control_type, 0, 0), producer_id=producer_id, producer_epoch=0
            )
            broker.partitions[0].append_internal(marker, now_ms=0)
        await broker.groups.ask(commit("g9", 5, 9))
        broker.groups.on_resigned(0, 0)
        await broker.lead(0, 1)
        assert [await committed(broker, f"g{n}") for n in (7, 8, 9)] == [5, -1, -1]
        stable = await broker.groups.ask(fetch("g9", require_stable=True))
        assert stable.offsets[T0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT


async def test_a_marker_that_comes_while_loading_counts() -> None:
    async with fake_broker() as broker:
        await broker.groups.ask(commit("g", 5, 7))
        broker.groups.on_resigned(0, 0)
        broker.groups.on_elected(0, 1)
        broker.groups.on_transaction_completed(7, [0], committed=True)
        await broker.loaded()
        assert await committed(broker) == 5


async def test_a_marker_that_comes_later_counts() -> None:
    async with fake_broker() as broker:
        await broker.groups.ask(commit("g", 5, 7))
        assert await committed(broker) == -1
        broker.groups.on_transaction_completed(7, [0], committed=True)
        assert await committed(broker) == 5


def test_record_versions_follow_the_inter_broker_protocol() -> None:
    assert record_versions("3.9-IV0") == RecordVersions(3, 3)
    assert record_versions("2.3-IV0") == RecordVersions(3, 3)
    assert record_versions("2.2-IV1") == RecordVersions(3, 2)
    assert record_versions("2.1-IV0") == RecordVersions(2, 2)
    assert record_versions("2.0") == RecordVersions(1, 1)
    assert record_versions("0.10.0") == RecordVersions(1, 0)


# -- the high watermark ------------------------------------------------------------------------------------------------


async def test_nobody_hears_of_a_commit_before_it_is_committed() -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        partition = broker.partitions[0]
        await broker.groups.ask(commit(offset=1))
        partition.hold()
        heard: list[str] = []

        async def write() -> None:
            result: CommitResult = await broker.groups.ask(commit(offset=2))
            heard.append(f"commit {result.errors[T0].name}")

        async def read() -> None:
            heard.append(f"fetch {await committed(broker)}")

        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        assert heard == []
        assert await committed(broker, "other") == -1  # who reads nothing of it need not wait
        partition.release()
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(heard) == ["commit NONE", "fetch 2"]


async def test_a_wait_for_replication_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    async with fake_broker() as broker:
        broker.partitions[0].hold()
        started = trio.current_time()
        result: CommitResult = await broker.groups.ask(commit())
        assert result.errors[T0] is ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() - started == pytest.approx(5)


async def test_lost_leadership_answers_whoever_waits() -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        await stable_member(broker)
        broker.partitions[0].hold()
        results: list[Any] = []

        async def ask(request: Any) -> None:
            results.append(await broker.groups.ask(request))

        for request in (join(new_id="c-2"), commit("h")):
            nursery.start_soon(ask, request)
        await trio.testing.wait_all_tasks_blocked()
        assert results == []
        broker.partitions[0].resign()
        broker.groups.on_resigned(0, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert {type(result) for result in results} == {JoinResult, CommitResult}
        for result in results:
            error = result.errors[T0] if isinstance(result, CommitResult) else result.error
            assert error is ErrorCode.NOT_COORDINATOR


async def test_waiting_fails_with_the_partition_before_anybody_says_so() -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        broker.partitions[0].hold()
        results: list[CommitResult] = []

        async def ask() -> None:
            results.append(await broker.groups.ask(commit()))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        broker.partitions[0].resign()
        await trio.testing.wait_all_tasks_blocked()
        assert results[0].errors[T0] is ErrorCode.NOT_COORDINATOR


async def test_flush_messages_makes_commits_wait_for_the_disk() -> None:
    async with fake_broker() as broker:
        broker.partitions[0].flush_required = True
        await broker.groups.ask(commit())
        assert broker.partitions[0].flushed == 1


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (LogDirError("/d", OSError("broken")), ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_a_failed_append_fails_its_request_alone(error: Exception, expected: ErrorCode) -> None:
    async with fake_broker() as broker:
        await broker.groups.ask(commit(offset=1))
        broker.partitions[0].append_error = error
        result: CommitResult = await broker.groups.ask(commit(offset=2))
        assert result.errors[T0] is expected
        assert await committed(broker) == 1
        assert broker.failed_dirs == ([error] if isinstance(error, LogDirError) else [])


async def test_a_member_id_that_no_record_can_hold_fails_its_own_request() -> None:
    async with fake_broker() as broker:
        result: CommitResult = await broker.groups.ask(commit("g" * 40_000))
        assert result.errors[T0] is ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_client_that_goes_away_leaves_its_commit() -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        broker.partitions[0].hold()
        nursery.start_soon(broker.groups.ask, commit(offset=4))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    async with fake_broker() as again:
        again.partitions[0] = broker.partitions[0]
        again.partitions[0].release()
        again.groups.on_resigned(0)
        await again.lead(0, 1)
        assert await committed(again) == 4


async def test_after_stop_nothing_is_answered() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        broker.groups.stop()
        assert await refusal(broker, fetch()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert broker.groups.list_groups((), ()) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])


# -- time --------------------------------------------------------------------------------------------------------------


async def test_sessions_end_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        await trio.sleep(5.9)
        assert (await broker.groups.ask(DescribeGroup("g"))).state == "Stable"
        await trio.sleep(0.2)
        assert (await broker.groups.ask(DescribeGroup("g"))).state == "Empty"


async def test_a_nearer_deadline_wakes_the_timers(autojump_clock: trio.testing.MockClock) -> None:
    async with fake_broker(group_initial_rebalance_delay_ms="1000") as broker:
        started = trio.current_time()
        await broker.groups.ask(join(session_ms=600_000))
        assert trio.current_time() - started == pytest.approx(1)


async def test_expired_offsets_go_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    settings = {"offsets_retention_minutes": "1", "offsets_retention_check_interval_ms": "10000"}
    async with fake_broker(**settings) as broker:
        await broker.groups.ask(
            CommitOffsets("g", "", None, -1, {T0: OffsetAndMetadata(1, -1, "", broker.clock.time_ms())})
        )
        await trio.sleep(55)
        assert await committed(broker) == 1
        await trio.sleep(16)
        assert await committed(broker) == -1
        assert broker.groups.list_groups((), ())[1] == []


async def test_a_deleted_topics_offsets_go() -> None:
    async with fake_broker(2) as broker:
        names = [f"g{n}" for n in range(8)]
        for name in names:
            await broker.groups.ask(commit(name))
        broker.groups.on_topic_deleted("t")
        await trio.testing.wait_all_tasks_blocked()
        assert [await committed(broker, name) for name in names] == [-1] * 8


async def test_listing_filters_by_state_and_type_in_any_case() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        await broker.groups.ask(commit("h"))

        def listed(states: tuple[str, ...], types: tuple[str, ...]) -> list[str]:
            error, groups = broker.groups.list_groups(states, types)
            assert error is ErrorCode.NONE
            return sorted(group.group_id for group in groups)

        assert listed((), ()) == ["g", "h"]
        assert listed(("stable",), ()) == ["g"]
        assert listed(("EMPTY", "Dead"), ("Classic",)) == ["h"]
        assert listed((), ("consumer",)) == []
