"""Hundreds of brokers started and ended, in every way that a test process can end them; then nothing may be left.

`python -m compat_tests.testing.soak --brokers 500` (`make soak-testing`). Prints how long starts and stops took.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from kpybroker.testing import Broker, Cluster
from tests.support.programs.leftovers import Trace, broker_threads, descriptors, eventually

AT_ONCE = 5
ORPHANS_AT_ONCE = 5

ORPHANS = """
import sys
from kpybroker.testing import Broker
brokers = [Broker(topics=["t"]).start() for _ in range(int(sys.argv[1]))]
for broker in brokers:
    print(broker.status()["pid"], broker.port, broker.data_dir, flush=True)
print("ready", flush=True)
input()
"""


class Times(NamedTuple):
    """Seconds that single brokers took, one after the other."""

    start: list[float]
    stop: list[float]
    kill: list[float]


def one_after_the_other(count: int, times: Times) -> None:
    """Start and stop, timed."""
    for number in range(count):
        began = time.perf_counter()
        broker = Broker().start()
        times.start.append(time.perf_counter() - began)
        trace = Trace(broker)
        end, taken = (broker.kill, times.kill) if number % 2 else (broker.stop, times.stop)
        began = time.perf_counter()
        end()
        taken.append(time.perf_counter() - began)
        trace.assert_gone()


def at_once(count: int) -> None:
    """So many together, each from a thread of its own; some are used, some are killed from outside."""
    brokers = [Broker(topics=["t"]) for _ in range(count)]
    _in_threads([broker.start for broker in brokers])
    trace = Trace(*brokers)
    for number, broker in enumerate(brokers):
        broker.produce("t", ["a"])
        if number % 3 == 0:
            os.kill(broker.status()["pid"], signal.SIGKILL)
    _in_threads([broker.stop if number % 2 else broker.kill for number, broker in enumerate(brokers)])
    trace.assert_gone()


def in_threads_of_this_process(count: int) -> None:
    """Brokers that run in threads."""
    for _ in range(count):
        with Broker(in_thread=True, topics=["t"]) as broker:
            broker.produce("t", ["a"])
            trace = Trace(broker)
        trace.assert_gone()


def clusters(count: int) -> None:
    """Of three, of which one is killed."""
    for _ in range(count):
        with Cluster(3, topics=["t"]) as cluster:
            trace = Trace(cluster)
            cluster[1].kill()
        trace.assert_gone()


def orphans(count: int) -> None:
    """Of a test process that is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "ready\n"))
        process.kill()
    for line in lines:
        pid, _, directory = line.split()
        eventually(lambda pid=int(pid): not psutil.pid_exists(pid), f"process {pid} is left")  # type: ignore[misc]
        eventually(lambda one=Path(directory): not one.exists(), f"{directory} is left")  # type: ignore[misc]


def _in_threads(calls: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(brokers: int) -> Times:
    """Start and end so many, or a few more. Raises AssertionError at the first thing that is left."""
    times = Times([], [], [])
    in_threads_of_this_process(1)  # opens what is opened once
    open_before = set(descriptors().values())
    done = 0
    while done < brokers:
        one_after_the_other(AT_ONCE, times)
        at_once(AT_ONCE)
        in_threads_of_this_process(AT_ONCE)
        clusters(1)
        orphans(ORPHANS_AT_ONCE)
        done += 3 * AT_ONCE + 3 + ORPHANS_AT_ONCE
        print(f"{done} brokers, {len(descriptors())} descriptors", flush=True)
    _check(open_before)
    return times


def _check(open_before: set[str]) -> None:
    assert broker_threads() == []
    left = set(descriptors().values()) - open_before
    assert not left, f"descriptors are left: {left}"
    children = psutil.Process().children(recursive=True)
    assert not children, f"processes are left: {children}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=500)
    with tempfile.TemporaryDirectory(prefix="soak-testing-") as directory:
        tempfile.tempdir = os.environ["TMPDIR"] = directory
        times = run(parser.parse_args().brokers)
        left = os.listdir(directory)
        assert not left, f"files are left: {left}"
    for what, seconds in times._asdict().items():
        ordered = sorted(seconds)
        nine_in_ten = ordered[len(ordered) * 9 // 10]
        print(f"{what}: median {median(seconds) * 1000:.0f} ms, nine in ten within {nine_in_ten * 1000:.0f} ms")
    print("nothing is left")


if __name__ == "__main__":
    main()
