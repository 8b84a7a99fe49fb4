"""After the same story the znode tree is the one that real Kafka 3.9.1 leaves: every path, byte, version and ACL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.support.services import Broker, ZooKeeper
from compat_tests.tree.story import Znode, differences, dump, tell

OVERRIDES = {"offsets.topic.num.partitions": "3"}


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


def tree_after_the_story(kind: str, directory: Path, zookeeper: str) -> dict[str, Znode]:
    broker = Broker(kind, directory, zookeeper, OVERRIDES)
    broker.start()
    try:
        tell(broker.bootstrap, zookeeper)
        running = dump(zookeeper)
        broker.stop()
        stopped = dump(zookeeper)
    finally:
        broker.service.kill()
    return running | {f"{path} (stopped)": znode for path, znode in stopped.items()}


def test_the_tree_is_kafkas(request: pytest.FixtureRequest, tmp_path: Path, zookeeper: ZooKeeper) -> None:
    kind = request.config.getoption("--broker")
    reference = tree_after_the_story("kafka", tmp_path / "reference", f"{zookeeper.connect}/reference")
    compared = tree_after_the_story(kind, tmp_path / "compared", f"{zookeeper.connect}/compared")
    assert len(reference) > 80
    assert {znode.data for znode in reference.values()} >= {None}
    found = differences(reference, compared)
    assert not found, "\n".join(found)
