"""The tools of 0.8 and 0.10 that change topics: they write to the tree, and the controller does it.

`compat_tests/cluster/test_zookeeper_era.py` has kafka-topics and kafka-configs of 2.8.2, the last of their kind.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compat_tests.field.era import Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster

pytestmark = pytest.mark.wide

UNREADABLE = re.compile(r" ERROR (?:error processing change notification|Configuration change .* cannot be read)")
"""What Kafka logs of a change that it cannot read, and what we log."""


def described(era: Era, topic: str) -> list[tuple[int, int, str, list[str]]]:
    """(partition, leader, replicas, sorted ISR) by TopicCommand."""
    text = era.run("TopicCommand", "--describe", "--topic", topic).out
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S+)\s+Isr: (\S+)", text)
    return [(int(number), int(leader), replicas, sorted(isr.split(","))) for number, leader, replicas, isr in rows]


@pytest.mark.on_dev
def test_a_topic_from_its_creation_to_its_end(cluster: Cluster, era: Era, name: str) -> None:
    """TopicCommand: create, list, describe, alter, delete."""
    what = ("--topic", name)
    made = era.run("TopicCommand", "--create", *what, "--partitions", "2", "--replication-factor", "2")
    assert f'Created topic "{name}".' in made.out
    quick.fill(cluster.bootstrap, name, ["one"], partition=1)
    assert [row[0] for row in described(era, name)] == [0, 1]
    assert all(row[3] == ["1", "2"] for row in described(era, name))
    assert name in era.run("TopicCommand", "--list").lines
    era.run("TopicCommand", "--alter", *what, "--partitions", "3")
    cluster.wait(lambda: len(cluster.metadata(1).topics[name].partitions) == 3, "it has grown")
    quick.fill(cluster.bootstrap, name, ["two"], partition=2)
    era.run("TopicCommand", "--delete", *what)
    cluster.wait(lambda: cluster.tree.exists(f"/brokers/topics/{name}") is None, "the topic is gone")


def is_refused(cluster: Cluster, topic: str, size: int) -> bool:
    """Whether a record of so many bytes is too large for the topic."""
    try:
        quick.fill(cluster.bootstrap, topic, ["x" * size])
    except AssertionError as error:
        if "MSG_SIZE_TOO_LARGE" in str(error):
            return True
        raise
    return False


@pytest.mark.on_dev
def test_a_topics_settings_written_by_a_tool_are_obeyed(cluster: Cluster, era: Era, name: str) -> None:
    """TopicCommand --alter --config. The change notification of 0.8.2.2 has a form that no broker since 0.9 reads: the
    broker logs an error, and the setting holds from its next start."""
    cluster.create(name, "2")
    broker = cluster.brokers[2]

    def errors() -> int:
        return len(UNREADABLE.findall(broker.service.output()))

    def altered(*arguments: str) -> None:
        before = errors()
        era.run("TopicCommand", "--alter", "--topic", name, *arguments)
        if era.version == "0.8.2.2":
            cluster.wait(lambda: errors() > before, "the broker logs an error")
            broker.restart()

    assert not is_refused(cluster, name, 3000)
    altered("--config", "max.message.bytes=2000")
    cluster.wait(lambda: is_refused(cluster, name, 3000), "the broker obeys")
    assert "max.message.bytes=2000" in era.run("TopicCommand", "--describe", "--topic", name).out
    altered("--delete-config", "max.message.bytes")
    cluster.wait(lambda: not is_refused(cluster, name, 3000), "the broker obeys again")


@pytest.mark.on_dev
def test_configuration_of_a_client_by_config_command(cluster: Cluster, name: str) -> None:
    """ConfigCommand of 0.10: a quota of a client, and a topic's setting."""
    era = Era("0.10.2.2", cluster)
    client = ("--entity-type", "clients", "--entity-name", name)
    said = era.run("ConfigCommand", "--alter", *client, "--add-config", "producer_byte_rate=1048576").out
    assert f"for entity: client-id '{name}'" in said
    assert "producer_byte_rate=1048576" in era.run("ConfigCommand", "--describe", *client).out

    def reported() -> str:
        return cluster.tools.run("configs", "--describe", *client).out

    cluster.wait(lambda: "producer_byte_rate=1048576" in reported(), "the brokers know it")
    era.run("ConfigCommand", "--alter", *client, "--delete-config", "producer_byte_rate")
    cluster.wait(lambda: "producer_byte_rate" not in reported(), "the brokers know that it is gone")


@pytest.mark.on_dev
def test_the_preferred_replica_leads_again(cluster: Cluster, era: Era, name: str, tmp_path: Path) -> None:
    """PreferredReplicaLeaderElectionCommand, for a partition of a file."""
    cluster.create(name, "2:1")
    cluster.brokers[2].stop()
    cluster.wait_for_leader(name, 1)
    cluster.brokers[2].start()
    cluster.wait_for_isr(name, {1, 2})
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": name, "partition": 0}]}))
    said = era.run("PreferredReplicaLeaderElectionCommand", "--path-to-json-file", str(file)).out
    assert f"Successfully started preferred replica election for partitions Set([{name},0])" in said
    cluster.wait_for_leader(name, 2)
    cluster.wait(lambda: cluster.tree.exists("/admin/preferred_replica_election") is None, "the request is done")


@pytest.mark.on_dev
def test_replicas_are_moved(cluster: Cluster, era: Era, name: str, tmp_path: Path) -> None:
    """ReassignPartitionsCommand: a plan, its execution, its verification; the records have moved with them."""
    cluster.create(name, "1,2")
    quick.fill(cluster.bootstrap, name, [f"{n}" for n in range(100)])
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    proposed = era.run(
        "ReassignPartitionsCommand", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2", "--generate"
    )
    plans = [json.loads(line) for line in proposed.lines if line.startswith("{")]
    assert [sorted(one["partition"] for one in made["partitions"]) for made in plans] == [[0, 1], [0, 1]]
    wanted = [{"topic": name, "partition": number, "replicas": [2 - number]} for number in (0, 1)]
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    how = ("--reassignment-json-file", str(plan))
    assert "Successfully started reassignment" in era.run("ReassignPartitionsCommand", *how, "--execute").out

    def is_done() -> bool:
        verdict = era.run("ReassignPartitionsCommand", *how, "--verify").out
        assert "failed" not in verdict
        return verdict.count("completed successfully") == 2

    cluster.wait(is_done, "the tool says that it is done")
    assert described(era, name) == [(0, 2, "2", ["2"]), (1, 1, "1", ["1"])]
    assert len(quick.read(cluster.bootstrap, [(name, 0)], 100)) == 100


def test_replicas_cannot_be_compared(cluster: Cluster, era: Era, name: str, tmp_path: Path) -> None:
    """ReplicaVerificationTool fetches from each replica, by versions of Fetch that a broker since Kafka 2.4 serves as a
    leader only. It takes the followers' errors for empty responses: it compares nothing, and reports the lag of that.
    """
    cluster.create(name, "1:2,2:1")
    for partition in (0, 1):
        quick.fill(cluster.bootstrap, name, [f"{n}" for n in range(50)], partition)
    which = ("--topic-white-list", name, "--report-interval-ms", "500", "--time", "-2")
    with era.running(tmp_path, "ReplicaVerificationTool", *which) as tool:
        # of two partitions with the same lag it names one
        said = tool.wait_for("at offset 0 among 2 pa")  # 0.8 has "paritions"
        tool.stop()
    assert f"max lag is 50 for partition [{name}," in said
    assert "unmatched" not in said
