"""One served tree for the tests of this folder that leave it as it is; each keeps to its own chroot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from compat_tests.support.zookeeper.served_tree import served_tree

Connect = Callable[[], KazooClient]


@pytest.fixture(scope="session")
def tree_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a kpybroker that serves its tree, or with `--broker=kafka` of a ZooKeeper."""
    with served_tree(request.config.getoption("--broker"), tmp_path_factory.mktemp("served")) as served:
        yield served.address


@pytest.fixture
def connect(tree_address: str, name: str) -> Iterator[Connect]:
    """Makes clients of a part of the tree that no other test uses."""
    clients: list[KazooClient] = []

    def start() -> KazooClient:
        client = KazooClient(f"{tree_address}/{name}", timeout=20)
        clients.append(client)
        client.start(60)
        client.ensure_path("/")
        return client

    yield start
    for client in clients:
        client.stop()
        client.close()
