"""Several whole brokers in this process: one tree in memory, one network in memory, a log directory each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.clock import SystemClock
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.core.features import SUPPORTED, Ranges
from tests.support.brokers.running_broker import settings
from tests.support.network.memory_transport import MemoryTransport


class RunningCluster:
    """`start` and `stop` brokers by id; each reaches the others at port 9092 + id."""

    def __init__(self, directory: Path, nursery: trio.Nursery, keys: dict[str, str]) -> None:
        self.store = EmbeddedStore.in_memory(SystemClock().time_ms)
        self.transport = MemoryTransport()
        self.brokers: dict[int, Broker] = {}
        self._directory = directory
        self._nursery = nursery
        self._keys = keys
        self.features: dict[int, Ranges] = {}
        """What a broker that starts from now on supports, by its id; by default what this build does."""
        self._stops: dict[int, trio.Event] = {}
        self._ended: dict[int, trio.Event] = {}

    async def start(self, *ids: int) -> None:
        for broker_id in ids:
            await self._nursery.start(self._run, broker_id)

    async def _run(self, broker_id: int, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        keys = {
            "broker_id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{9092 + broker_id}",
            "advertised_listeners": f"PLAINTEXT://127.0.0.1:{9092 + broker_id}",
            "controlled_shutdown_retry_backoff_ms": "1",
            **self._keys,
        }
        directory = self._directory / str(broker_id)
        directory.mkdir(exist_ok=True)
        config = BrokerConfig(settings(directory, **keys))
        self._stops[broker_id], self._ended[broker_id] = trio.Event(), trio.Event()
        tree = self.store.session()
        seams = {"transport": self.transport, "tree": tree, "seed": broker_id}
        async with Broker.open(config, **seams, features=self.features.get(broker_id, SUPPORTED)) as broker:
            self.brokers[broker_id] = broker
            task_status.started()
            await self._stops[broker_id].wait()
        del self.brokers[broker_id]
        self._ended[broker_id].set()

    async def stop(self, broker_id: int) -> None:
        """In order; returns when it has ended."""
        self._stops[broker_id].set()
        await self._ended[broker_id].wait()

    @property
    def controller(self) -> Broker:
        return next(broker for broker in self.brokers.values() if broker.controller.is_active)


@asynccontextmanager
async def running_cluster(directory: Path, *ids: int, **keys: str) -> AsyncIterator[RunningCluster]:
    """Keys are Kafka's with `.` written as `_`."""
    async with trio.open_nursery() as nursery:
        cluster = RunningCluster(directory, nursery, keys)
        await cluster.start(*ids)
        yield cluster
        for broker_id in list(cluster.brokers):
            await cluster.stop(broker_id)
