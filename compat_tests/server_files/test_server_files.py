"""Files that users have, started by `kpybroker server FILE`: groups and transactions work on the one broker there is.

Only kpybroker runs here: Kafka starts none of these files without ZooKeeper or a formatted KRaft directory.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.services import kpybroker_executable
from compat_tests.support.waiting import eventually

HERE = Path(__file__).parent
READY = "kpybroker ready at "

PRODUCTION = {
    "default.replication.factor": ("3", "1"),
    "min.insync.replicas": ("2", "1"),
    "offsets.topic.replication.factor": ("3", "1"),
    "transaction.state.log.replication.factor": ("3", "1"),
    "transaction.state.log.min.isr": ("2", "1"),
}
"""Key -> what the files set, and what one broker can meet."""


class Server(NamedTuple):
    """A `kpybroker server` that runs, and the file with its log."""

    bootstrap: str
    log_file: Path

    def warnings(self) -> list[str]:
        return [line for line in self.log_file.read_text().splitlines() if "] WARN " in line or "] ERROR " in line]


@contextmanager
def server(file: str, directory: Path, *options: str) -> Iterator[Server]:
    """The file is used as it is, but for the place of the data."""
    config = directory / file
    config.write_text((HERE / file).read_text().replace("DATA", str(directory / "data")))
    command = [str(kpybroker_executable()), "server", str(config), *options]
    log_file = directory / "log"
    with (
        log_file.open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(READY), log_file.read_text()
            yield Server(line.removeprefix(READY).split()[0], log_file)
        finally:
            process.terminate()
            assert process.wait(DEADLINE_S) == 0, log_file.read_text()


def consume_in_a_group(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    """What a new group reads, and commits; read_committed is librdkafka's default."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **QUIET},
    )
    consumer.subscribe([topic])
    try:
        values: list[bytes] = []
        while len(values) < count:
            batch = consumer.consume(count - len(values), DEADLINE_S)
            assert batch, f"{len(values)} of {count} records within {DEADLINE_S} s"
            for message in batch:
                assert message.error() is None, message.error()
                values.append(message.value())
        consumer.commit(asynchronous=False)
        return values
    finally:
        consumer.close()


def copy_in_a_transaction(bootstrap: str, source: str, target: str, group: str) -> None:
    """One record, and the offset behind it, in one transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "copier", "acks": "all", **QUIET})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET})
    try:
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce(target, b"copied")
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(source, 0, 7)], metadata, DEADLINE_S)
        producer.commit_transaction(DEADLINE_S)
        (committed,) = consumer.committed([TopicPartition(source, 0)], timeout=DEADLINE_S)
        assert committed.offset == 7
    finally:
        consumer.close()


def described(admin: AdminClient, resource: ConfigResource, names: Mapping[str, object]) -> dict[str, str]:
    found = admin.describe_configs([resource])[resource].result(timeout=DEADLINE_S)
    return {name: found[name].value for name in names}


@pytest.mark.parametrize(
    ("file", "options", "is_lowered"),
    [
        ("minimal.properties", [], False),
        ("production.properties", ["--override", "zookeeper.connect="], True),
        ("production-kraft.properties", ["--override", "controller.quorum.voters=1@kafka1.example:9093"], True),
    ],
    ids=["minimal", "production without its ZooKeeper", "production of KRaft, one node of it"],
)
def test_a_group_and_a_transaction_work_on_the_one_broker_of_a_file(
    tmp_path: Path, file: str, options: list[str], is_lowered: bool
) -> None:
    with server(file, tmp_path, *options, "--override", "group.initial.rebalance.delay.ms=0") as running:
        bootstrap = running.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        admin.create_topics([NewTopic("target")])["target"].result(timeout=DEADLINE_S)
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
        for n in range(5):
            producer.produce("source", str(n), on_delivery=lambda error, _: failures.append(error) if error else None)
        assert (producer.flush(DEADLINE_S), failures) == (0, [])
        assert sorted(consume_in_a_group(bootstrap, "source", "readers", 5)) == [b"0", b"1", b"2", b"3", b"4"]
        copy_in_a_transaction(bootstrap, "source", "target", "copiers")
        assert consume_in_a_group(bootstrap, "target", "checkers", 1) == [b"copied"]

        (node_id,) = admin.list_topics(timeout=DEADLINE_S).brokers
        shown = described(admin, ConfigResource(ConfigResource.Type.BROKER, str(node_id)), PRODUCTION)
        assert shown == {name: used for name, (_, used) in PRODUCTION.items()}
        state = ConfigResource(ConfigResource.Type.TOPIC, "__transaction_state")
        assert described(admin, state, {"min.insync.replicas": ()}) == {"min.insync.replicas": "1"}
        source = admin.list_topics("source", timeout=DEADLINE_S).topics["source"]
        assert all(part.replicas == part.isrs == [node_id] for part in source.partitions.values())

        about_brokers = [line for line in running.warnings() if re.search(r"replica|isr", line)]
        if not is_lowered:
            assert about_brokers == []
        else:
            (line,) = about_brokers
            for name, (given, used) in PRODUCTION.items():
                assert f"{name} from {given} to {used}" in line
        assert [line for line in running.warnings() if "Cannot create" in line] == []


def test_a_node_of_a_larger_kraft_cluster_is_refused_in_two_lines() -> None:
    command = [str(kpybroker_executable()), "server", str(HERE / "production-kraft.properties")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (2, "")
    cause, fix = done.stderr.splitlines()
    assert cause.startswith("kpybroker: controller.quorum.voters names 3 nodes, so this file is a part of a larger ")
    assert fix.startswith("fix: for a cluster set the same zookeeper.connect in each broker's file, or start all of ")


def test_one_file_of_a_larger_kraft_cluster_starts_so_many_brokers(tmp_path: Path) -> None:
    with server("production-kraft.properties", tmp_path, "--processes", "3") as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, **QUIET})
        eventually(lambda: len(admin.list_topics(timeout=DEADLINE_S).brokers) == 3, "three brokers are one cluster")
        admin.create_topics([NewTopic("target", 1, 3)])["target"].result(timeout=DEADLINE_S)
