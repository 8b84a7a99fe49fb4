"""The task that looks again: after events of its node and new sessions, and also after it has lost the connection."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kpybroker.coordination.watch_loop import WatchLoop
from kpybroker.core.tree import (
    ConnectionLoss,
    NotEmpty,
    SessionEvent,
    SessionExpired,
    SessionState,
    TreeError,
    TreeEvent,
    WatchEvent,
    WatchType,
)

PATH = "/things/changes"
CHANGED = WatchEvent(WatchType.NODE_CHILDREN_CHANGED, PATH)
logger = logging.getLogger("tests.watch_loop")


class Looks:
    """Counts the looks; each raises the next of `failures`, if there is one."""

    def __init__(self, *failures: TreeError, name: str | None = None) -> None:
        self.count = 0
        self._failures = list(failures)
        self.loop = WatchLoop(PATH, self._look, logger, name)

    async def _look(self) -> None:
        self.count += 1
        if self._failures:
            raise self._failures.pop(0)

    async def after(self, *events: TreeEvent) -> int:
        """How many looks there were when no more will follow."""
        for event in events:
            self.loop.on_tree_event(event)
        await trio.testing.wait_all_tasks_blocked()
        return self.count


@asynccontextmanager
async def running(looks: Looks) -> AsyncIterator[Looks]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(looks.loop.run)
        yield looks
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("event", "is_reason"),
    [
        (CHANGED, True),
        (WatchEvent(WatchType.NODE_CREATED, PATH), True),
        (WatchEvent(WatchType.NODE_CHILDREN_CHANGED, f"{PATH}/change_1"), False),
        (WatchEvent(WatchType.NODE_CHILDREN_CHANGED, "/things"), False),
        (SessionEvent(SessionState.CONNECTED, 2), True),
        (SessionEvent(SessionState.DISCONNECTED, 1), False),
        (SessionEvent(SessionState.EXPIRED, 1), False),
    ],
)
async def test_events_of_the_node_and_new_sessions_are_reasons_to_look(event: TreeEvent, is_reason: bool) -> None:
    async with running(Looks()) as looks:
        assert await looks.after() == 0
        assert await looks.after(event) == int(is_reason)


async def test_events_before_the_next_look_are_one() -> None:
    looks = Looks()
    assert await looks.after(CHANGED) == 0
    async with running(looks):
        assert await looks.after(CHANGED, CHANGED) == 1
        assert await looks.after(CHANGED) == 2


async def test_after_a_lost_connection_it_says_so_and_looks_again(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Looks(ConnectionLoss(), SessionExpired(), name="what has changed")) as looks:
        for count in (1, 2, 3):
            assert await looks.after(CHANGED) == count
    assert [record.getMessage() for record in caplog.records if record.name == logger.name] == [
        f"Cannot read what has changed until there is a new session: {ConnectionLoss()!r}",
        f"Cannot read what has changed until there is a new session: {SessionExpired()!r}",
    ]


async def test_another_failure_ends_it() -> None:
    looks = Looks(NotEmpty())
    looks.loop.on_tree_event(CHANGED)
    with pytest.raises(NotEmpty):
        await looks.loop.run()
