"""A real ZooKeeper for tests: `with zookeeper_server(directory) as address`.

It is started from the Kafka jars, which `make test-deps` puts into the repository's cache;
`KPYBROKER_KAFKA_LIBS` names another directory of jars. It listens on loopback at a free port, keeps its data
under the given directory, and is stopped when the block ends. Missing jars are an error, not a reason to
skip.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.network.ports import free_port
from tests.support.programs.signals import freeze, thaw

START_SECONDS_MAX = 180
TICK_MS = 100
"""Sessions may be as short as two ticks."""

_REPOSITORY = Path(__file__).resolve().parents[3]


def kafka_libs() -> Path:
    """The directory of Kafka's jars, ZooKeeper's among them."""
    libs = Path(os.environ.get("KPYBROKER_KAFKA_LIBS") or _REPOSITORY / ".cache/jvm/kafka-3.9.1")
    if not any(libs.glob("zookeeper-3*.jar")):
        raise RuntimeError(f"there is no zookeeper jar in {libs}: run `make test-deps`, or set KPYBROKER_KAFKA_LIBS")
    return libs


@dataclass(slots=True)
class ZooKeeperServer:
    """A running server. `address` is host:port, the connect string of a client."""

    process: subprocess.Popen[bytes]
    host: str
    port: int
    config: Path
    log: Path
    jvm_options: Sequence[str] = ()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def pause(self) -> None:
        """Let it respond to nothing, its connections staying up, until `resume`."""
        freeze(self.process.pid)

    def resume(self) -> None:
        thaw(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start it again on the same port and data, after `kill`."""
        self.process = _launch(self.config, self.log, self.jvm_options)
        _wait_until_serving(self)


@contextmanager
def zookeeper(directory: Path, *, jvm_options: Sequence[str] = (), **settings: str) -> Iterator[ZooKeeperServer]:
    """Run a server; `settings` are further lines of its configuration (dots as `__`)."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    lines = {
        "dataDir": str(directory / "data"),
        "clientPortAddress": "127.0.0.1",
        "clientPort": str(port),
        "tickTime": str(TICK_MS),
        "maxSessionTimeout": "60000",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
    } | {key.replace("__", "."): value for key, value in settings.items()}
    config = directory / "zookeeper.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    (directory / "log4j.properties").write_text(_LOG4J)
    log = directory / "zookeeper.log"
    server = ZooKeeperServer(_launch(config, log, jvm_options), "127.0.0.1", port, config, log, jvm_options)
    try:
        _wait_until_serving(server)
        yield server
    finally:
        server.process.kill()
        server.process.wait()


@contextmanager
def zookeeper_server(directory: Path, **settings: str) -> Iterator[str]:
    """Run a server and give its address, for those who need no more."""
    with zookeeper(directory, **settings) as server:
        yield server.address


_LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def _launch(config: Path, log: Path, jvm_options: Sequence[str]) -> subprocess.Popen[bytes]:
    java = shutil.which("java")
    if java is None:
        raise RuntimeError("ZooKeeper needs Java 17: there is no `java` on the PATH")
    with log.open("ab") as output:
        return subprocess.Popen(
            [
                java,
                "-Xmx128m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xshare:auto",
                f"-Dlog4j.configuration=file:{config.parent / 'log4j.properties'}",
                "-Dzookeeper.fsync.warningthresholdms=10000",
                *jvm_options,
                "-cp",
                f"{kafka_libs()}/*",
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                str(config),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _wait_until_serving(server: ZooKeeperServer) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not _is_ok(server):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"ZooKeeper did not start:\n{server.log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.02)


def _is_ok(server: ZooKeeperServer) -> bool:
    try:
        with socket.create_connection((server.host, server.port), timeout=1) as connection:
            connection.sendall(b"srvr")  # unlike ruok, its reply says so only once the data is loaded
            return connection.recv(100).startswith(b"Zookeeper version")
    except OSError:
        return False
