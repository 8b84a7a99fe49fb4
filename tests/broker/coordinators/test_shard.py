"""A shard: nothing uncommitted is reported, every request gets a reply, a failure affects its own request alone."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.core.group.values import CommitResult, JoinResult
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.fake_broker import fake_broker
from tests.support.requests.group_requests import T0, commit, committed, fetch, join, refusal, stable_member

# --- the high watermark


async def test_a_commit_is_not_reported_before_it_is_committed() -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        partition = broker.partitions[0]
        await broker.groups.ask(commit(offset=1))
        partition.hold()
        reports: list[str] = []

        async def write() -> None:
            result: CommitResult = await broker.groups.ask(commit(offset=2))
            reports.append(f"commit {result.errors[T0].name}")

        async def read() -> None:
            reports.append(f"fetch {await committed(broker)}")

        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        assert reports == []
        assert await committed(broker, "other") == -1  # reading another group need not wait
        partition.release()
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(reports) == ["commit NONE", "fetch 2"]


async def test_a_wait_for_replication_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    async with fake_broker() as broker:
        broker.partitions[0].hold()
        started = trio.current_time()
        result: CommitResult = await broker.groups.ask(commit())
        assert result.errors[T0] is ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() - started == pytest.approx(5)


async def test_lost_leadership_ends_every_waiting_request() -> None:
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


async def test_waiting_ends_with_the_partitions_leadership_before_the_shard_is_closed() -> None:
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


# --- failures


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


async def test_the_commit_of_a_client_that_disconnects_stays() -> None:
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


async def test_after_stop_every_request_is_refused() -> None:
    async with fake_broker() as broker:
        await stable_member(broker)
        broker.groups.stop()
        assert await refusal(broker, fetch()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert broker.groups.list_groups((), ()) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
