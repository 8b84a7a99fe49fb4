"""A `Host` for a component that is tested without a `Broker`: the real configuration, a seed, and a tree in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from kpybroker.broker.loop.clock import Clock, SystemClock
from kpybroker.broker.loop.slow_work import SlowWork
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.topic import LogConfig
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.tree import Tree
from kpybroker.core.authorizer import AllowAll, Authorizer
from kpybroker.core.budget import StateBudget
from kpybroker.core.security.quotas import ClientQuotas
from kpybroker.core.tree import TreeEvent
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.files import Files
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.log.settings import LogSettings


class FakeHost:
    """Implements `kpybroker.broker.loop.host.Host`. A background task that fails ends the test.

    `log_dir_failed` only records the error in `failed_dirs`.
    """

    tree: Tree
    logs: LogManager

    def __init__(self, nursery: trio.Nursery, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.files: Files = local_files()
        self.random = random.Random(7)
        self.node_id = config.get_int("broker.id")
        self.broker_epoch = -1
        self.authorizer: Authorizer = AllowAll()
        self.quotas: ClientQuotas | None = None
        self.budget = StateBudget()
        self.slow_work = SlowWork()
        self.failed_dirs: list[LogDirError] = []
        self._nursery = nursery
        self._listeners: list[Callable[[TreeEvent], None]] = []

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *args: object) -> None:
        self._nursery.start_soon(function, *args, name=name)

    def log_dir_failed(self, error: LogDirError) -> None:
        self.failed_dirs.append(error)

    def on_tree_event(self, listener: Callable[[TreeEvent], None]) -> None:
        self._listeners.append(listener)

    def tree_event(self, event: TreeEvent) -> None:
        for listener in self._listeners:
            listener(event)

    async def open_tree(self, tree: Tree) -> None:
        self.tree = tree
        tree.listen(self.tree_event)
        await tree.start(timeout=10)

    def open_logs(self) -> None:
        """Lock `log.dirs`, which must exist, and load the logs; every topic has the default configuration."""
        self.logs = LogManager(self.files, self.config.log_dirs, LogSettings(random_below=self.random.randrange))
        self.logs.load(lambda topic: LogConfig(), self.clock.time_ms())


@asynccontextmanager
async def fake_host(directory: Path, *, clock: Clock | None = None, **keys: str) -> AsyncIterator[FakeHost]:
    """A host with logs in `directory` and a tree in memory; keys are Kafka's with `_` for `.`.

    Its background tasks end with the block.
    """
    props = {"broker.id": "0", "log.dirs": str(directory)}
    props |= {name.replace("_", "."): value for name, value in keys.items()}
    async with trio.open_nursery() as nursery:
        host = FakeHost(nursery, BrokerConfig(props), clock)
        await host.open_tree(EmbeddedStore.in_memory(host.clock.time_ms).session())
        host.open_logs()
        yield host
        nursery.cancel_scope.cancel()
    host.logs.shutdown(-1)
    await host.tree.close()
