"""Tools and consumers that speak to ZooKeeper themselves, as they did before Kafka 3.

They find what they look for in the tree, and the controller does what they write there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.old_groups import Group, OldConsumer
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest


@pytest.fixture
def old_tools(cluster: Cluster) -> Tools:
    return Tools("2.8.2", cluster.zookeeper)


def described(cluster: Cluster, topic: str) -> str:
    """By today's tool, from the brokers' metadata."""
    return cluster.tools.run("topics", "--describe", "--topic", topic).out


def rows(text: str) -> list[list[str]]:
    """Leader, replicas and ISR of every partition, in the words that all versions of the tool share."""
    found = re.findall(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S+)", text)
    return [
        [partition, leader, replicas, ",".join(sorted(isr.split(",")))] for partition, leader, replicas, isr in found
    ]


# --- kafka-topics --zookeeper


def test_a_topic_is_created_described_grown_and_deleted(cluster: Cluster, old_tools: Tools, name: str) -> None:
    what = ("--topic", name)
    settings = ("--partitions", "3", "--replication-factor", "3", "--config", "retention.ms=7777777")
    said = old_tools.run("topics", "--create", *what, *settings)
    assert f"Created topic {name}." in said.out
    cluster.wait(lambda: len(rows(described(cluster, name))) == 3, "the brokers know it")
    # The tool gives it no id; the controller does.
    cluster.wait(lambda: "topic_id" in cluster.json(f"/brokers/topics/{name}"), "the topic has an id")
    reported = described(cluster, name)
    assert "retention.ms=7777777" in reported
    assert cluster.json(f"/brokers/topics/{name}")["topic_id"] in reported
    quick.fill(cluster.bootstrap, name, ["one"], partition=2)

    old = old_tools.run("topics", "--describe", *what).out
    assert rows(old) == rows(reported)
    assert "PartitionCount: 3\tReplicationFactor: 3\tConfigs: retention.ms=7777777" in old
    assert name in old_tools.run("topics", "--list").lines

    old_tools.run("topics", "--alter", *what, "--partitions", "5")
    cluster.wait(lambda: len(rows(described(cluster, name))) == 5, "it has grown")
    quick.fill(cluster.bootstrap, name, ["two"], partition=4)

    said = old_tools.run("topics", "--delete", *what)
    assert f"Topic {name} is marked for deletion" in said.out
    cluster.wait(lambda: cluster.tree.exists(f"/brokers/topics/{name}") is None, "the topic is gone")
    cluster.wait(lambda: cluster.tree.exists(f"/admin/delete_topics/{name}") is None, "the mark is gone")
    for broker in cluster.brokers.values():
        cluster.wait(lambda: not list(broker.data_dir.glob(f"{name}-?")), "its files are gone")


def test_a_topic_placed_by_hand_is_led_where_it_was_placed(cluster: Cluster, old_tools: Tools, name: str) -> None:
    old_tools.run("topics", "--create", "--topic", name, "--replica-assignment", "3:1,2:3")
    cluster.wait(lambda: rows(described(cluster, name)) == [["0", "3", "3,1", "1,3"], ["1", "2", "2,3", "2,3"]], name)
    old_tools.run("topics", "--alter", "--topic", name, "--partitions", "3", "--replica-assignment", "3:1,2:3,1:2")
    cluster.wait(lambda: rows(described(cluster, name))[2:] == [["2", "1", "1,2", "1,2"]], "the third one")


@pytest.mark.wide
def test_what_a_dead_broker_led_is_under_replicated(cluster: Cluster, old_tools: Tools, name: str) -> None:
    victim = next(i for i in cluster.brokers if i != cluster.controller())
    other = next(i for i in cluster.brokers if i != victim)
    old_tools.run("topics", "--create", "--topic", name, "--replica-assignment", f"{victim}:{other}")
    cluster.wait(lambda: rows(described(cluster, name)), "the brokers know it")
    flag = ("--describe", "--topic", name, "--under-replicated-partitions")
    assert rows(old_tools.run("topics", *flag).out) == []
    cluster.brokers[victim].stop()
    assert rows(old_tools.run("topics", *flag).out) == [["0", str(other), f"{victim},{other}", str(other)]]


# --- kafka-configs --zookeeper


@pytest.mark.wide
def test_configuration_written_to_the_tree_is_obeyed(cluster: Cluster, old_tools: Tools, name: str) -> None:
    cluster.create(name, "1:2:3")
    entity = ("--entity-type", "topics", "--entity-name", name)

    def set_by_topic() -> str:
        return cluster.tools.run("configs", "--describe", *entity).out

    old_tools.run("configs", "--alter", *entity, "--add-config", "max.message.bytes=2000,retention.ms=7777777")
    for value in ("max.message.bytes=2000", "retention.ms=7777777"):
        cluster.wait(lambda: value in set_by_topic(), f"the brokers tell of {value}")
    with pytest.raises(AssertionError, match=r"(?i)message size too large"):
        quick.fill(cluster.bootstrap, name, ["x" * 5000])
    said = old_tools.run("configs", "--describe", *entity).out
    assert "max.message.bytes=2000" in said
    assert "retention.ms=7777777" in said
    old_tools.run("configs", "--alter", *entity, "--delete-config", "max.message.bytes")
    cluster.wait(lambda: "max.message.bytes" not in set_by_topic(), "the key is gone")
    quick.fill(cluster.bootstrap, name, ["x" * 5000])


# --- the consumer whose group lives in ZooKeeper


@pytest.fixture
def old_consumer(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[[str, str], OldConsumer]]:
    tools, started = Tools("0.10.2.2", cluster.zookeeper), list[OldConsumer]()

    def start(topic: str, group: str) -> OldConsumer:
        started.append(OldConsumer(tools, tmp_path, topic, group, len(started)))
        return started[-1]

    yield start
    for consumer in started:
        consumer.kill()


def fill(cluster: Cluster, topic: str, tag: str, count: int = 50) -> set[str]:
    """So many records into each of the two partitions; all of them."""
    values = {part: [f"{tag} {part}:{n}" for n in range(count)] for part in (0, 1)}
    for part, lines in values.items():
        quick.fill(cluster.bootstrap, topic, lines, partition=part)
    return {*values[0], *values[1]}


@pytest.mark.wide
def test_an_old_group_shares_partitions_and_goes_on_where_it_was(
    cluster: Cluster, old_consumer: Callable[[str, str], OldConsumer], name: str
) -> None:
    cluster.create(name, "1:2:3,2:3:1")
    group = Group(cluster, f"group-{name}", name)
    first_values = fill(cluster, name, "first")
    one = old_consumer(name, f"group-{name}")
    eventually(lambda: set(one.read) == first_values, "all of it is read by the one member")
    assert len(one.read) == len(first_values)
    assert len(group.members) == 1
    assert set(group.owners) == {0, 1}
    eventually(lambda: group.offsets == {0: 50, 1: 50}, "it commits to the tree")

    other = old_consumer(name, f"group-{name}")
    eventually(lambda: len(group.members) == 2 and len(set(group.owners.values())) == 2, "each has one partition")
    second_values = fill(cluster, name, "second")
    eventually(lambda: {*one.read, *other.read} == first_values | second_values, "both together have read it all")
    assert len(other.read) == 50
    eventually(lambda: group.offsets == {0: 100, 1: 100}, "both have committed")

    one.stop()
    other.stop()
    assert (group.members, group.owners) == (set(), {})
    third_values = fill(cluster, name, "third")
    again = old_consumer(name, f"group-{name}")
    eventually(lambda: set(again.read) == third_values, "only what it has not read yet")
    assert len(again.read) == len(third_values)
    # A broker responds to clients of those days with what the tree says (OffsetFetch 0).
    eventually(
        lambda: offsets_by_brokers(cluster, f"group-{name}", name) == {0: 150, 1: 150}, "the offsets as brokers tell"
    )


def offsets_by_brokers(cluster: Cluster, group: str, topic: str) -> dict[int, int]:
    wanted = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])
    with Raw(("127.0.0.1", cluster.brokers[1].port)) as raw:
        response = raw.ask(OffsetFetchRequest(group_id=group, topics=[wanted]), 0)
    return {part.partition_index: part.committed_offset for part in response.topics[0].partitions}


@pytest.mark.wide
def test_an_old_consumer_follows_its_leader_to_another_broker(
    cluster: Cluster, old_consumer: Callable[[str, str], OldConsumer], name: str
) -> None:
    victim = next(i for i in cluster.brokers if i != cluster.controller())
    others = [i for i in cluster.brokers if i != victim]
    cluster.create(name, f"{victim}:{others[0]}:{others[1]},{others[0]}:{others[1]}:{victim}")
    consumer = old_consumer(name, f"group-{name}")
    values = fill(cluster, name, "before")
    eventually(lambda: set(consumer.read) == values, "what was there before")
    cluster.brokers[victim].kill()
    cluster.wait_for_leader(name, others[0])
    values |= fill(cluster, name, "after")
    eventually(lambda: set(consumer.read) == values, "what came after the failover", 180)
    assert len(consumer.read) == len(values)
