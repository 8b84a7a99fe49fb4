"""Samples with known contents: the same seed makes the same lines, with troubles that a pipeline must find or survive.

Each host has gauges that follow a daily curve with noise, and counters that grow and are now and then started again.
In the middle one series of one host jumps, and another falls silent. A few samples are late, and a few are broken.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

GAUGES = {"cpu.used.percent": 35.0, "memory.used.percent": 60.0, "disk.used.percent": 70.0}
COUNTERS = {"net.received.bytes": 120_000.0, "requests.total": 40.0}
DAY_S = 86_400
BROKEN = (
    "",
    "{",
    "[]",
    '{"host": "a"}',
    '{"time": "soon", "host": "a", "name": "x", "kind": "gauge", "value": 1}',
    '{"time": "+294247-01-10T04:00:54Z", "host": "a", "name": "x", "kind": "gauge", "value": 1}',
)
LATE_S = 30


@dataclass(frozen=True, slots=True)
class Workload:
    """`minutes` from `start`, a sample of each series every `step_s` seconds."""

    seed: int
    start: datetime
    minutes: int = 30
    hosts: int = 3
    step_s: int = 10
    broken: float = 0.01
    late: float = 0.02

    @property
    def trouble(self) -> tuple[datetime, datetime]:
        """When the jump and the silence begin, and when they end."""
        return self.start + timedelta(minutes=self.minutes // 2), self.start + timedelta(minutes=self.minutes // 2 + 2)


def lines(plan: Workload) -> Iterator[str]:
    """The lines in the order in which they are written: by time, but for those that are late."""
    dice = random.Random(plan.seed)
    totals: dict[tuple[str, str], float] = {}
    waiting: list[tuple[datetime, str]] = []
    for n in range(plan.minutes * 60 // plan.step_s):
        now = plan.start + timedelta(seconds=n * plan.step_s)
        for line in _at(plan, now, totals, dice):
            if dice.random() < plan.late:
                waiting.append((now + timedelta(seconds=LATE_S), line))
            else:
                yield line
            if dice.random() < plan.broken:
                yield dice.choice(BROKEN)
        yield from (line for due, line in waiting if due <= now)
        waiting = [(due, line) for due, line in waiting if due > now]
    yield from (line for _, line in waiting)


def _at(plan: Workload, now: datetime, totals: dict[tuple[str, str], float], dice: random.Random) -> Iterator[str]:
    begins, ends = plan.trouble
    trouble = begins <= now < ends
    curve = 1 + 0.1 * math.sin(2 * math.pi * (now.timestamp() % DAY_S) / DAY_S)
    for host in (f"host-{number}" for number in range(plan.hosts)):
        for name, usual in GAUGES.items():
            jump = 2.5 if trouble and (host, name) == ("host-0", "cpu.used.percent") else 1.0
            if not (trouble and (host, name) == ("host-1", "disk.used.percent")):
                yield _line(now, host, name, "gauge", usual * curve * jump * dice.gauss(1, 0.02))
        for name, rate in COUNTERS.items():
            started_again = dice.random() < 0.002
            before = 0.0 if started_again else totals.get((host, name), 0.0)
            totals[host, name] = before + rate * plan.step_s * curve * dice.gauss(1, 0.02)
            yield _line(now, host, name, "counter", totals[host, name])


def _line(now: datetime, host: str, name: str, kind: str, value: float) -> str:
    return json.dumps(
        {
            "time": now.isoformat(timespec="milliseconds"),
            "host": host,
            "name": name,
            "kind": kind,
            "value": round(value, 3),
        }
    )
