"""The fault wrapper follows its plan, keeps ZooKeeper's guarantees, and repeats itself for the same seed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionState, WatchType
from tests.coordination.conftest import EventLog
from tests.coordination.faulty_tree import FaultRates, FaultyTree

CONNECTED, DISCONNECTED, EXPIRED = SessionState.CONNECTED, SessionState.DISCONNECTED, SessionState.EXPIRED


async def faulty(store: EmbeddedStore, seed: int = 0, rates: FaultRates | None = None) -> tuple[FaultyTree, EventLog]:
    tree, log = FaultyTree(store.session(), seed, rates), EventLog()
    tree.listen(log)
    await tree.start(timeout=1)
    return tree, log


def fresh_store() -> EmbeddedStore:
    return EmbeddedStore.in_memory(lambda: 0)


@pytest.mark.parametrize("applied", [True, False])
async def test_an_unknown_outcome_is_either(applied: bool) -> None:
    tree, log = await faulty(fresh_store())
    tree.cut_next(lambda op: isinstance(op, t.SetData), applied=applied)
    results = await tree.submit_many([t.Create("/a"), t.SetData("/a", b"1"), t.SetData("/a", b"2"), t.Get("/a")])
    assert [type(result) for result in results] == [t.Created, *[t.ConnectionLoss] * 3]
    assert not tree.connected
    await tree.wait_until_connected()
    assert log.states() == [(CONNECTED, 1), (DISCONNECTED, 1), (CONNECTED, 1)]
    assert (await tree.get("/a")).data == (b"1" if applied else None)


async def test_of_what_is_cut_a_prefix_was_applied() -> None:
    outcomes = set()
    for seed in range(60):
        store = fresh_store()
        tree, _ = await faulty(store, seed, FaultRates(cut=0.3))
        results = await tree.submit_many([t.Create("/a"), *(t.Create(f"/a/{i}") for i in range(5))])
        created = sum(isinstance(result, t.Created) for result in results)
        assert all(isinstance(result, t.ConnectionLoss) for result in results[created:])
        plain = store.session()
        await plain.start(timeout=1)
        there = sorted((await plain.children("/a")).names) if await plain.exists("/a") else []
        assert there == [str(i) for i in range(len(there))]
        assert len(there) >= created - 1
        outcomes.add((created, len(there)))
    assert len(outcomes) > 8


async def test_refused_operations_end_a_cut() -> None:
    tree, _ = await faulty(fresh_store())
    tree.disconnect()
    refused = 0
    while isinstance((await tree.submit_many([t.Exists("/")]))[0], t.ConnectionLoss):
        refused += 1
    assert refused == 3


async def test_a_lost_read_leaves_no_watch() -> None:
    store = fresh_store()
    tree, log = await faulty(store)
    other, _ = await faulty(store)
    await other.create("/a")
    tree.cut_next(applied=True)
    await tree.submit_many([t.Get("/a", watch=True)])
    await tree.wait_until_connected()
    await other.set("/a", b"1")
    await tree.get("/a", watch=True)
    await other.set("/a", b"2")
    assert len(log.watch_events) == 1


async def test_events_wait_while_the_connection_is_cut() -> None:
    store = fresh_store()
    tree, log = await faulty(store)
    other, _ = await faulty(store)
    await other.create("/a")
    await tree.get("/a", watch=True)
    tree.disconnect()
    await other.set("/a", b"1")
    assert log.watch_events == []
    tree.reconnect()
    assert [type(event).__name__ for event in log.heard[-2:]] == ["SessionEvent", "WatchEvent"]


async def test_a_late_event_still_precedes_the_next_result() -> None:
    store = fresh_store()
    waiting: list[Callable[[], None]] = []
    tree = FaultyTree(store.session(), rates=FaultRates(late_watch=1.0), later=waiting.append)
    log = EventLog()
    tree.listen(log)
    await tree.start(timeout=1)
    other, _ = await faulty(store)
    await other.create("/a")
    await tree.get("/a", watch=True)
    await other.set("/a", b"1")
    assert log.watch_events == []
    assert (await tree.get("/a", watch=True)).data == b"1"
    assert [event.type for event in log.watch_events] == [WatchType.NODE_DATA_CHANGED]
    await other.set("/a", b"2")
    assert len(log.watch_events) == 1
    waiting[-1]()
    assert len(log.watch_events) == 2


async def test_an_expiry_ends_the_session_before_the_operation() -> None:
    store = fresh_store()
    tree, log = await faulty(store)
    await tree.create("/e", ephemeral=True)
    tree.expire_next(lambda op: isinstance(op, t.SetData))
    results = await tree.submit_many([t.Get("/e"), t.SetData("/e", b"1"), t.Get("/e")])
    assert [type(result) for result in results] == [t.NodeData, t.SessionExpired, t.SessionExpired]
    await tree.reopen()
    assert await tree.exists("/e") is None
    assert log.states() == [(CONNECTED, 1), (EXPIRED, 1), (CONNECTED, 2)]


async def scenario(seed: int) -> list[str]:
    store = fresh_store()
    tree, log = await faulty(store, seed, FaultRates(cut=0.1, expire=0.02, late_watch=0.3))
    for i in range(100):
        try:
            await retry_until_connected(tree, [t.Create(f"/n{i}"), t.Exists(f"/n{i}", watch=True), t.Delete(f"/n{i}")])
        except t.SessionExpired:
            pass
        await tree.reopen()
    return [str(event) for event in log.heard]


async def test_a_seed_gives_the_same_faults_again() -> None:
    assert await scenario(1) == await scenario(1)
    assert await scenario(1) != await scenario(2)
    assert any("EXPIRED" in event for event in await scenario(1))
