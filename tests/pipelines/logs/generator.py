"""Logs of a small shop with known contents: the same seed makes the same records.

Requests go through services that write in different formats, most of them through the first one only. In the middle
one service fails for some minutes, with traces; another one has always many errors, which is usual. Some lines are
late, a few of them too late for any window, and a few are broken.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

LATE_S, TOO_LATE_S = 45, 1_200
FAILING, NOISY = "payment", "scanner"
ROUTE = (("shop", "node-1", 1.0), ("payment", "node-2", 0.5), ("shipping", "node-3", 0.2))
"""Service, host, and the share of requests that come so far."""
NOISY_ERRORS_A_MINUTE, FAILING_ERRORS_A_MINUTE = 12, 30
BROKEN = (
    b"",
    b"   ",
    b"no log line",
    b"\xff\xfe",
    b"{",
    b'{"level": "INFO"}',
    b'{"time": "25:00", "message": "at no time"}',
    b'{"time": "0000-01-01T00:00:00Z", "message": "before all times", "service": "s"}',
    b"[2024-02-31 08:00:00,000] INFO of no day (kafka.Kafka)",
    b"[2024-03-05 08:00:00,000] INFO of no logger",
    b'{"time": "2999-01-01T00:00:00Z", "message": "of the future"}',
)
TRACE = 'Traceback (most recent call last):\n  File "/srv/pay.py", line 7, in charge\nTimeoutError: (no) response'


class Record(NamedTuple):
    """As it is in a topic."""

    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """`minutes` from `start`, with so many requests a minute."""

    seed: int
    start: datetime
    minutes: int = 30
    requests: int = 12
    broken: float = 0.01
    late: float = 0.05
    too_late: float = 0.01

    @property
    def trouble(self) -> tuple[datetime, datetime]:
        """When the failures begin and end."""
        begins = self.start + timedelta(minutes=self.minutes // 2)
        return begins, begins + timedelta(minutes=3)


class Written(NamedTuple):
    """A line before it is written."""

    time: datetime
    service: str
    host: str
    level: str
    message: str
    correlation: str | None = None
    details: str | None = None


def records(plan: Workload) -> Iterator[Record]:
    """The records in the order in which they are written: by time, but for those that are late."""
    dice = random.Random(plan.seed)
    due: list[tuple[datetime, int, Record]] = []
    for number, line in enumerate(sorted(_lines(plan, dice), key=lambda one: one.time)):
        roll = dice.random()
        delay_s = TOO_LATE_S if roll < plan.too_late else LATE_S if roll < plan.too_late + plan.late else 0
        due.append((line.time + timedelta(seconds=delay_s), number, _record(line)))
    for _, _, record in sorted(due, key=lambda one: one[:2]):
        yield record
        if dice.random() < plan.broken:
            yield record._replace(value=dice.choice(BROKEN))
        if dice.random() < plan.broken / 4:
            yield record._replace(value=b'{"time": "2024-03-05T08:00:00Z", "message": "of no service"}', headers=())


def _lines(plan: Workload, dice: random.Random) -> Iterator[Written]:
    begins, ends = plan.trouble
    for minute in range(plan.minutes):
        start = plan.start + timedelta(minutes=minute)

        def moment(start: datetime = start) -> datetime:
            return start + timedelta(milliseconds=dice.randrange(60_000))

        for _ in range(plan.requests):
            yield from _request(moment(), dice)
        for _ in range(NOISY_ERRORS_A_MINUTE):
            yield Written(moment(), NOISY, "node-1", "ERROR", f"blocked address {dice.randrange(256)}")
        for _ in range(dice.randrange(4)):
            yield Written(
                moment(), "broker", f"node-{dice.randrange(1, 4)}", "INFO", "Rolled new log segment [orders-0]"
            )
        yield Written(moment(), "sshd", "gate", "", "Accepted publickey for operator")
        if begins <= start < ends:
            for _ in range(FAILING_ERRORS_A_MINUTE):
                yield Written(moment(), FAILING, "node-2", "ERROR", "charge failed", _id(dice), TRACE)


def _request(time: datetime, dice: random.Random) -> Iterator[Written]:
    """A request's lines, as far as it comes."""
    correlation = _id(dice)
    luck = dice.random()
    for service, host, share in ROUTE:
        if luck >= share:
            return
        for step in ("received", "done"):
            time += timedelta(milliseconds=dice.randrange(1, 900))
            level = dice.choices(("INFO", "WARN", "ERROR"), (90, 8, 2))[0]
            yield Written(time, service, host, level, f"order {step}", correlation)


def _id(dice: random.Random) -> str:
    return f"{dice.getrandbits(64):016x}"


def _record(line: Written) -> Record:
    """The line in the format of its service; the shop's says itself from where it is."""
    comma = f"{line.time:%Y-%m-%d %H:%M:%S},{line.time.microsecond // 1000:03d}"
    iso = line.time.isoformat(timespec="milliseconds")
    more = f"\n{line.details}" if line.details else ""
    traced = f" trace_id={line.correlation}" if line.correlation else ""
    named = [("service", line.service.encode()), ("host", line.host.encode())]
    match line.service:
        case "shop":
            fields = {"timestamp": iso, "level": line.level.lower(), "msg": line.message, "trace_id": line.correlation}
            text, named = json.dumps({**fields, "service": line.service, "host": line.host}), []
        case "payment":
            text = f"{comma} - pay.charge - {line.level} - {line.message}{traced}{more}"
        case "shipping":
            severity = {"INFO": 6, "WARN": 4, "ERROR": 3}[line.level]
            text = f"<{8 + severity}>1 {iso} {line.host} {line.service} 17 - - {line.message}{traced}"
        case "sshd":
            text = f"{iso} {line.host} sshd[411]: {line.message}"
        case _:
            text = f"[{comma}] {line.level} {line.message} (kafka.log.Log){more}"
    return Record(f"{line.host}:{line.service}", text.encode(), tuple(named))
