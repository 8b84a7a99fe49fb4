"""Who waits for an offset is woken up by it, or told why it will not come, and leaves nothing behind."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kpybroker.broker.offset_waiters import OffsetWaiters
from kpybroker.wire.errors import ErrorCode, KafkaError


async def test_each_is_woken_up_when_its_offset_is_reached() -> None:
    waiters, woken = OffsetWaiters(), []

    async def wait(offset: int) -> None:
        await waiters.wait(offset)
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
        await waiters.wait(1)
    assert not waiters.waiting


async def test_all_are_told_when_leadership_is_lost() -> None:
    waiters = OffsetWaiters()
    waiter = waiters.add(9)
    with pytest.RaisesGroup(KafkaError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiters.wait, 1)
            await trio.testing.wait_all_tasks_blocked()
            waiters.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert waiter.event.is_set()
    assert waiter.error is not None
    assert not waiters.waiting
