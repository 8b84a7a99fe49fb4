"""The group coordinators without a broker: loading, moving, timers, cleanup."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.coordinators.groups import record_versions
from kpybroker.core.group.records import RecordVersions
from kpybroker.core.group.values import (
    CommitOffsets,
    DescribeGroup,
)
from kpybroker.core.offsets.values import OffsetAndMetadata, coordinator_partition
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from tests.support.brokers.fake_broker import fake_broker
from tests.support.requests.group_requests import T0, commit, committed, fetch, join, refusal, stable_member

# --- leadership and loading


async def test_only_the_leader_of_a_groups_partition_serves_the_group() -> None:
    async with fake_broker(4, leads=False) as broker:
        index = coordinator_partition("g", 4)
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR
        await broker.lead(index)
        assert await committed(broker) == -1
        broker.groups.on_resigned(index, 0)
        assert await refusal(broker, fetch()) is ErrorCode.NOT_COORDINATOR


async def test_requests_are_refused_while_the_partition_loads() -> None:
    async with fake_broker(leads=False) as broker:
        broker.begin_loading()
        assert await refusal(broker, fetch()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert broker.groups.list_groups((), ()) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
        await broker.loaded()
        assert await committed(broker) == -1


async def test_a_partition_without_records_is_loaded_at_once() -> None:
    async with fake_broker(leads=False) as broker:
        broker.groups.on_elected(0, 0)
        assert await committed(broker) == -1
        assert broker.groups.list_groups((), ()) == (ErrorCode.NONE, [])


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
        broker.groups.on_elected(0, 6)  # led all the time: nothing to load
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


async def test_unknown_and_unreadable_records_are_skipped() -> None:
    async with fake_broker(leads=False) as broker:
        partition = broker.partitions[0]
        future_key, bad_value = b"\x00\x63future", b"\x00\x63"
        for key, value in (
            (future_key, b""),
            (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", bad_value),
            (b"\x00", b""),
        ):
            partition.append(ProducedBatches(build_batch([(key, value, 0)]), 0))
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
            broker.partitions[0].append(ProducedBatches(marker, 0))
        await broker.groups.ask(commit("g9", 5, 9))
        broker.groups.on_resigned(0, 0)
        await broker.lead(0, 1)
        assert [await committed(broker, f"g{n}") for n in (7, 8, 9)] == [5, -1, -1]
        stable = await broker.groups.ask(fetch("g9", require_stable=True))
        assert stable.offsets[T0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT


async def test_a_marker_that_is_written_during_loading_counts() -> None:
    async with fake_broker() as broker:
        await broker.groups.ask(commit("g", 5, 7))
        broker.groups.on_resigned(0, 0)
        broker.groups.on_elected(0, 1)
        broker.groups.on_transaction_completed(7, [0], committed=True)
        await broker.loaded()
        assert await committed(broker) == 5


async def test_a_marker_that_is_written_after_loading_counts() -> None:
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


# --- time


async def test_sessions_time_out(autojump_clock: trio.testing.MockClock) -> None:
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


async def test_expired_offsets_are_removed(autojump_clock: trio.testing.MockClock) -> None:
    settings: dict[str, Any] = {"offsets_retention_minutes": "1", "offsets_retention_check_interval_ms": "10000"}
    async with fake_broker(**settings) as broker:
        await broker.groups.ask(
            CommitOffsets("g", "", None, -1, {T0: OffsetAndMetadata(1, -1, "", broker.clock.time_ms())})
        )
        await trio.sleep(55)
        assert await committed(broker) == 1
        await trio.sleep(16)
        assert await committed(broker) == -1
        assert broker.groups.list_groups((), ())[1] == []


async def test_a_deleted_topics_offsets_are_removed() -> None:
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
