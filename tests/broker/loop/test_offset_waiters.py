"""A wait for an offset ends with it, or with the reason why it will not be reached, and leaves nothing behind."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.records.produce import Pending, _wait_for_replicas
from kpybroker.broker.loop.offset_waiters import OffsetWaiters
from kpybroker.broker.loop.steps import Pending as PendingSteps
from kpybroker.broker.loop.steps import Wait, run_steps, run_to_end
from kpybroker.broker.loop.yielding import next_slice
from kpybroker.broker.replication.partition import Partition
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.produce import ProduceResponse


async def test_each_is_woken_up_when_its_offset_is_reached() -> None:
    waiters, woken = OffsetWaiters(), []

    async def wait(offset: int) -> None:
        assert await run_to_end(waiters.until(offset, inf))
        woken.append(offset)

    async with trio.open_nursery() as nursery:
        for offset in (7, 3, 5):
            nursery.start_soon(wait, offset)
        await trio.testing.wait_all_tasks_blocked()
        waiters.wake(5)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(woken) == [3, 5]
        waiters.wake(7)
    assert not waiters.waiting


async def test_who_is_cancelled_waits_no_more() -> None:
    waiters = OffsetWaiters()
    with trio.CancelScope() as scope:
        scope.cancel()
        await run_to_end(waiters.until(1, inf))
    assert not waiters.waiting


def test_whose_time_is_over_waits_no_more() -> None:
    waiters = OffsetWaiters()
    suspended = run_steps(waiters.until(1, 10.0))
    assert isinstance(suspended, PendingSteps)
    assert suspended.wait is not None
    assert suspended.wait.deadline == 10.0
    suspended.wait.is_over = True
    assert suspended.resume() is False
    assert not waiters.waiting


async def test_all_waits_fail_when_leadership_is_lost() -> None:
    waiters = OffsetWaiters()
    waiter = waiters.add(9, inf)
    with pytest.RaisesGroup(KafkaError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_to_end, waiters.until(1, inf))
            await trio.testing.wait_all_tasks_blocked()
            waiters.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert waiter.is_over
    assert waiter.error is not None
    assert not waiters.waiting


async def test_many_that_time_out_at_once_let_others_run() -> None:
    """A Produce to thousands of partitions, none of them committed in time: see `steps.run_steps`."""
    waiters, partitions = OffsetWaiters(), [ProduceResponse.PartitionProduceResponse() for _ in range(1000)]
    partition = SimpleNamespace(until_committed=waiters.until)
    yielded: list[object] = []
    pending = Pending(
        acks=-1, timeout_ms=0, replicas=[(cast(Partition, partition), 1, response) for response in partitions]
    )
    for wanted in _wait_for_replicas(cast(Broker, SimpleNamespace()), pending):
        if isinstance(wanted, Wait):
            assert wanted.deadline <= trio.current_time()
            wanted.is_over = True
        else:
            yielded.append(wanted)
    assert yielded == [next_slice] * 5
    assert {response.error_code for response in partitions} == {ErrorCode.REQUEST_TIMED_OUT}
    assert not waiters.waiting
