"""Replication under load while brokers die and come back: three kpybrokers, and kpybroker next to real Kafka.

The default is a short play of each; `--replication-rounds=N` repeats the deaths.
"""

from __future__ import annotations

import re
import subprocess
from itertools import takewhile

import pytest

from compat_tests.cluster.conftest import MakeCluster
from compat_tests.cluster.traffic import Reader, Writer, verify, wait_for_equal_logs
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.security.logins import login_at

PARTITIONS = 3
SPREAD = "1:2:3,2:3:1,3:1:2"
SOME = 200


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--replication-rounds")
    return count


def _all_in_sync(cluster: Cluster, topic: str) -> None:
    for partition in range(PARTITIONS):
        cluster.wait_for_isr(topic, {1, 2, 3}, partition)


def _start_load(cluster: Cluster, topic: str) -> tuple[Writer, Reader]:
    cluster.create(topic, SPREAD, "--config", "min.insync.replicas=2")
    writer, reader = Writer(cluster.bootstrap, topic, PARTITIONS), Reader(cluster.bootstrap, topic, f"{topic}-group")
    writer.start()
    reader.start()
    writer.wait_for_more(SOME)
    return writer, reader


def _end_load(cluster: Cluster, writer: Writer, reader: Reader) -> None:
    _all_in_sync(cluster, writer.topic)
    writer.wait_for_more(SOME)
    writer.stop()
    cluster.wait(lambda: len(reader.seen) >= writer.acked_count, "the reader has read all")
    reader.stop()
    verify(cluster.bootstrap, writer, reader)
    for partition in range(PARTITIONS):
        wait_for_equal_logs(list(cluster.brokers.values()), writer.topic, partition)


def _bounce(cluster: Cluster, victim: int, writer: Writer, *, hard: bool) -> None:
    """One broker goes, the others go on without it, it comes back and is in sync again."""
    broker = cluster.brokers[victim]
    if hard:
        broker.kill()
    else:
        broker.stop()
    cluster.wait(lambda: victim not in cluster.live(), f"{victim} is gone")
    for partition in range(PARTITIONS):
        cluster.wait(lambda: cluster.state(writer.topic, partition).leader not in (victim, -1), "another leader")
    writer.wait_for_more(SOME)
    broker.start()
    _all_in_sync(cluster, writer.topic)
    writer.wait_for_more(SOME)


@pytest.mark.wide
def test_nothing_acknowledged_is_lost_when_each_broker_in_turn_is_killed(
    cluster: Cluster, name: str, rounds: int
) -> None:
    writer, reader = _start_load(cluster, name)
    for _ in range(rounds):
        for victim in cluster.brokers:
            _bounce(cluster, victim, writer, hard=True)
    _end_load(cluster, writer, reader)


@pytest.mark.wide
def test_nothing_acknowledged_is_lost_in_a_rolling_restart(cluster: Cluster, name: str, rounds: int) -> None:
    writer, reader = _start_load(cluster, name)
    for _ in range(rounds):
        for victim in cluster.brokers:
            _bounce(cluster, victim, writer, hard=False)
    _end_load(cluster, writer, reader)


@pytest.mark.wide
def test_a_kpybroker_replicates_leads_and_serves_groups_among_kafka_brokers(
    own_cluster: MakeCluster, name: str
) -> None:
    """Two Kafka 3.9.1, one of them the controller, and one kpybroker: it follows, leads, dies and comes back."""
    cluster = own_cluster("kafka", "kafka", "kpybroker")
    cluster.start()
    assert cluster.controller() == 1
    writer, reader = _start_load(cluster, name)
    _all_in_sync(cluster, name)
    assert cluster.state(name, 2).leader == 3
    _bounce(cluster, 3, writer, hard=True)
    cluster.tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    cluster.wait_for_leader(name, 3, partition=2)
    writer.wait_for_more(SOME)
    _bounce(cluster, 2, writer, hard=True)
    _bounce(cluster, 3, writer, hard=False)
    _end_load(cluster, writer, reader)


def test_kafkas_own_verification_reads_every_replica_and_finds_them_equal(cluster: Cluster, name: str) -> None:
    """kafka-replica-verification fetches each replica from its own broker, the followers' too, and compares them."""
    if login_at(cluster.bootstrap) is not None:
        pytest.skip("this tool cannot log in")
    cluster.create(name, SPREAD)
    _all_in_sync(cluster, name)
    for partition in range(PARTITIONS):
        quick.fill(cluster.bootstrap, name, [f"{n}" for n in range(SOME)], partition)
    options = ["--topics-include", name, "--time", "-2", "--report-interval-ms", "200", "--max-wait-ms", "100"]
    tool = cluster.tools.command("replica-verification", *options)
    with subprocess.Popen(tool, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as verifying:
        assert verifying.stdout is not None
        at_end = re.compile(rf"max lag is 0 for partition {name}-\d at offset {SOME} among {PARTITIONS} partitions")
        said = list(takewhile(lambda line: not at_end.search(line), verifying.stdout))
        was_running = verifying.poll() is None
        verifying.kill()
    assert was_running, said
    wrong = [line for line in said if "max lag is" not in line and "verification process is started" not in line]
    assert not wrong, said
