"""The variables of the most copied compose files, of Confluent's, Apache's and Bitnami's images.

A client outside the container bootstraps at the port of its own listener, and writes and reads through the address that
the broker advertises there. Nodes of a KRaft cluster of several are refused: each would be a cluster of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.network.ports import free_port
from tests.support.programs.samples import dev_broker, environment

SOON_S = 60.0
MAP = "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"
KRAFT = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    MAP: "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
}
ADVERTISED = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:{inside},PLAINTEXT_HOST://localhost:{outside}"}
SERVED: dict[str, Mapping[str, str]] = {
    "cp-kafka without listeners": {
        **ADVERTISED,
        MAP: "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    },
    "cp-kafka with ZooKeeper": {
        **ADVERTISED,
        "KAFKA_BROKER_ID": "5",
        "KAFKA_ZOOKEEPER_CONNECT": "{zookeeper}",
        MAP: "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_DEFAULT_REPLICATION_FACTOR": "1",
    },
    "cp-kafka with KRaft": {
        **KRAFT,
        **ADVERTISED,
        "KAFKA_LISTENERS": "PLAINTEXT://localhost:{inside},CONTROLLER://:{free},PLAINTEXT_HOST://0.0.0.0:{outside}",
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_JMX_PORT": "9101",
    },
    "apache/kafka": {
        **KRAFT,
        **ADVERTISED,
        "KAFKA_LISTENERS": "CONTROLLER://:{free},PLAINTEXT_HOST://:{outside},PLAINTEXT://:{inside}",
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
        "KAFKA_LOG_DIRS": "{directory}/kraft-combined-logs",
    },
    "bitnami": {
        "KAFKA_CFG_NODE_ID": "0",
        "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
        "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
        "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CFG_LISTENERS": "PLAINTEXT://:{inside},CONTROLLER://:{free},EXTERNAL://:{outside}",
        "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:{inside},EXTERNAL://localhost:{outside}",
        "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "ALLOW_PLAINTEXT_LISTENER": "yes",
    },
}
THREE = "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093"
REFUSED: dict[str, tuple[Mapping[str, str], str]] = {
    "cp-kafka, three nodes": ({**KRAFT, "KAFKA_CONTROLLER_QUORUM_VOTERS": THREE}, "names 3 controllers"),
    "bitnami, three nodes": (
        {**SERVED["bitnami"], "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": THREE},
        "controller.quorum.voters names 3 controllers",
    ),
    "apache/kafka, a broker": ({**KRAFT, "KAFKA_PROCESS_ROLES": "broker"}, "has its controller in another process"),
    "apache/kafka, a controller": (
        {**KRAFT, "KAFKA_PROCESS_ROLES": "controller"},
        "describes a KRaft controller without a broker",
    ),
    "a voter elsewhere": ({**KRAFT, "KAFKA_CONTROLLER_QUORUM_VOTERS": "9@controller:9093"}, "another node than 1"),
}


def exchange(bootstrap: str) -> bytes:
    """A record, written and read back."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("t", b"hello")
    assert producer.flush(SOON_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        message = consumer.poll(SOON_S)
        assert message is not None
        assert message.error() is None
        return bytes(message.value())
    finally:
        consumer.close()


@pytest.mark.parametrize("name", SERVED)
def test_a_client_outside_is_served(name: str, tmp_path: Path) -> None:
    with dev_broker(tmp_path / "other" / "data", "--zookeeper-port", "0") as other:
        numbers = {key: str(free_port()) for key in ("inside", "outside", "free")}
        places = {**numbers, "directory": str(tmp_path), "zookeeper": other.zookeeper}
        variables = {key: value.format(**places) for key, value in SERVED[name].items()}
        log = tmp_path / "log"
        env = environment(tmp_path / "data", **{"KAFKA_LOG_DIRS": str(tmp_path / "data"), **variables})
        command = [sys.executable, "-m", "kpybroker", "server"]
        with log.open("wb") as said:
            process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=said, text=True)
        with process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("kpybroker ready at "), log.read_text()
            assert exchange(f"localhost:{numbers['outside']}") == b"hello"
            process.terminate()
            assert process.wait(SOON_S) == 0
    if "CLUSTER_ID" in variables:
        assert "CLUSTER_ID has no effect" in log.read_text()


@pytest.mark.parametrize("name", REFUSED)
def test_a_node_of_a_kraft_cluster_is_refused_in_two_lines(name: str, tmp_path: Path) -> None:
    variables, named = REFUSED[name]
    env = environment(tmp_path / "data", KAFKA_LOG_DIRS=str(tmp_path / "data"), **variables)
    done = subprocess.run([sys.executable, "-m", "kpybroker", "server"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    cause, fix = done.stderr.splitlines()
    assert named in cause
    assert re.match("fix: (join brokers with zookeeper.connect|set process.roles=broker,controller)", fix)
    assert not (tmp_path / "data").exists()
