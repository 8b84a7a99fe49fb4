"""A held or cut session: what waits, what is lost, and when it ends for everyone else."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.control.levers.tree import HeldTree
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.tree import CoordinationUnavailable
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionState
from tests.coordination.conftest import EventLog, kinds

TIMEOUT_S = 18


class Session:
    """A held session and, for everyone else, a session that is not."""

    def __init__(self) -> None:
        store = EmbeddedStore.in_memory(lambda: 1_700_000_000_000)
        self.tree = HeldTree(store.session(TIMEOUT_S * 1000), trio.lowlevel.spawn_system_task, SystemClock())
        self.others = store.session()
        self.log = EventLog()
        self.tree.listen(self.log)

    async def start(self) -> None:
        await self.tree.start(1)
        await self.others.start(1)
        await self.tree.create("/mine", ephemeral=True)
        await self.tree.exists("/watched", watch=True)


async def started() -> Session:
    session = Session()
    await session.start()
    return session


async def test_operations_and_events_of_a_paused_session_wait(autojump_clock: trio.testing.MockClock) -> None:
    session = await started()
    session.tree.pause()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.tree.create, "/late")
        await session.others.create("/watched")
        await trio.testing.wait_all_tasks_blocked()
        assert await session.others.exists("/late") is None
        assert kinds(session.log) == []
        session.tree.resume()
        assert kinds(session.log) == [(t.WatchType.NODE_CREATED, "/watched")]
    assert await session.others.exists("/late") is not None


async def test_a_result_that_arrives_during_a_pause_waits(autojump_clock: trio.testing.MockClock) -> None:
    session = Session()
    gate = trio.Event()
    inner = session.tree._inner

    class Slow:
        def __getattr__(self, name: str) -> object:
            return getattr(inner, name)

        async def submit_many(self, ops: list[t.Operation]) -> list[t.Result | t.TreeError]:
            results = await inner.submit_many(ops)
            await gate.wait()
            return results

    await session.start()
    session.tree._inner = Slow()  # type: ignore[assignment]
    done = []

    async def create() -> None:
        done.append(await session.tree.create("/sent"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(create)
        await trio.testing.wait_all_tasks_blocked()
        session.tree.pause()
        gate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert await session.others.exists("/sent") is not None
        assert not done
        session.tree.resume()
    assert len(done) == 1


@pytest.mark.parametrize("lever", ["pause", "cut"])
async def test_the_session_times_out_for_the_others_and_later_for_itself(
    lever: str, autojump_clock: trio.testing.MockClock
) -> None:
    session = await started()
    getattr(session.tree, lever)()
    await trio.sleep(TIMEOUT_S - 1)
    assert await session.others.exists("/mine") is not None
    await trio.sleep(2)
    assert await session.others.exists("/mine") is None
    assert SessionState.EXPIRED not in [state for state, _ in session.log.states()]
    session.tree.resume()
    session.tree.restore()
    assert session.log.states()[-1] == (SessionState.EXPIRED, 1)
    with pytest.raises(t.SessionExpired):
        await session.tree.get("/mine")
    await session.tree.reopen()
    assert session.log.states()[-1] == (SessionState.CONNECTED, 2)


@pytest.mark.parametrize("lever", ["pause", "cut"])
async def test_a_session_that_is_back_in_time_goes_on(lever: str, autojump_clock: trio.testing.MockClock) -> None:
    session = await started()
    for _ in range(3):
        getattr(session.tree, lever)()
        await trio.sleep(TIMEOUT_S - 1)
        session.tree.resume()
        session.tree.restore()
        getattr(session.tree, lever)()
        session.tree.resume()
        session.tree.restore()
    await trio.sleep(TIMEOUT_S * 2)
    assert await session.others.exists("/mine") is not None


async def test_a_pause_that_becomes_a_cut_is_one_silence(autojump_clock: trio.testing.MockClock) -> None:
    session = await started()
    session.tree.pause()
    await trio.sleep(TIMEOUT_S - 1)
    session.tree.cut()
    session.tree.resume()
    await trio.sleep(2)
    assert await session.others.exists("/mine") is None


async def test_a_cut_session_loses_its_connection(autojump_clock: trio.testing.MockClock) -> None:
    session = await started()
    session.tree.cut()
    assert not session.tree.connected
    assert session.log.states() == [(SessionState.CONNECTED, 1), (SessionState.DISCONNECTED, 1)]
    with pytest.raises(t.ConnectionLoss):
        await session.tree.create("/lost")
    await session.others.create("/watched")
    assert kinds(session.log) == []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.tree.wait_until_connected)
        await trio.testing.wait_all_tasks_blocked()
        session.tree.restore()
    assert session.log.states()[-1] == (SessionState.CONNECTED, 1)
    assert kinds(session.log) == [(t.WatchType.NODE_CREATED, "/watched")]
    assert await session.others.exists("/lost") is None


async def test_what_is_in_flight_when_the_connection_is_cut_has_an_unknown_outcome(
    autojump_clock: trio.testing.MockClock,
) -> None:
    session = await started()
    inner, tree = session.tree._inner, session.tree

    async def cut_on_the_way(ops: list[t.Operation]) -> list[t.Result | t.TreeError]:
        results = await type(inner).submit_many(inner, ops)
        tree.cut()
        return results

    inner.submit_many = cut_on_the_way  # type: ignore[assignment,method-assign]
    with pytest.raises(t.ConnectionLoss):
        await tree.create("/applied")
    assert await session.others.exists("/applied") is not None
    tree.restore()


async def test_a_session_cannot_begin_while_it_is_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    session = Session()
    session.tree.cut()
    with pytest.raises(CoordinationUnavailable, match="is cut"):
        await session.tree.start(5)


async def test_a_held_session_can_be_closed(autojump_clock: trio.testing.MockClock) -> None:
    session = await started()
    session.tree.pause()
    await session.tree.close()
    assert await session.others.exists("/mine") is None
    await trio.sleep(2 * TIMEOUT_S)
