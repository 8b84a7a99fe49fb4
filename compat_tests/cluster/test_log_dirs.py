"""Several log directories: replicas are moved between them while they serve, and one that fails takes only its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_tests.cluster.conftest import MakeCluster
from compat_tests.cluster.traffic import Writer, log_directory, verify, wait_for_equal_logs
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import write_properties


def _moved(cluster: Cluster, topic: str, broker_id: int, target: Path) -> bool:
    """As `kafka-log-dirs` shows it: there, and no longer on its way."""
    out = cluster.tools.run("log-dirs", "--describe", "--broker-list", str(broker_id), "--topic-list", topic).out
    found = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    where = {
        (directory["logDir"], part["isFuture"])
        for directory in found["brokers"][0]["logDirs"]
        for part in directory["partitions"]
    }
    return where == {(str(target), False)}


def with_second_directories(cluster: Cluster, directory: Path) -> dict[int, Path]:
    """Give every broker a second log directory; which, by broker."""
    extra = {}
    for broker_id, broker in cluster.brokers.items():
        extra[broker_id] = directory / f"extra-{broker_id}"
        broker.properties["log.dirs"] += f",{extra[broker_id]}"
        write_properties(broker.config_file, broker.properties)
    return extra


@pytest.mark.wide
def test_a_replica_moves_to_another_directory_under_load(own_cluster: MakeCluster, name: str, tmp_path: Path) -> None:
    """By `kafka-reassign-partitions`: leader and follower, with acks=all producers running."""
    cluster = own_cluster("kpybroker", "kpybroker")
    extra = with_second_directories(cluster, tmp_path)
    cluster.start()
    cluster.create(name, "1:2", "--config", "segment.bytes=200000")
    writer = Writer(cluster.bootstrap, name, 1)
    writer.start()
    writer.wait_for_more(2000)
    homes = {broker_id: log_directory(broker, name, 0).parent for broker_id, broker in cluster.brokers.items()}
    targets = {i: extra[i] if homes[i] != extra[i] else Path(cluster.brokers[i].data_dir) for i in homes}
    move = {"topic": name, "partition": 0, "replicas": [1, 2], "log_dirs": [str(targets[1]), str(targets[2])]}
    plan = {"version": 1, "partitions": [move]}
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(json.dumps(plan))
    cluster.tools.run("reassign-partitions", "--reassignment-json-file", str(plan_file), "--execute")
    for broker_id in cluster.brokers:
        cluster.wait(lambda: _moved(cluster, name, broker_id, targets[broker_id]), f"moved on {broker_id}")
    writer.wait_for_more(500)
    writer.stop()
    verify(cluster.bootstrap, writer)
    wait_for_equal_logs(list(cluster.brokers.values()), name, 0)
    for broker in cluster.brokers.values():
        broker.stop()
        broker.start()
    cluster.wait_for_isr(name, {1, 2})
    assert {i: log_directory(broker, name, 0).parent for i, broker in cluster.brokers.items()} == targets
    verify(cluster.bootstrap, writer)


def test_a_directory_that_fails_takes_only_its_own(own_cluster: MakeCluster, name: str, tmp_path: Path) -> None:
    """Its partitions are led elsewhere, the others where they were; with it fixed, all is as before."""
    cluster = own_cluster(replica_high_watermark_checkpoint_interval_ms="500")
    extra = with_second_directories(cluster, tmp_path)
    cluster.start()
    partitions = 4
    cluster.create(name, ",".join(["1:2:3"] * partitions), "--config", "min.insync.replicas=2")
    writer = Writer(cluster.bootstrap, name, partitions)
    writer.start()
    writer.wait_for_more(500)
    broker = cluster.brokers[1]
    broken = {part for part in range(partitions) if log_directory(broker, name, part).parent == extra[1]}
    assert 0 < len(broken) < partitions

    aside = tmp_path / "aside"
    extra[1].rename(aside)
    extra[1].touch()  # no directory any more: nothing can be written there
    for partition in range(partitions):
        cluster.wait_for_leader(name, 2 if partition in broken else 1, partition)
        cluster.wait_for_isr(name, {2, 3} if partition in broken else {1, 2, 3}, partition)
    assert broker.service.running
    writer.wait_for_more(500)
    reported = cluster.tools.run("log-dirs", "--describe", "--broker-list", "1", "--topic-list", name).out
    found = json.loads(next(line for line in reported.splitlines() if line.startswith("{")))
    errors = {directory["logDir"]: directory["error"] for directory in found["brokers"][0]["logDirs"]}
    assert errors[str(extra[1])] == "org.apache.kafka.common.errors.KafkaStorageException"
    assert errors[str(broker.data_dir)] is None

    broker.stop()
    extra[1].unlink()
    aside.rename(extra[1])
    broker.start()
    for partition in range(partitions):
        cluster.wait_for_isr(name, {1, 2, 3}, partition)
    writer.wait_for_more(500)
    writer.stop()
    verify(cluster.bootstrap, writer)
    for partition in range(partitions):
        wait_for_equal_logs(list(cluster.brokers.values()), name, partition)
