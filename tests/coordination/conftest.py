"""One ZooKeeper for all tests of this room, and the six kinds of tree that must keep one contract."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.control.levers.tree import ExpirableTree, HeldTree
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.kazoo_client import ClientOptions
from kpybroker.coordination.server.serve import TreeServer
from kpybroker.coordination.server.sessions import Limits
from kpybroker.coordination.tree import Tree
from kpybroker.coordination.zookeeper import ZooKeeperTree
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionEvent, SessionState, TreeEvent, WatchEvent, WatchType
from tests.coordination.faulty_tree import FaultyTree
from tests.support.programs.zookeeper import ZooKeeperServer, zookeeper

START_SECONDS_MAX = 60
SESSION_TIMEOUT_MS = 30_000
"""Of sessions that must not expire: on a loaded machine a client or the server may not run for long."""
_worlds = itertools.count()


@pytest.fixture(scope="session")
def zookeeper_server_shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server for tests that leave it as it is; each keeps to its own chroot."""
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class EventLog:
    """What a listener has received, in order."""

    def __init__(self) -> None:
        self.heard: list[TreeEvent] = []
        self._more = trio.Event()

    def __call__(self, event: TreeEvent) -> None:
        self.heard.append(event)
        self._more.set()
        self._more = trio.Event()

    @property
    def watch_events(self) -> list[WatchEvent]:
        return [event for event in self.heard if isinstance(event, WatchEvent)]

    def states(self) -> list[tuple[SessionState, int]]:
        return [(e.type, e.generation) for e in self.heard if isinstance(e, SessionEvent)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the received events make `condition` true."""
        while not condition():
            await self._more.wait()

    async def wait_for_watch_events(self, count: int) -> list[WatchEvent]:
        await self.until(lambda: len(self.watch_events) >= count)
        return self.watch_events


def kinds(log: EventLog) -> list[tuple[WatchType, str]]:
    return [(event.type, event.path) for event in log.watch_events]


async def error_of(tree: Tree, op: t.Operation) -> t.TreeError:
    (result,) = await tree.submit_many([op])
    assert isinstance(result, t.TreeError), result
    return result


class Cluster:
    """Makes clients of one tree, and closes them in the end."""

    def __init__(self, make: Callable[[], ExpirableTree]) -> None:
        self._make = make
        self.trees: list[ExpirableTree] = []

    def unstarted(self) -> tuple[ExpirableTree, EventLog]:
        tree, log = self._make(), EventLog()
        tree.listen(log)
        self.trees.append(tree)
        return tree, log

    async def client(self) -> tuple[ExpirableTree, EventLog]:
        tree, log = self.unstarted()
        await tree.start(START_SECONDS_MAX)
        return tree, log


World = Callable[[], AbstractAsyncContextManager[Cluster]]


@asynccontextmanager
async def one_client(world: World) -> AsyncIterator[tuple[ExpirableTree, EventLog]]:
    """The first client of a cluster that needs no other."""
    async with world() as cluster:
        yield await cluster.client()


def _open(kind: str, directory: Path, connect: str) -> tuple[Callable[[], ExpirableTree], EmbeddedStore | None]:
    if kind == "zookeeper":
        return lambda: ZooKeeperTree(connect, ClientOptions(SESSION_TIMEOUT_MS)), None
    if kind == "sqlite":
        path = directory / "coordination.sqlite"
        store = EmbeddedStore.open(path, trio.to_thread.run_sync, wall_clock_ms)
        return store.session, store
    store = EmbeddedStore.in_memory(wall_clock_ms)
    if kind == "faulty":
        return lambda: FaultyTree(store.session()), store
    if kind == "held":
        return lambda: HeldTree(store.session(), trio.lowlevel.spawn_system_task, SystemClock()), store
    return store.session, store


@asynccontextmanager
async def running(kind: str, directory: Path, connect: str = "") -> AsyncIterator[Cluster]:
    """An empty tree of one kind, for as long as the block lasts."""
    if kind == "served":
        async with served(directory) as server, running("zookeeper", directory, address_of(server)) as cluster:
            yield cluster
        return
    make, store = _open(kind, directory, connect)
    cluster = Cluster(make)
    try:
        yield cluster
    finally:
        with trio.CancelScope(shield=True):
            for tree in cluster.trees:
                await tree.close()
            if store is not None:
                await store.close()


@asynccontextmanager
async def served(directory: Path, limits: Limits | None = None) -> AsyncIterator[TreeServer]:
    """The server of an embedded tree, for as long as the block lasts."""
    store = EmbeddedStore.open(directory / "coordination.sqlite", trio.to_thread.run_sync, wall_clock_ms)
    server = TreeServer(store, SystemClock(), limits)
    server.listen("127.0.0.1", 0)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve)
            yield server
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await store.close()


def address_of(server: TreeServer) -> str:
    """The connect string."""
    host, port = server.address
    return f"{host}:{port}"


def chroot_of(server: ZooKeeperServer) -> str:
    """A connect string that no other test uses."""
    return f"{server.address}/world-{next(_worlds)}"


@pytest.fixture(
    params=["memory", "sqlite", "faulty", "held", "served", pytest.param("zookeeper", marks=pytest.mark.not_quick)]
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    connect = ""
    if request.param == "zookeeper":
        connect = chroot_of(request.getfixturevalue("zookeeper_server_shared"))
    return partial(running, request.param, tmp_path, connect)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that the test may kill."""
    with zookeeper(tmp_path / "zookeeper") as server:
        yield server
