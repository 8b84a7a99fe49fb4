"""Tools that know only ZooKeeper, from 0.10.2.2 and 2.8.2, against a broker with an embedded tree that it serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from compat_tests.support.zookeeper.served_tree import served_tree


class Cluster:
    def __init__(self, broker: Broker, address: str) -> None:
        self.broker = broker
        self.address = address
        self.bootstrap = broker.bootstrap


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A kpybroker on its own tree; with `--broker=kafka`, Kafka on a real ZooKeeper."""
    directory = tmp_path_factory.mktemp("served")
    with served_tree(request.config.getoption("--broker"), directory) as served:
        broker = served.broker or Broker("kafka", directory / "kafka", served.address, {})
        try:
            if served.broker is None:
                broker.start()
            yield Cluster(broker, served.address)
        finally:
            broker.service.kill()


def make_topic(cluster: Cluster, tools: Tools, name: str) -> None:
    made = tools.run("topics", "--create", "--topic", name, "--partitions", "2", "--replication-factor", "1")
    assert f'Created topic "{name}".' in made.out or f"Created topic {name}." in made.out
    admin = quick.admin_client(cluster.bootstrap)

    def partitions() -> int:
        known = admin.list_topics(timeout=60).topics.get(name)
        return 0 if known is None else sum(one.leader >= 0 for one in known.partitions.values())

    eventually(lambda: partitions() == 2, "the broker has it")
    quick.fill(cluster.bootstrap, name, ["a", "b"], partition=1)


def test_a_topic_is_made_and_shown_through_the_tree(cluster: Cluster, name: str) -> None:
    tools = Tools("0.10.2.2", cluster.address)
    make_topic(cluster, tools, name)
    described = tools.run("topics", "--describe", "--topic", name).out
    assert "PartitionCount:2" in described
    assert described.count("Leader: 0") == 2


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.10.2.2", "2.8.2"])
def test_a_topic_is_changed_and_deleted_through_the_tree(cluster: Cluster, name: str, version: str) -> None:
    tools = Tools(version, cluster.address)
    make_topic(cluster, tools, name)
    assert name in tools.run("topics", "--list").lines
    entity = ("--entity-type", "topics", "--entity-name", name)
    tools.run("configs", "--alter", *entity, "--add-config", "retention.ms=7777777")
    assert "retention.ms=7777777" in tools.run("configs", "--describe", *entity).out
    admin = Tools("3.9.1", cluster.bootstrap)
    eventually(lambda: "7777777" in admin.run("configs", "--describe", *entity).out, "the broker has the setting")

    tools.run("topics", "--delete", "--topic", name)
    with_topic = quick.admin_client(cluster.bootstrap)
    eventually(lambda: name not in with_topic.list_topics(timeout=60).topics, "it is gone")


@pytest.mark.wide
def test_a_consumer_of_old_keeps_its_group_in_the_tree(cluster: Cluster, name: str, tmp_path: Path) -> None:
    quick.create_topic(cluster.bootstrap, name)
    quick.fill(cluster.bootstrap, name, [str(number) for number in range(20)])
    settings = tmp_path / "consumer.properties"
    settings.write_text(f"group.id={name}\nzookeeper.session.timeout.ms=6000\nauto.commit.interval.ms=200\n")
    options = ("--topic", name, "--consumer.config", str(settings), "--from-beginning", "--max-messages", "20")
    read = Tools("0.10.2.2", cluster.address).run("console-consumer", *options)
    assert read.lines == [str(number) for number in range(20)]
    client = KazooClient(cluster.address, timeout=30)
    client.start(60)
    try:
        assert client.get(f"/consumers/{name}/offsets/{name}/0")[0] == b"20"
        assert client.get_children(f"/consumers/{name}/ids") == []
    finally:
        client.stop()
        client.close()
    assert name in Tools("0.10.2.2", cluster.address).run("consumer-groups", "--list").lines
