"""The two brokers as they are measured: each as its own download starts it, on one core; and what each costs.

Kafka runs with the heap and the JVM options of its `kafka-server-start.sh` and `kafka-run-class.sh`, ZooKeeper with
those of `zookeeper-server-start.sh`; both brokers get the same server.properties.
"""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from compat_tests.deps import ROOT
from compat_tests.support.services import Broker, Service, ZooKeeper, jvm, kpybroker_executable

KIND_NAMES = {"kafka": "Kafka 3.9.1", "kpybroker": "kpybroker"}

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


@dataclass(frozen=True, slots=True)
class Cores:
    """The core of the broker, and the one of whatever speaks to it."""

    broker: int
    client: int

    @staticmethod
    def of_this_machine() -> Cores:
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) < 2:
            raise SystemExit("bench: broker and client need a core each, and this machine has one")
        return Cores(usable[0], usable[1])


def pinned(core: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", str(core), *command]


def stock_zookeeper(directory: Path, core: int | None = None) -> ZooKeeper:
    zookeeper = ZooKeeper(directory)
    config = str(directory / "zookeeper.properties")
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = jvm(main, config, options=[*ZOOKEEPER_HEAP, *JVM_PERFORMANCE])
    zookeeper.service = Service("zookeeper", command if core is None else pinned(core, command), directory)
    return zookeeper


def stock_broker(kind: str, directory: Path, zookeeper: str | None, core: int) -> Broker:
    """Not started."""
    broker = Broker(kind, directory, zookeeper, OVERRIDES)
    if kind == "kafka":
        command = jvm("kafka.Kafka", str(broker.config_file), options=[*BROKER_HEAP, *JVM_PERFORMANCE])
    else:
        command = [str(kpybroker_executable()), "server", str(broker.config_file)]
    broker.service = Service(kind, pinned(core, command), directory, PYTHON_ENV)
    return broker


@contextmanager
def both_brokers(directory: Path, cores: Cores) -> Iterator[dict[str, Broker]]:
    """Real Kafka on its ZooKeeper, and kpybroker on its embedded tree; ZooKeeper idles on the clients' core."""
    zookeeper = stock_zookeeper(directory / "zookeeper", cores.client)
    zookeeper.start()
    brokers: dict[str, Broker] = {}
    try:
        for kind, connect in (("kafka", zookeeper.connect), ("kpybroker", None)):
            brokers[kind] = stock_broker(kind, directory / kind, connect, cores.broker)
            brokers[kind].start()
        yield brokers
    finally:
        for broker in brokers.values():
            broker.kill()
        zookeeper.stop()


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


# --- what a broker costs --------------------------------------------------------------------------------------


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, and of its children that have ended."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass(frozen=True, slots=True)
class Memory:
    """Of a process tree, in MB (10^6 bytes): resident, and proportional set size, which counts shared pages once."""

    rss: float
    pss: float


def memory(*pids: int) -> Memory:
    rss = pss = 0
    for pid in pids:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            info = process.memory_full_info()
            rss += info.rss
            pss += info.pss
    return Memory(rss / 1e6, pss / 1e6)


def peak_rss_mb(pid: int) -> float:
    """The highest resident size of the process since it started."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(f"no VmHWM in the status of {pid}")


class Machine:
    """How much of the machine others used since this was made; above a tenth, figures say little."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._busy = _busy_seconds()

    def share_of_others(self, pids: Iterable[int]) -> float:
        """`pids` are ours that still run; what we started and waited for is known to the system."""
        ended = os.times()
        ours = sum(ended[:4]) + sum(map(cpu_seconds, pids))
        elapsed = (time.monotonic() - self._begin) * (os.cpu_count() or 1)
        return max(_busy_seconds() - self._busy - ours, 0.0) / elapsed


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)
