"""Compose files as people copy them, with kpybroker in the place of each image of Kafka.

`compose/` has them, written here from the variables that the images document. Each service runs as a process with the
variables of its container and of our image. There is no engine, so host names become loopback, and every port a free
one, the same wherever the file names it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.conftest import Launcher
from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.services import kpybroker_executable
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

COMPOSE = Path(__file__).parent / "compose"
OF_THE_IMAGE = {
    "KPYBROKER_DEFAULT_LISTENERS": "PLAINTEXT://:9092",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
}
_ADDRESS = re.compile(r"(?P<before>(?:^|//|@|,)\s*)(?P<host>[\w.-]*):(?P<port>\d+)")

SERVED = {
    "apache-kraft": 1,
    "apache-plain": 1,
    "bitnami-kraft": 1,
    "bitnami-zookeeper": 1,
    "bitnami-zookeeper-three": 3,
    "cp-kafka-kraft": 1,
    "cp-kafka-zookeeper": 1,
    "cp-kafka-zookeeper-three": 3,
}
"""File -> its brokers."""
OF_MAKE_TEST = {"apache-plain", "bitnami-kraft", "cp-kafka-zookeeper-three"}
"""One of each image; one of KRaft, and one of ZooKeeper with three brokers."""
VOTERS = "controller.quorum.voters names 3 nodes"
OTHER_CONTROLLER = "process.roles=broker describes a broker whose KRaft controller is another node"
REFUSED = {
    ("cp-kafka-kraft-three", "kafka1"): VOTERS,
    ("cp-kafka-kraft-three", "kafka2"): VOTERS,
    ("apache-kraft-isolated", "controller-1"): "process.roles=controller describes a KRaft controller without a broker",
    ("apache-kraft-isolated", "broker-1"): OTHER_CONTROLLER,
    ("bitnami-kraft-three", "kafka-0"): "controller.quorum.bootstrap.servers names 3 nodes",
    ("bitnami-kraft-three", "kafka-1"): OTHER_CONTROLLER,
}
"""File and service -> why."""


def services(file: str) -> dict[str, dict[str, Any]]:
    """Those of Kafka."""
    loaded = yaml.safe_load((COMPOSE / f"{file}.yaml").read_text())["services"]
    return {name: service for name, service in loaded.items() if "zookeeper" not in service["image"]}


def variables(service: Mapping[str, Any]) -> dict[str, str]:
    """Of a container, as the file sets them in one of the two notations."""
    given = service.get("environment", {})
    pairs = given.items() if isinstance(given, dict) else (line.split("=", 1) for line in given)
    return OF_THE_IMAGE | {name: str(value) for name, value in pairs}


class Machine:
    """Where the services of one file run: free ports in the place of theirs, and the address of their ZooKeeper."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        self.zookeeper = zookeeper
        self._ports: dict[tuple[str, int], int] = {}

    def port(self, service: str, number: int) -> int:
        """What a service's port is here."""
        return self._ports.setdefault((service, number), free_port())

    def environment(self, service: str, given: Mapping[str, str]) -> dict[str, str]:
        """The variables with addresses of this machine."""

        def address(match: re.Match[str]) -> str:
            if match["host"] == "zookeeper":
                return self.zookeeper
            host = "127.0.0.1" if match["host"] not in ("", "0.0.0.0") else match["host"]
            return f"{match['before']}{host}:{self.port(service, int(match['port']))}"

        return {name: _ADDRESS.sub(address, value) for name, value in given.items()} | {
            "KAFKA_LOG_DIRS": str(self.directory / service),
            "PATH": "/usr/bin:/bin",
        }


@contextmanager
def running(machine: Machine, name: str, service: Mapping[str, Any]) -> Iterator[str]:
    """A service that serves; the address that the file gives to clients outside, if it publishes one."""
    log_file = machine.directory / f"{name}.log"
    env = machine.environment(name, variables(service))
    command = [str(kpybroker_executable()), "server"]
    with log_file.open("w") as log, subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"kpybroker ready at "), log_file.read_text()
            (published,) = service["ports"]
            yield f"127.0.0.1:{machine.port(name, int(published.split(':')[0]))}"
        finally:
            process.terminate()
            assert process.wait(DEADLINE_S) == 0, log_file.read_text()


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=[] if file in OF_MAKE_TEST else pytest.mark.wide) for file in SERVED]
)
def test_a_client_outside_the_containers_is_served(file: str, launcher: Launcher, tmp_path: Path) -> None:
    machine = Machine(tmp_path, launcher.zookeeper(f"compose-{file}") if "zookeeper" in file else "")
    with ExitStack() as stack:
        addresses = [stack.enter_context(running(machine, *service)) for service in services(file).items()]
        admin = AdminClient({"bootstrap.servers": addresses[0], **QUIET})

        def listed() -> bool:
            brokers = admin.list_topics(timeout=DEADLINE_S).brokers.values()
            return sorted(f"127.0.0.1:{broker.port}" for broker in brokers) == sorted(addresses)

        eventually(listed, "every broker has heard of the others")
        assert len(addresses) == SERVED[file]
        admin.create_topics([NewTopic("t", 3, SERVED[file])])["t"].result(timeout=DEADLINE_S)
        producer = Producer({"bootstrap.servers": addresses[-1], "acks": "all", **QUIET})
        for partition in range(3):
            producer.produce("t", f"record {partition}", partition=partition)
        assert producer.flush(DEADLINE_S) == 0
        consumer = Consumer(
            {"bootstrap.servers": addresses[0], "group.id": "g", "auto.offset.reset": "earliest", **QUIET}
        )
        consumer.subscribe(["t"])
        messages = [consumer.poll(DEADLINE_S) for _ in range(3)]
        consumer.close()
    values = sorted(message.value() for message in messages if message is not None)
    assert values == [b"record 0", b"record 1", b"record 2"]


@pytest.mark.parametrize(("file", "service"), REFUSED)
def test_a_part_of_a_kraft_cluster_is_refused_in_the_log(file: str, service: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, "")
    env = machine.environment(service, variables(services(file)[service]))
    command = [str(kpybroker_executable()), "server"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (2, "")
    cause, fix = done.stderr.splitlines()
    assert cause.startswith(f"kpybroker: {REFUSED[file, service]}")
    assert fix.startswith("fix: ")
    assert not (tmp_path / service).exists()


def test_every_file_is_in_a_table() -> None:
    files = {path.stem for path in COMPOSE.glob("*.yaml")}
    assert files == {*SERVED, *(file for file, _ in REFUSED)}
    assert {one for file in files - {*SERVED} for one in services(file)} == {service for _, service in REFUSED}


def test_the_id_of_the_cluster_is_that_of_the_file(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "")
    ((name, service),) = services("cp-kafka-kraft").items()
    with running(machine, name, service) as address:
        admin = AdminClient({"bootstrap.servers": address, **QUIET})
        assert admin.describe_cluster().result(DEADLINE_S).cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
