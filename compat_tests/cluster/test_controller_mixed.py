"""kpybroker as the controller of two real Kafka 3.9.1 brokers: they obey it, and it serves what they ask.

Nothing here depends on `--broker`: the cluster is mixed by its nature.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_tests.cluster.conftest import MakeCluster
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster

OURS, KAFKA, OTHER_KAFKA = 1, 2, 3
VALUES = [f"value {n}" for n in range(200)]


@pytest.fixture(scope="module")
def whole_cluster(any_cluster: MakeCluster) -> Cluster:
    cluster = any_cluster("kpybroker", "kafka", "kafka")
    cluster.start()  # ours first, so that it is the controller
    return cluster


@pytest.fixture
def mixed(whole_cluster: Cluster) -> Cluster:
    whole_cluster.heal()
    assert whole_cluster.controller() == OURS
    return whole_cluster


def read_values(cluster: Cluster, topic: str) -> list[str]:
    return [message.value().decode() for message in quick.read(cluster.bootstrap, [(topic, 0)], len(VALUES))]


@pytest.mark.wide
def test_kafka_leads_and_follows_as_the_controller_says(mixed: Cluster, name: str) -> None:
    mixed.create(
        name, f"{KAFKA}:{OTHER_KAFKA}:{OURS},{OURS}:{KAFKA}:{OTHER_KAFKA}", "--config", "min.insync.replicas=3"
    )
    quick.fill(mixed.bootstrap, name, VALUES)
    quick.fill(mixed.bootstrap, name, VALUES, partition=1)
    assert read_values(mixed, name) == VALUES
    assert mixed.state(name) == (KAFKA, {KAFKA, OTHER_KAFKA, OURS}, 0)


@pytest.mark.wide
def test_a_kafka_broker_dies_and_comes_back_into_the_isr(mixed: Cluster, name: str) -> None:
    mixed.create(name, f"{KAFKA}:{OTHER_KAFKA}")
    quick.fill(mixed.bootstrap, name, VALUES[:100])
    mixed.brokers[KAFKA].kill()
    mixed.wait_for_leader(name, OTHER_KAFKA)
    quick.fill(mixed.bootstrap, name, VALUES[100:])
    mixed.brokers[KAFKA].start()
    # Its leader is Kafka, which asks us by AlterPartition.
    mixed.wait_for_isr(name, {KAFKA, OTHER_KAFKA})
    assert read_values(mixed, name) == VALUES
    mixed.tools.run("leader-election", "--election-type", "preferred", "--topic", name, "--partition", "0")
    mixed.wait_for_leader(name, KAFKA)


def test_a_kafka_broker_stops_in_order(mixed: Cluster, name: str) -> None:
    mixed.create(name, f"{KAFKA}:{OTHER_KAFKA}")
    mixed.brokers[KAFKA].stop()
    output = mixed.brokers[KAFKA].service.output()
    assert "Controlled shutdown request returned successfully" in output
    assert mixed.state(name) == (OTHER_KAFKA, {OTHER_KAFKA}, 1)


@pytest.mark.wide
def test_replicas_move_between_kafka_brokers_and_to_ours(mixed: Cluster, name: str, tmp_path: Path) -> None:
    mixed.create(name, f"{KAFKA}")
    quick.fill(mixed.bootstrap, name, VALUES)
    for target in ([OTHER_KAFKA], [OURS], [KAFKA, OURS]):
        plan = tmp_path / "plan.json"
        wanted = {"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": target}]}
        plan.write_text(json.dumps(wanted))
        mixed.tools.run("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
        mixed.wait(lambda: mixed.replicas(name) == target, f"{name} has moved to {target}")
        mixed.wait_for_isr(name, set(target))
        assert read_values(mixed, name) == VALUES
    remains = list((mixed.brokers[OTHER_KAFKA].data_dir).glob(f"{name}-0"))
    assert remains == [], "deleted where it is not any more"


def test_a_topic_on_all_of_them_is_deleted_everywhere(mixed: Cluster, name: str) -> None:
    mixed.create(name, f"{KAFKA}:{OTHER_KAFKA}:{OURS}")
    mixed.tools.run("topics", "--delete", "--topic", name)
    mixed.wait(lambda: mixed.tree.exists(f"/brokers/topics/{name}") is None, "the topic is gone")
    for broker in mixed.brokers.values():
        mixed.wait(lambda: not list(broker.data_dir.glob(f"{name}-0")), "its files are gone")


def test_kafka_takes_the_controllership_over_and_ours_obeys(mixed: Cluster, name: str) -> None:
    mixed.create(name, f"{OURS}:{KAFKA}:{OTHER_KAFKA}")
    quick.fill(mixed.bootstrap, name, VALUES)
    mixed.brokers[OURS].stop()
    mixed.wait(lambda: mixed.controller() in (KAFKA, OTHER_KAFKA), "a Kafka broker is the controller")
    mixed.wait_for_leader(name, KAFKA)
    mixed.brokers[OURS].start()
    mixed.wait_for_isr(name, {OURS, KAFKA, OTHER_KAFKA})
    mixed.tools.run("leader-election", "--election-type", "preferred", "--topic", name, "--partition", "0")
    mixed.wait_for_leader(name, OURS)
    assert read_values(mixed, name) == VALUES
    # And back: the Kafka brokers go, one after the other.
    for kafka in (KAFKA, OTHER_KAFKA):
        mixed.brokers[kafka].restart()
    mixed.wait(lambda: mixed.controller() is not None, "a controller")
