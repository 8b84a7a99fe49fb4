"""The two brokers as they are measured: each as its own download starts it, on the cores that it is given.

Kafka runs with the heap and the JVM options of its `kafka-server-start.sh` and `kafka-run-class.sh`, ZooKeeper with
those of `zookeeper-server-start.sh`; both brokers get the same server.properties.
"""

from __future__ import annotations

import compileall
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from compat_tests.deps import ROOT
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.services import Broker, Service, ZooKeeper, jvm, kpybroker_executable
from kpybroker.wire.api import ApiKey
from kpybroker.wire.headers import RequestHeader, encode_request_header

KIND_NAMES = {"kafka": "Kafka 3.9.1", "kpybroker": "kpybroker"}
KAFKA_4 = "Kafka 4.3.1"

# kafka-run-class.sh: KAFKA_JVM_PERFORMANCE_OPTS
JVM_PERFORMANCE = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]
BROKER_HEAP = ["-Xmx1G", "-Xms1G"]  # kafka-server-start.sh
ZOOKEEPER_HEAP = ["-Xmx512M", "-Xms512M"]  # zookeeper-server-start.sh
CLIENT_HEAP = ["-Xmx512M"]  # kafka-producer-perf-test.sh, kafka-consumer-perf-test.sh

# An empty value is as good as none to Python, and a stray one would make every start compile the whole source.
PYTHON_ENV = {"PYTHONDONTWRITEBYTECODE": ""}

# Deleted logs must not fill the disk while the rounds go on.
OVERRIDES = {"log.segment.delete.delay.ms": "1000", "auto.create.topics.enable": "true"}

Kinds = Mapping[str, Broker]


class Measured(Protocol):
    """A broker of any kind."""

    @property
    def port(self) -> int: ...

    @property
    def bootstrap(self) -> str: ...

    @property
    def service(self) -> Service: ...


class Restarted(Measured, Protocol):
    """One that is stopped in order and launched again."""

    def stop(self) -> None: ...

    def launch(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Cores:
    """Where the brokers run, and where whatever speaks to them does."""

    broker: tuple[int, ...]
    client: tuple[int, ...]

    @staticmethod
    def apart() -> Cores:
        """A core for the broker, another one for the client."""
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) < 2:
            raise SystemExit("bench: broker and client need a core each, and this machine has one")
        return Cores((usable[0],), (usable[1],))

    @staticmethod
    def shared() -> Cores:
        """Nothing is pinned, as on a developer's machine."""
        usable = tuple(sorted(os.sched_getaffinity(0)))
        return Cores(usable, usable)


def pinned(cores: tuple[int, ...], command: list[str]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def stock_zookeeper(directory: Path, cores: tuple[int, ...] | None = None) -> ZooKeeper:
    zookeeper = ZooKeeper(directory, {"forceSync": "yes"})
    config = str(directory / "zookeeper.properties")
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = jvm(main, config, options=[*ZOOKEEPER_HEAP, *JVM_PERFORMANCE])
    zookeeper.service = Service("zookeeper", command if cores is None else pinned(cores, command), directory)
    return zookeeper


def stock_broker(
    kind: str,
    directory: Path,
    zookeeper: str | None,
    cores: tuple[int, ...] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Broker:
    """Not started."""
    broker = Broker(kind, directory, zookeeper, {**OVERRIDES, **(overrides or {})})
    if kind == "kafka":
        command = jvm("kafka.Kafka", str(broker.config_file), options=[*BROKER_HEAP, *JVM_PERFORMANCE])
    else:
        command = [str(kpybroker_executable()), "server", str(broker.config_file)]
    broker.service = Service(kind, command if cores is None else pinned(cores, command), directory, PYTHON_ENV)
    return broker


@contextmanager
def both_brokers(directory: Path, cores: Cores, overrides: Mapping[str, str] | None = None) -> Iterator[Kinds]:
    """Real Kafka on its ZooKeeper, and kpybroker on its embedded tree; ZooKeeper idles on the clients' core."""
    zookeeper = stock_zookeeper(directory / "zookeeper", cores.client)
    zookeeper.start()
    brokers: dict[str, Broker] = {}
    try:
        for kind, connect in (("kafka", zookeeper.connect), ("kpybroker", None)):
            brokers[kind] = stock_broker(kind, directory / kind, connect, cores.broker, overrides)
            brokers[kind].start()
        yield brokers
    finally:
        for broker in brokers.values():
            broker.service.kill()
        zookeeper.stop()


def kraft_broker(directory: Path, cores: tuple[int, ...], overrides: Mapping[str, str] | None = None) -> KraftBroker:
    """Kafka 4.3.1 as one node in KRaft mode, not started."""
    broker = KraftBroker(directory, overrides, jvm_options=[*BROKER_HEAP, *JVM_PERFORMANCE])
    broker.service.command[:0] = pinned(cores, [])
    return broker


@contextmanager
def both_brokers_of_kafka_4(
    directory: Path,
    cores: Cores,
    overrides: Mapping[str, str] | None = None,
    ours_only: Mapping[str, str] | None = None,
) -> Iterator[Mapping[str, Measured]]:
    """Real Kafka 4.3.1 as one node in KRaft mode, and kpybroker on its embedded tree, with keys that only it has."""
    kafka = kraft_broker(directory / "kafka", cores.broker, overrides)
    own = {**(overrides or {}), **(ours_only or {})}
    ours = stock_broker("kpybroker", directory / "kpybroker", None, cores.broker, own)
    try:
        kafka.start()
        ours.start()
        yield {"kafka": kafka, "kpybroker": ours}
    finally:
        kafka.close()
        ours.service.kill()


@contextmanager
def scratch_directory(parent: str | None) -> Iterator[Path]:
    """Removed at the end, a SIGTERM to the bench included; the processes in it end with their `with` blocks."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    directory = Path(tempfile.mkdtemp(prefix="kpybroker-bench-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def compile_sources() -> None:
    """As an installation does; a first start after an edit compiles once and is no figure of anything."""
    compileall.compile_dir(ROOT / "kpybroker", quiet=2)


@contextmanager
def idle_connections(bootstrap: str, count: int) -> Iterator[None]:
    """Connections that have asked for the API versions, as every client does first, and then say nothing."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, _, port = bootstrap.rpartition(":")
    frame = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "idle"))
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
            connection.sendall(len(frame).to_bytes(4, "big") + frame)
            assert connection.recv(1 << 16), "an idle connection was refused"
        yield
