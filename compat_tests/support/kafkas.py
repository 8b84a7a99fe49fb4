"""Apache Kafka in two versions, each for the length of a `with` block: the address of one broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat_tests.support.kraft import KraftBroker
from compat_tests.support.services import Broker, ZooKeeper, started


@contextmanager
def kafka_3(directory: Path, keys: Mapping[str, str] | None = None) -> Iterator[str]:
    """3.9.1 on a ZooKeeper of its own; `keys` go into its properties."""
    zookeeper = ZooKeeper(directory / "zookeeper")
    try:
        zookeeper.start()
        broker = Broker("kafka", directory / "broker", zookeeper.connect, dict(keys or {}))
        try:
            broker.start()
            yield broker.bootstrap
        finally:
            broker.service.kill()
    finally:
        zookeeper.stop()


@contextmanager
def kafka_4(directory: Path) -> Iterator[str]:
    """4.3.1 in KRaft mode."""
    with started(KraftBroker(directory / "broker")) as broker:
        yield broker.bootstrap
