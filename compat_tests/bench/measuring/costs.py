"""What a run costs: CPU, memory and the loop's stalls of a broker, and the share of the machine that others took."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

SHARE_OF_OTHERS_MAX = 0.15
KTHREADD = 2
"""Linux's parent of the kernel's threads."""
REST_SAMPLE_S, REST_SHARE_MAX, REST_S_MAX = 0.5, 0.03, 5.0
STALL_LINE = re.compile(r"Loop stall: \d+ time slices, p99\.9 ([\d.]+) ms, longest ([\d.]+) ms")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, and of its children that have ended."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def come_to_rest(pids: Iterable[int]) -> None:
    """Until these processes use next to nothing of a core, or `REST_S_MAX` is over.

    After a round a broker deletes its topic and a JVM compiles and collects: on a shared core that was up to a tenth of
    the other broker's round.
    """
    processes = list(pids)
    end = time.monotonic() + REST_S_MAX
    before = sum(map(cpu_seconds, processes))
    while time.monotonic() < end:
        time.sleep(REST_SAMPLE_S)
        now = sum(map(cpu_seconds, processes))
        if now - before <= REST_SHARE_MAX * REST_SAMPLE_S:
            return
        before = now


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
    """The highest resident sizes, since they started, of the process and of its children that run now."""
    root = psutil.Process(pid)
    return sum(_highest(process.pid) for process in (root, *root.children(recursive=True))) / 1e6


def _highest(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:  # a child that has just ended
        return 0
    kilobytes = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")), "0")
    return int(kilobytes) * 1024


@dataclass(frozen=True, slots=True)
class Stall:
    """How long kpybroker's loop was held, in ms: what SIGUSR1 makes it log."""

    p99_9_ms: float
    longest_ms: float


def loop_stall(broker: Broker) -> Stall:
    """Since the last time that this was asked."""
    before = len(STALL_LINE.findall(broker.service.output()))
    os.kill(broker.service.pid, signal.SIGUSR1)

    def lines() -> list[tuple[str, str]]:
        return STALL_LINE.findall(broker.service.output())[before:]

    eventually(lines, "the line about the loop")
    p99_9, longest = lines()[0]
    return Stall(float(p99_9), float(longest))


class Machine:
    """How much of the machine others used since this was made; above SHARE_OF_OTHERS_MAX, figures say little."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._busy = _busy_seconds()
        self._kernel = _kernel_seconds()
        self._stolen = _stolen_seconds()

    def share_of_others(self, pids: Iterable[int]) -> float:
        """`pids` are ours that still run; what we started and waited for is known to the system."""
        ended = os.times()
        ours = sum(ended[:4]) + sum(map(cpu_seconds, pids))
        elapsed = (time.monotonic() - self._begin) * (os.cpu_count() or 1)
        kernel = _kernel_seconds() - self._kernel
        return max(_busy_seconds() - self._busy - kernel - ours, 0.0) / elapsed

    def share_stolen(self) -> float:
        """Of the time that processes here wanted, how much the host gave to other guests; 0 where it does not say."""
        stolen = _stolen_seconds() - self._stolen
        return stolen / max(_busy_seconds() - self._busy + stolen, 1e-9)


def _kernel_seconds() -> float:
    """Of the kernel's own threads: what they write, or take from the page cache, is what the brokers wrote."""
    seconds = 0.0
    for process in psutil.process_iter(["ppid", "cpu_times"]):
        if process.info["ppid"] == KTHREADD:
            times = process.info["cpu_times"]
            seconds += times.user + times.system
    return seconds


def _stolen_seconds() -> float:
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)
