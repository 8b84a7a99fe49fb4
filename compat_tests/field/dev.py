"""Two brokers on a tree that the first of them serves: `kpybroker dev --zookeeper-port`, and one more that joins it.

It is a `Cluster`, so the tools of old have the same commands here. Broker 1 is the tree: it must not be stopped.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.support.cluster import PROPERTIES, Cluster
from compat_tests.support.services import Broker, kpybroker_executable
from tests.support.ports import free_port


class DevCluster(Cluster):
    """Started, with brokers 1 and 2."""

    def __init__(self, directory: Path, properties: dict[str, str]) -> None:
        tree_port = free_port()
        first = _dev_broker(directory / "broker-1", tree_port, PROPERTIES | properties | {"broker.id": "1"})
        first.start()
        try:
            super().__init__(directory, f"127.0.0.1:{tree_port}", (), properties)
        except BaseException:
            first.service.kill()
            raise
        self.brokers[1] = first
        self.add("kpybroker").start()


def _dev_broker(directory: Path, tree_port: int, properties: dict[str, str]) -> Broker:
    """`kpybroker dev` with these keys, not started."""
    broker = Broker("kpybroker", directory, None, {})
    overrides = [word for key, value in properties.items() for word in ("--override", f"{key}={value}")]
    broker.service.command = [
        *(str(kpybroker_executable()), "dev", "--port", str(broker.port), "--data-dir", str(broker.data_dir)),
        *("--zookeeper-port", str(tree_port), "--log-level", "INFO", *overrides),
    ]
    broker.configure(properties)
    return broker
