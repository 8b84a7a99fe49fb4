"""What a scene is: something that a broker has many of, and the figures that are taken of it at each size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from compat_tests.bench.measuring.brokers import (
    Cores,
    Measured,
    Restarted,
    kraft_broker,
    stock_broker,
    stock_zookeeper,
)
from compat_tests.bench.measuring.costs import Stall, come_to_rest, cpu_seconds, loop_stall, memory
from compat_tests.support.services import Broker, started

OURS, KAFKA = "kpybroker", "kafka"


class Bound(NamedTuple):
    """A figure, its unit, and its limit at the largest size (`least`: it may not be smaller). None: only reported."""

    name: str
    unit: str
    most: float | None = None
    least: float | None = None

    def is_missed(self, value: float) -> bool:
        return (self.most is not None and value > self.most) or (self.least is not None and value < self.least)


Figures = Mapping[str, float]
"""By the name of the figure; one that does not exist for a kind of broker is left out."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scene is measured, and how much of it."""

    kind: str
    size: int
    directory: Path
    cores: Cores
    quick: bool

    def seconds(self, full: float) -> float:
        return full / 10 if self.quick else full

    @contextmanager
    def broker(
        self, overrides: Mapping[str, str] | None = None, tls: tuple[int, str, str] | None = None
    ) -> Iterator[Broker]:
        """One broker that runs, with nothing in it: Kafka with its ZooKeeper, ours with its own tree.

        `tls`: the port of a second listener, its key store and the password of that.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        zookeeper = stock_zookeeper(self.directory / "zookeeper", self.cores.client) if self.kind == KAFKA else None
        connect = None
        try:
            if zookeeper is not None:
                zookeeper.start()
                connect = zookeeper.connect
            broker = stock_broker(self.kind, self.directory / "broker", connect, self.cores.broker, overrides)
            if tls is not None:
                broker.configure(_listeners(broker.port, *tls))
            try:
                broker.start()
                yield broker
            finally:
                broker.service.kill()
        finally:
            if zookeeper is not None:
                zookeeper.stop()

    @contextmanager
    def restarted(self, overrides: Mapping[str, str]) -> Iterator[Restarted]:
        """As `broker`, of either kind that has what came after Kafka 3.9."""
        if self.kind == OURS:
            with self.broker(overrides) as ours:
                yield ours
            return
        kafka = kraft_broker(self.directory, self.cores.broker, overrides)
        with started(kafka):
            yield kafka


@dataclass(frozen=True, slots=True)
class Scene:
    """`kinds`: the brokers that have it."""

    name: str
    sizes: Sequence[int]
    bounds: Sequence[Bound]
    measure: Callable[[Place], Figures]
    kinds: Sequence[str] = (KAFKA, OURS)
    room_gb: float = 1.0


def _listeners(plain: int, port: int, store: str, password: str) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{port}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": store,
        "ssl.keystore.password": password,
        "ssl.key.password": password,
    }


def resident_kb(broker: Measured) -> float:
    """After the broker has come to rest; a heap of Java says little by it."""
    come_to_rest([broker.service.pid])
    return memory(broker.service.pid).rss * 1000


def idle_share(broker: Broker, seconds: float) -> float:
    """Of a core, in percent."""
    come_to_rest([broker.service.pid])
    before = cpu_seconds(broker.service.pid)
    time.sleep(seconds)
    return 100 * (cpu_seconds(broker.service.pid) - before) / seconds


def descriptors(broker: Broker) -> int:
    return len(list(Path(f"/proc/{broker.service.pid}/fd").iterdir()))


def stalls(broker: Broker) -> Stall | None:
    """Since the last call; only ours measures its loop."""
    return loop_stall(broker) if broker.kind == OURS else None
