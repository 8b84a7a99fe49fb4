"""The brokers under test as processes: real ZooKeeper, real Kafka 3.9.1, kpybroker; all from one server.properties.

Every process has its own directory and its own free port, is stopped by its own pid, and dies with pytest.
"Ready" is the log line `[KafkaServer id=N] started`, which both brokers write.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from compat_tests.deps import ROOT
from compat_tests.support.machine.class_archives import keep_classes, server_options
from compat_tests.support.quick import admin_client
from compat_tests.support.tools import argument_file, quick_options
from compat_tests.support.waiting import eventually
from compat_tests.support.zookeeper.sessions import end_session
from tests.support.network.ports import free_port
from tests.support.programs.forks import QUICK_JVMS, Forked, can_fork, forks
from tests.support.programs.signals import freeze, thaw

START_DEADLINE_S = 180.0
STOP_DEADLINE_S = 120.0
RESPONSE_S = 2.0
DIES_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"] if sys.platform == "linux" else []
"""Before a command: a pytest that is killed outright must not leave brokers behind. A function that the child runs
would do, but then Python forks in place of vfork, and to copy all collected tests costs 25 ms.
"""

S = TypeVar("S", bound="Startable")

LOG4J = ROOT / "compat_tests" / "jvm" / "log4j-broker.properties"
KAFKA_VERSION = "COMPAT_KAFKA_VERSION"
"""The release in whose place brokers of ours are. Not set: they serve everything, with the newest features."""
AS_KAFKA_3_9 = {"kpybroker.kafka.version": "3.9"}
"""Keys of a broker of ours on its own tree that is compared with Kafka 3.9.1."""


class Startable(Protocol):
    def start(self) -> object: ...

    def close(self) -> object: ...


@contextmanager
def started(what: S) -> Iterator[S]:
    """It is closed also when it does not come up."""
    try:
        what.start()
        yield what
    finally:
        what.close()


class Service:
    """One background process with its output in a file."""

    def __init__(
        self, name: str, command: list[str], directory: Path, env: dict[str, str] | None = None, *, forks: bool = False
    ) -> None:
        """`forks`: the command is `kpybroker`, and in tests a fork of a process that has imported it will do."""
        self.name = name
        self.command = command
        self.directory = directory
        self.log_file = directory / f"{name}.log"
        self._env = {**os.environ, **(env or {})}
        self._forks = forks
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        """What the process has written since its last start."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def start(self, ready: Callable[[str], bool]) -> None:
        """Start and wait until `ready(output)`; a process that ends first fails with what it said."""
        assert not self.running, f"{self.name} runs already"
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self._process = self._begin(log)

        def is_ready() -> bool:
            if not self.running:
                raise RuntimeError(f"{self.name} ended at once: {self.command}\n{self.tail()}")
            return ready(self.output())

        try:
            eventually(is_ready, f"{self.name} ready", START_DEADLINE_S)
        except AssertionError:
            self.kill()
            raise AssertionError(f"{self.name} was not ready in {START_DEADLINE_S} s:\n{self.tail()}") from None

    def _begin(self, log: IO[bytes]) -> subprocess.Popen[bytes] | Forked:
        if self._forks and QUICK_JVMS in os.environ and can_fork(self._env):
            return forks().start(self.command[1:], self.directory, self._env, log.fileno())
        return subprocess.Popen(
            [*DIES_WITH_PARENT, *self.command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            env=self._env,
        )

    def stop(self) -> int:
        """SIGTERM, then wait for the end; returns the exit code. One that does not end is killed, and that fails."""
        if self._process is None:
            return 0
        if self.running:
            self._process.terminate()
        try:
            return self._process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} ignored SIGTERM for {STOP_DEADLINE_S} s:\n{self.tail()}") from None

    def terminate(self) -> None:
        """SIGTERM, and no waiting."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Let it stand still: its sockets stay open, and nothing gets a response."""
        freeze(self.pid)

    def resume(self) -> None:
        thaw(self.pid)

    def tail(self, lines_max: int = 60) -> str:
        return "\n".join(self.output().splitlines()[-lines_max:])


KAFKA, ZOOKEEPER = "kafka", "zookeeper"
"""Kinds of servers, which have an archive of classes each."""


def jvm_options() -> list[str]:
    return quick_options("3.9.1") if QUICK_JVMS in os.environ else []


def _server_options(kind: str, others: Sequence[str]) -> list[str]:
    return server_options("3.9.1", kind, others) if QUICK_JVMS in os.environ else list(others)


def jvm(main_class: str, *arguments: str, options: list[str]) -> list[str]:
    class_path = f"@{argument_file('3.9.1')}"
    return ["java", *options, f"-Dlog4j.configuration=file:{LOG4J}", class_path, main_class, *arguments]


def write_properties(path: Path, values: dict[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))


class ZooKeeper:
    """A standalone ZooKeeper 3.8 from Kafka's own jars; each broker of a run gets its own chroot in it.

    `settings` are further lines of its configuration, `options` further ones of its JVM.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> None:
        directory.mkdir(parents=True)
        self.port = free_port()
        config = directory / "zookeeper.properties"
        write_properties(
            config,
            {
                "dataDir": str(directory / "data"),
                "clientPort": str(self.port),
                "clientPortAddress": "127.0.0.1",
                "admin.enableServer": "false",
                "maxClientCnxns": "0",
                # Short ticks for storms, whose sessions are short; elsewhere sessions last as long as Kafka's do.
                "tickTime": "500",
                "maxSessionTimeout": "600000",
                # processes are killed here, not the machine: its disk may stand still for longer than a session lives
                "forceSync": "no",
                **(settings or {}),
            },
        )
        main, sizes = "org.apache.zookeeper.server.quorum.QuorumPeerMain", ["-Xmx256m", "-XX:+UseSerialGC"]
        command = jvm(main, str(config), options=[*sizes, *_server_options(ZOOKEEPER, options)])
        self.service = Service("zookeeper", command, directory)

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.service.start(lambda _: _serves(self.port))
        keep_classes(self.service.command, self.service.pid, "3.9.1", ZOOKEEPER)

    def stop(self) -> None:
        self.service.kill()


def _serves(port: int) -> bool:
    """Whether a ZooKeeper is past its start. One that only accepts may ignore a session's first request."""
    with socket.socket() as probe:
        probe.settimeout(RESPONSE_S)
        try:
            probe.connect(("127.0.0.1", port))
            probe.sendall(b"srvr")
            return b"Mode:" in probe.recv(4096)
        except OSError:
            return False


INTERNAL_PARTITIONS = 5


def stock_properties(port: int, data_dir: Path) -> dict[str, str]:
    """The server.properties of Kafka's own download, with this broker's port and directory.

    Retention is looked at less often: tests write records that are years old and read them minutes later. Internal
    topics have few partitions: fifty are two tenths of a second of a processor in each broker that has groups.
    """
    return {
        "broker.id": "0",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "num.network.threads": "3",
        "num.io.threads": "8",
        "socket.send.buffer.bytes": "102400",
        "socket.receive.buffer.bytes": "102400",
        "socket.request.max.bytes": "104857600",
        "log.dirs": str(data_dir),
        "num.partitions": "1",
        "num.recovery.threads.per.data.dir": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
        "log.retention.hours": "168",
        "log.retention.check.interval.ms": "86400000",
        "zookeeper.connection.timeout.ms": "18000",
        "group.initial.rebalance.delay.ms": "0",
    }


class Broker:
    """One broker process, real Kafka or kpybroker, that can be stopped, killed and started again on its files."""

    def __init__(
        self, kind: str, directory: Path, zookeeper: str | None, overrides: dict[str, str], options: Sequence[str] = ()
    ) -> None:
        """`options` are what KAFKA_OPTS would hold."""
        directory.mkdir(parents=True)
        self.kind = kind
        self.port = self.client_port = free_port()
        self.data_dir = directory / "data"
        self.properties = stock_properties(self.port, self.data_dir)
        if zookeeper is not None:
            self.properties["zookeeper.connect"] = zookeeper
        else:
            del self.properties["zookeeper.connection.timeout.ms"]
        if kind == "kpybroker" and KAFKA_VERSION in os.environ:
            self.properties["kpybroker.kafka.version"] = os.environ[KAFKA_VERSION]
        self.config_file = directory / "server.properties"
        self.configure(overrides)
        if kind == "kafka":
            sizes = ["-Xmx1G", "-Xms256m", "-XX:+UseSerialGC"]
            command = jvm("kafka.Kafka", str(self.config_file), options=[*sizes, *_server_options(KAFKA, options)])
        else:
            command = [str(kpybroker_executable()), "server", str(self.config_file)]
        env = {"KAFKA_OPTS": " ".join(options)} if options else None
        self.service = Service(kind, command, directory, env, forks=kind == "kpybroker")

    @property
    def bootstrap(self) -> str:
        """Where clients connect. Where that is not `port`, they may have to log in: `support.security.logins`."""
        return f"127.0.0.1:{self.client_port}"

    def configure(self, overrides: Mapping[str, str]) -> None:
        """For the next start."""
        self.properties |= overrides
        write_properties(self.config_file, self.properties)

    @property
    def node_id(self) -> int:
        return int(self.properties["broker.id"])

    def launch(self) -> None:
        """Start it, without a request: clients may have to log in, or may not do anything yet.

        The whole line is looked for: a Kafka whose port is taken ends "while waiting for the SocketServer Acceptors to
        be started".
        """
        line = f"[KafkaServer id={self.node_id}] started"
        self.service.start(lambda output: line in output)

    def start(self) -> None:
        """Start it, and wait until it knows a controller."""
        self.launch()
        admin = admin_client(self.bootstrap)
        eventually(lambda: _knows_controller(admin), "a controller")
        keep_classes(self.service.command, self.service.pid, "3.9.1", KAFKA)

    def stop(self) -> None:
        code = self.service.stop()
        assert code in (0, 143, -signal.SIGTERM), f"{self.kind} stopped with exit code {code}:\n{self.service.tail()}"

    def kill(self) -> None:
        """SIGKILL, and the end of its session on ZooKeeper: Kafka does not start before that."""
        self.service.kill()
        if "zookeeper.connect" in self.properties:
            end_session(self.properties["zookeeper.connect"], f"/brokers/ids/{self.node_id}")

    def restart(self) -> None:
        self.stop()
        self.start()


def _knows_controller(admin: AdminClient) -> bool:
    """librdkafka asks once: a client that comes before the controller is known waits for minutes."""
    try:
        controller: int = admin.list_topics(timeout=START_DEADLINE_S).controller_id
        return controller >= 0
    except KafkaException as error:
        if error.args[0].code() == KafkaError._PARTIAL:  # it has not received yet which brokers there are
            return False
        raise


def kpybroker_executable() -> Path:
    override = os.environ.get("KPYBROKER")
    return Path(override) if override else Path(sys.executable).with_name("kpybroker")
