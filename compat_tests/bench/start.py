"""`make bench-start`: how long from nothing to the first acknowledged message, and what an idle broker holds.

    python -m compat_tests.bench.start [--times 10] [--kafka-times 3]

One time is: exec of the broker on an empty directory; connect to its port in a tight loop until that succeeds; at once
`kcat -P` of one message to a topic that does not exist; its exit with code 0. For Kafka the exec of ZooKeeper is the
beginning, and Kafka's follows at once; it may open its port before it has heard of itself and then refuses to create a
topic, so that kcat is started again. kpybroker has one try. Nothing is pinned. CPU is what the brokers' processes used
until then, which a busy machine changes less. Memory is that of the whole process tree, a while after the first
message. Exits with 1 when the bar of kpybroker is missed.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from compat_tests.bench.measuring.brokers import (
    PYTHON_ENV,
    compile_sources,
    scratch_directory,
    stock_broker,
    stock_zookeeper,
)
from compat_tests.bench.measuring.costs import Memory, cpu_seconds, memory
from compat_tests.support.services import kpybroker_executable
from tests.support.network.ports import free_port

START_SECONDS_MAX = 0.6
IDLE_MB_MAX = 60.0
POLL_S = 0.001
SETTLE_S = 2.0
DEADLINE_S = 120.0


class Started:
    """What one start took, and what it left running."""

    def __init__(self, seconds: float, to_port: float, cpu: float, held: Memory) -> None:
        self.seconds = seconds
        self.to_port = to_port
        self.cpu = cpu
        self.held = held


def wait_for_port(port: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > end:
            raise SystemExit(f"bench-start: port {port} was not open within {DEADLINE_S} s")
        time.sleep(POLL_S)


def first_message(port: int, tries: int) -> None:
    command = ["kcat", "-P", "-b", f"127.0.0.1:{port}", "-t", "never-seen-before"]
    for _ in range(tries):
        done = subprocess.run(command, input=b"hello\n", capture_output=True)
        if done.returncode == 0:
            return
    raise SystemExit(f"bench-start: kcat exited with {done.returncode}: {done.stderr.decode(errors='replace')}")


def timed(launch: Callable[[], list[subprocess.Popen[bytes]]], port: int, tries: int) -> Started:
    begin = time.perf_counter()
    processes = launch()
    try:
        wait_for_port(port)
        to_port = time.perf_counter() - begin
        first_message(port, tries)
        seconds = time.perf_counter() - begin
        cpu = sum(cpu_seconds(process.pid) for process in processes)
        time.sleep(SETTLE_S)
        return Started(seconds, to_port, cpu, memory(*(process.pid for process in processes)))
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


def popen(command: list[str], directory: Path) -> subprocess.Popen[bytes]:
    """A process of a broker, which writes into a file of its directory."""
    with (directory / "out").open("ab") as out:
        return subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **PYTHON_ENV},
        )


def start_kpybroker(directory: Path) -> Started:
    directory.mkdir()
    port = free_port()
    command = [str(kpybroker_executable()), "dev", "--port", str(port), "--data-dir", str(directory / "data")]
    return timed(lambda: [popen(command, directory)], port, tries=1)


def start_kafka(directory: Path) -> Started:
    zookeeper = stock_zookeeper(directory / "zookeeper")
    broker = stock_broker("kafka", directory / "kafka", zookeeper.connect)
    commands = [zookeeper.service.command, broker.service.command]
    return timed(lambda: [popen(command, directory) for command in commands], broker.port, tries=5)


def describe(name: str, starts: list[Started]) -> str:
    seconds = sorted(start.seconds for start in starts)
    held = statistics.median(start.held.pss for start in starts)
    resident = statistics.median(start.held.rss for start in starts)
    return (
        f"{name:22} first message {statistics.median(seconds):6.2f} s (median of {len(seconds)}, {seconds[0]:.2f} to "
        f"{seconds[-1]:.2f}; port open {statistics.median(start.to_port for start in starts):.2f})   "
        f"CPU {statistics.median(start.cpu for start in starts):.2f} s   "
        f"idle {held:6.1f} MB (PSS), {resident:6.1f} MB (RSS)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10, help="starts of kpybroker [10]")
    parser.add_argument("--kafka-times", type=int, default=3, help="starts of Kafka with ZooKeeper, 0 for none [3]")
    parser.add_argument("--dir", help="where the brokers keep their files [the system's temporary directory]")
    options = parser.parse_args()
    compile_sources()
    with scratch_directory(options.dir) as scratch:
        kafka = [start_kafka(scratch / f"kafka-{n}") for n in range(options.kafka_times)]
        ours = [start_kpybroker(scratch / f"kpybroker-{n}") for n in range(options.times)]
    print(f"load average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if kafka:
        print(describe("Kafka 3.9.1, ZooKeeper", kafka))
    print(describe("kpybroker dev", ours))
    seconds = statistics.median(start.seconds for start in ours)
    held = statistics.median(start.held.rss for start in ours)
    met = seconds <= START_SECONDS_MAX and held <= IDLE_MB_MAX
    print(f"bar: {START_SECONDS_MAX} s and {IDLE_MB_MAX:.0f} MB (RSS): {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
