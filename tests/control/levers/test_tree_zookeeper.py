"""A held session of a real ZooKeeper: the server ends it, though the client's own threads go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.control.levers.tree import HeldTree
from kpybroker.coordination.kazoo_client import ClientOptions
from kpybroker.coordination.zookeeper import ZooKeeperTree
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionState
from tests.coordination.conftest import START_SECONDS_MAX, EventLog
from tests.support.programs.zookeeper import zookeeper

TIMEOUT_MS = 1_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with zookeeper(tmp_path / "zookeeper") as server:
        yield server.address


async def test_a_paused_session_times_out_and_is_replaced(address: str) -> None:
    inner = ZooKeeperTree(address, ClientOptions(TIMEOUT_MS))
    tree = HeldTree(inner, trio.lowlevel.spawn_system_task, SystemClock())
    others, log = ZooKeeperTree(address, ClientOptions(30_000)), EventLog()
    tree.listen(log)
    others.listen(EventLog())
    await tree.start(START_SECONDS_MAX)
    await others.start(START_SECONDS_MAX)
    try:
        await tree.create("/mine", ephemeral=True)
        gone = trio.Event()
        others.listen(lambda event: gone.set())
        assert await others.exists("/mine", watch=True) is not None
        tree.pause()
        with trio.fail_after(30):
            await gone.wait()
        assert SessionState.EXPIRED not in [state for state, _ in log.states()]
        tree.resume()
        with trio.fail_after(30):
            await log.until(lambda: SessionState.EXPIRED in [state for state, _ in log.states()])
            with pytest.raises(t.SessionExpired):
                await tree.get("/mine")
            await tree.reopen()
        assert await tree.exists("/mine") is None
    finally:
        await tree.close()
        await others.close()
