"""Samples of this machine, from /proc, and of a broker, from its /metrics: the input of the demo."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

PROC = Path("/proc")
SCRAPE_SECONDS_MAX = 5.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_BROKER_NAMES = (
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
)
_LINE = re.compile(r"(?m)^(\w+) ([-+.\dEeNaInf]+)$")
Sample = tuple[str, str, float]
"""Name, kind and value."""


def of_machine() -> Iterator[Sample]:
    """This machine's processors, memory, network and disk; without /proc the disk only."""
    if (PROC / "stat").exists():
        words = (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, idle, waiting, *rest = map(int, words)
        yield "cpu.busy.seconds", "counter", (user + nice + system + sum(rest)) / TICKS_A_SECOND
        yield "cpu.idle.seconds", "counter", (idle + waiting) / TICKS_A_SECOND
        memory = dict(re.findall(r"(?m)^(\w+):\s+(\d+) kB$", (PROC / "meminfo").read_text()))
        yield "memory.available.bytes", "gauge", int(memory["MemAvailable"]) * 1024
        received = re.findall(r"(?m)^\s*\w+:\s*(\d+)", (PROC / "net" / "dev").read_text())
        yield "network.received.bytes", "counter", sum(map(int, received))
    yield "disk.free.bytes", "gauge", shutil.disk_usage("/").free


def of_broker(url: str) -> Iterator[Sample]:
    """A few counters and gauges of a page in Prometheus' format. Raises OSError."""
    with urlopen(url, timeout=SCRAPE_SECONDS_MAX) as page:
        found = dict(_LINE.findall(page.read().decode()))
    for name in _BROKER_NAMES:
        if name in found:
            yield name, "counter" if name.endswith("_total") else "gauge", float(found[name])


def lines(samples: Iterator[Sample], host: str = "") -> Iterator[str]:
    """The samples as the pipeline reads them, all with the time of now."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    for name, kind, value in samples:
        sample = {"time": now, "host": host or socket.gethostname(), "name": name, "kind": kind, "value": value}
        yield json.dumps(sample)
