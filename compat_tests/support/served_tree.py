"""The tree that clients of ZooKeeper reach: a kpybroker's embedded one, or for `--broker=kafka` a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat_tests.support.services import Broker, ZooKeeper, started
from tests.support.ports import free_port


@contextmanager
def served_tree(kind: str, directory: Path) -> Iterator[str]:
    """Its address, for as long as the block lasts."""
    if kind == "kafka":
        with started(_Closing(ZooKeeper(directory / "zookeeper"))) as server:
            yield server.inner.connect
        return
    port = free_port()
    broker = Broker("kpybroker", directory / "host", None, {"kpybroker.zookeeper.port": str(port)})
    try:
        broker.start()
        yield f"127.0.0.1:{port}"
    finally:
        broker.service.kill()


class _Closing:
    def __init__(self, inner: ZooKeeper) -> None:
        self.inner = inner

    def start(self) -> None:
        self.inner.start()

    def close(self) -> None:
        self.inner.stop()
