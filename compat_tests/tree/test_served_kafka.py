"""Kafka 3.9.1 itself, with the tree that a kpybroker serves as its ZooKeeper; with `--broker=kafka`, a real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from compat_tests.support.zookeeper.served_tree import ServedTree, served_tree

SESSION_MS = 6_000


@pytest.fixture
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedTree]:
    with served_tree(request.config.getoption("--broker"), tmp_path) as served:
        yield served


@contextmanager
def kafka_on(tree: ServedTree, directory: Path) -> Iterator[Broker]:
    settings = {"zookeeper.session.timeout.ms": str(SESSION_MS), "offsets.topic.num.partitions": "1"}
    kafka = Broker("kafka", directory / "kafka", f"{tree.address}/kafka", settings)
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.service.kill()


@contextmanager
def client_of(tree: ServedTree) -> Iterator[KazooClient]:
    client = KazooClient(f"{tree.address}/kafka", timeout=30)
    client.start(60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def registered(client: KazooClient) -> int:
    """When the broker registered; 0 while it is not."""
    stat = client.exists("/brokers/ids/0")
    return 0 if stat is None else int(stat.czxid)


def registered_after(tree: ServedTree, czxid: int) -> int:
    """When the broker has registered again."""
    with client_of(tree) as client:
        eventually(lambda: registered(client) > czxid, "it registers again")
        return registered(client)


def test_kafka_runs_on_it_and_survives_the_end_of_its_session(tree: ServedTree, tmp_path: Path) -> None:
    with kafka_on(tree, tmp_path) as kafka, client_of(tree) as client:
        quick.create_topic(kafka.bootstrap, "t", partitions=3, retention_ms=10**12)
        quick.fill(kafka.bootstrap, "t", [str(number) for number in range(100)], partition=1)
        assert len(quick.read(kafka.bootstrap, [("t", 1)], 100, group="g")) == 100
        assert sorted(client.get_children("/brokers/topics")) == ["__consumer_offsets", "t"]
        before = registered(client)
        assert before > 0

        kafka.service.pause()
        eventually(lambda: registered(client) == 0, "the session ends")
        kafka.service.resume()
        eventually(lambda: registered(client) > before, "the broker registers again")
        quick.fill(kafka.bootstrap, "t", ["after"], partition=1)
        assert quick.end_offset(kafka.bootstrap, "t", 1) == 101

        kafka.stop()
        assert registered(client) == 0


@pytest.mark.wide
def test_kafka_starts_again_on_it_and_outlives_it(tree: ServedTree, tmp_path: Path) -> None:
    if tree.broker is None:
        pytest.skip("of a kpybroker that ends and starts again")
    with kafka_on(tree, tmp_path) as kafka:
        quick.create_topic(kafka.bootstrap, "t", partitions=2)
        quick.fill(kafka.bootstrap, "t", ["1", "2", "3"])
        kafka.restart()
        quick.fill(kafka.bootstrap, "t", ["4"])
        assert quick.end_offset(kafka.bootstrap, "t", 0) == 4
        with client_of(tree) as client:
            before = registered(client)
        for end in (tree.broker.service.kill, tree.broker.stop):
            end()
            tree.broker.start()
            before = registered_after(tree, before)
        quick.create_topic(kafka.bootstrap, "u")
        quick.fill(kafka.bootstrap, "u", ["1"])
        quick.fill(kafka.bootstrap, "t", ["5"])
        assert quick.end_offset(kafka.bootstrap, "t", 0) == 5
