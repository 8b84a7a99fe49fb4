"""The tree that clients of ZooKeeper reach: a kpybroker's embedded one, or for `--broker=kafka` a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from compat_tests.support.services import Broker, ZooKeeper
from tests.support.network.ports import free_port


class ServedTree(NamedTuple):
    """Where clients of ZooKeeper connect, and the broker whose tree it is; None for a real ZooKeeper."""

    address: str
    broker: Broker | None


@contextmanager
def served_tree(kind: str, directory: Path) -> Iterator[ServedTree]:
    """For as long as the block lasts."""
    if kind == "kafka":
        server = ZooKeeper(directory / "zookeeper")
        try:
            server.start()
            yield ServedTree(server.connect, None)
        finally:
            server.stop()
        return
    port = free_port()
    broker = Broker("kpybroker", directory / "host", None, {"kpybroker.zookeeper.port": str(port)})
    try:
        broker.start()
        yield ServedTree(f"127.0.0.1:{port}", broker)
    finally:
        broker.service.kill()
