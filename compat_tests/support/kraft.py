"""One broker of Kafka 4.3 without ZooKeeper, for clients that must work with it too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat_tests.deps import jars_dir
from compat_tests.support.machine.class_archives import keep_classes, server_options
from compat_tests.support.services import INTERNAL_PARTITIONS, LOG4J, Service, write_properties
from compat_tests.support.tools import argument_file, quick_options
from tests.support.network.ports import free_port
from tests.support.programs.forks import QUICK_JVMS

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
KRAFT = "kraft"
SMALL_JVM = ("-Xmx1G", "-Xms256m", "-XX:+UseSerialGC")
"""Options of a JVM that shares a machine with others."""


class KraftBroker:
    """Broker and controller in one process, on a directory of its own."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        node_id: int = 1,
        jvm_options: Sequence[str] = SMALL_JVM,
        controller: KraftBroker | None = None,
    ) -> None:
        """`overrides` are keys of its configuration. With `controller` it is a broker only, of that one's cluster."""
        directory.mkdir(parents=True)
        port, quorum = free_port(), free_port() if controller is None else controller.quorum
        leader_id = node_id if controller is None else controller.node_id
        own = f",CONTROLLER://127.0.0.1:{quorum}" if controller is None else ""
        self.node_id: int = node_id
        self.quorum: int = quorum
        self.port, self.data_dir = port, directory / "data"
        self.bootstrap = f"127.0.0.1:{port}"
        self._config = directory / "server.properties"
        write_properties(
            self._config,
            {
                "process.roles": "broker,controller" if controller is None else "broker",
                "node.id": str(node_id),
                "controller.quorum.voters": f"{leader_id}@127.0.0.1:{quorum}",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://127.0.0.1:{port}{own}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs": str(self.data_dir),
                "offsets.topic.replication.factor": "1",
                "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
                "share.coordinator.state.topic.replication.factor": "1",
                "share.coordinator.state.topic.min.isr": "1",
                "share.coordinator.state.topic.num.partitions": str(INTERNAL_PARTITIONS),
                "group.initial.rebalance.delay.ms": "0",
                **(overrides or {}),
            },
        )
        options = server_options("4.x", KRAFT, jvm_options) if QUICK_JVMS in os.environ else jvm_options
        self.service = Service("kafka-4.3.1", self._command(options, "kafka.Kafka", str(self._config)), directory)

    def _command(self, options: Sequence[str], main: str, *arguments: str) -> list[str]:
        return ["java", *options, f"-Dlog4j.configuration=file:{LOG4J}", f"@{argument_file('4.x')}", main, *arguments]

    def start(self) -> None:
        """Format the directory, if it is new, and run."""
        if not (self.data_dir / "meta.properties").exists():
            self.format()
        self.service.start(lambda output: "Kafka Server started" in output)
        keep_classes(self.service.command, self.service.pid, "4.x", KRAFT)

    def format(self) -> None:
        """Prepare the directory, which `start` does too if it is new."""
        arguments = ("format", "--cluster-id", CLUSTER_ID, "--config", str(self._config))
        command = self._command([*SMALL_JVM, *quick_options("4.x")], "kafka.tools.StorageTool", *arguments)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    launch = start

    def stop(self) -> None:
        """In order."""
        self.service.stop()

    def close(self) -> None:
        self.service.kill()


@contextmanager
def kafka_with_jolokia(
    directory: Path, overrides: Mapping[str, str] | None = None
) -> Iterator[tuple[KraftBroker, int]]:
    """Kafka 4.3.1 while it runs, and the port of its agent of Jolokia."""
    port = free_port()
    (jar,) = jars_dir("jolokia").glob("*.jar")
    agent = f"-javaagent:{jar}=port={port},host=127.0.0.1,discoveryEnabled=false"
    broker = KraftBroker(directory, overrides, jvm_options=[*SMALL_JVM, agent])
    try:
        broker.start()
        yield broker, port
    finally:
        broker.close()
