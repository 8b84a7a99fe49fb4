"""A running cluster changes from PLAINTEXT to SASL_SSL with SCRAM and ACLs, by the files of the guide, while clients
write and read: what was acknowledged is there, once and in order.

Two brokers of the kind under test and one of real Kafka. Every broker restarts three times, one at a time; clients move
between the first and the second round. So each kind is the controller and a leader, and speaks to the other, at
every step.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.cluster.traffic import Reader, Writer, verify, wait_for_equal_logs
from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import QUIET
from compat_tests.support.security.logins import ClientLogin, reach, register
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools, write_commands
from kpybroker.config.sources.properties import load_properties
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port
from tests.support.programs.samples import run_sample, text_of

SAMPLES = "security/rolling"
TOPIC, GROUP, PARTITIONS = "orders", "readers", 3
ALL = {1, 2, 3}
SOME = 150
"""Records that are acknowledged between two restarts."""
DEADLINE_S = 60.0


class Change:
    """The cluster, its files and its clients."""

    def __init__(self, launcher: Launcher, directory: Path) -> None:
        self.directory = directory
        kinds = [launcher.kind, "kafka", launcher.kind]
        few = {"offsets.topic.num.partitions": "3"}
        self.cluster = Cluster(directory / "brokers", launcher.zookeeper("rolling"), kinds, few)
        authority = Authority(directory / "authority")
        self._secured = {broker_id: free_port() for broker_id in self.cluster.brokers}
        (directory / "certificates").mkdir()
        ca = directory / "certificates" / "ca.pem"
        ca.write_text(authority.certificate.read_text())
        for broker_id, broker in self.cluster.brokers.items():
            here = broker.config_file.parent / "certificates"
            here.mkdir()
            authority.issue(f"broker-{broker_id}")[0].rename(here / "broker.pem")
            (here / "ca.pem").write_text(ca.read_text())
        self._ca = ca

    def configure(self, broker: Broker, step: str) -> None:
        """For its next start, with the sample of this step."""
        places = {"127.0.0.1:9092": f"127.0.0.1:{broker.port}", "127.0.0.1:9093": self.address(broker)}
        file = broker.config_file.with_name(f"{step}.properties")
        file.write_text(text_of(f"{SAMPLES}/{step}.properties", places))
        broker.configure(load_properties(str(file)))

    def address(self, broker: Broker) -> str:
        """Of its secured listener."""
        return f"127.0.0.1:{self._secured[broker.node_id]}"

    def roll(self, step: str, writer: Writer) -> None:
        """Restart every broker, each when the cluster is whole and the writer goes on."""
        for broker in self.cluster.brokers.values():
            writer.wait_for_more(SOME)
            broker.stop()
            writer.wait_for_more(SOME)
            self.configure(broker, step)
            broker.start()
            self.wait_until_whole()
        writer.wait_for_more(SOME)

    def wait_until_whole(self) -> None:
        """As an operator does between two restarts: no partition lacks a replica."""
        tree = self.cluster.tree
        self.cluster.wait(lambda: self.cluster.live() == ALL, "all brokers are registered")
        for topic in tree.get_children("/brokers/topics"):
            for partition in map(int, self.cluster.json(f"/brokers/topics/{topic}")["partitions"]):
                self.cluster.wait_for_isr(topic, ALL, partition)

    def clients_are(self, user: str) -> None:
        """New clients connect to the secured listeners, and log in as this user."""
        file = self.directory / f"{user}.properties"
        file.write_text(text_of(f"{SAMPLES}/client.properties", {"certificates/ca.pem": str(self._ca), "alice": user}))
        login = ClientLogin("SCRAM-SHA-512", user, f"{user}-secret", self._ca, file)
        for broker in self.cluster.brokers.values():
            register(self.address(broker), login)
            broker.client_port = self._secured[broker.node_id]

    def run(self, sample: str) -> str:
        """With the tools of Kafka, at the first broker."""
        commands = self.directory / "commands"
        commands.mkdir(exist_ok=True)
        place = {"127.0.0.1:9092": f"127.0.0.1:{self.cluster.brokers[1].port}"}
        return run_sample(f"{SAMPLES}/{sample}", self.directory, place, write_commands(commands))


@pytest.fixture
def change(launcher: Launcher, tmp_path: Path) -> Iterator[Change]:
    made = Change(launcher, tmp_path)
    for broker in made.cluster.brokers.values():
        made.configure(broker, "before")
    made.cluster.start()
    yield made
    made.cluster.close()


class Clients:
    """A writer and a reader. `before`: those that they take over from, as clients that are restarted."""

    def __init__(self, bootstrap: str, before: Clients | None = None) -> None:
        self.writer = Writer(bootstrap, TOPIC, PARTITIONS)
        self.reader = Reader(bootstrap, TOPIC, GROUP, kafka_restarts=True)
        if before is not None:
            self.writer.sent, self.writer.acked = before.writer.sent, before.writer.acked
        self.writer.start()
        self.reader.start()

    def stop(self) -> None:
        self.writer.stop()
        self.reader.stop()


@pytest.mark.wide
def test_no_acknowledged_record_is_lost_on_the_way_from_plaintext_to_sasl_ssl(change: Change) -> None:
    cluster = change.cluster
    cluster.create(TOPIC, "1:2:3,2:3:1,3:1:2", "--config", "min.insync.replicas=2")
    plain = Clients(cluster.bootstrap)
    plain.writer.wait_for_more(SOME)
    change.run("users.sh")
    change.roll("step-1", plain.writer)
    change.run("acls.sh")
    change.run("broker-acls.sh")
    change.clients_are("alice")
    plain.stop()
    moved = Clients(cluster.bootstrap, plain)
    change.roll("step-3", moved.writer)
    change.roll("step-4", moved.writer)
    moved.stop()

    change.clients_are("admin")
    for partition in range(PARTITIONS):
        read_before, read_after = offsets_of(plain.reader, partition), offsets_of(moved.reader, partition)
        assert read_before == list(range(len(read_before))), "no record was left out"
        assert 0 < read_after[0] <= len(read_before), "the group went on where it was"
        assert read_after == list(range(read_after[0], read_after[0] + len(read_after)))
        wait_for_equal_logs(list(cluster.brokers.values()), TOPIC, partition)
    moved.reader.seen |= plain.reader.seen
    verify(cluster.bootstrap, moved.writer, moved.reader)
    assert_locked(change, moved.writer.sent)


def offsets_of(reader: Reader, partition: int) -> list[int]:
    """What it has read of the partition, in order."""
    return sorted(offset for index, offset in reader.seen if index == partition)


def assert_locked(change: Change, records: list[int]) -> None:
    """What was open is closed: the ports, and all that alice has no ACL for."""
    change.clients_are("alice")
    cluster = change.cluster
    for broker in cluster.brokers.values():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", broker.port), DEADLINE_S)
        registered = cluster.json(f"/brokers/ids/{broker.node_id}")
        assert registered["endpoints"] == [f"SASL_SSL://{change.address(broker)}"]
        topics = AdminClient({**reach(broker.bootstrap), **QUIET}).list_topics(timeout=DEADLINE_S).topics
        assert set(topics) == {TOPIC}, "__consumer_offsets may not be seen"
    written = [f"{TOPIC}:{partition}:{count}" for partition, count in enumerate(records)]
    assert Tools("3.9.1", cluster.bootstrap).run("get-offsets", "--topic", TOPIC).lines == written
