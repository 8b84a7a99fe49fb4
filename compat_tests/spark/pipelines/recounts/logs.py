"""Events, requests and bursts of `logs` in plain Python, which shares no code with the pipeline.

It knows the formats of the generator only, each by its first character, and keeps what is open from run to run, because
what is late depends on what was read before.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

WATERMARK_MS, GAP_MS, WINDOW_MS = 120_000, 60_000, 60_000
HISTORY, LEAST, FACTOR = 20, 10, 3
ERRORS = ("ERROR", "FATAL")
WORST = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
LAST_YEAR = 2100
Headers = Sequence[tuple[str, bytes]]


class Event(NamedTuple):
    """A line that was understood; `ms` since 1970."""

    ms: int
    service: str
    host: str
    level: str | None
    message: str
    correlation: str | None
    details: str | None


def understood(value: bytes, headers: Headers) -> Event | None:
    """The event of a record; None for what belongs to the dead letters."""
    named = {key: text.decode() for key, text in headers}
    try:
        event = _event(value.decode().rstrip(), named)
    except (ValueError, KeyError, IndexError):
        return None
    return event if event.service and event.ms < datetime(LAST_YEAR, 1, 1, tzinfo=UTC).timestamp() * 1000 else None


def _event(text: str, named: dict[str, str]) -> Event:
    first, _, rest = text.partition("\n")
    details = rest or None
    service, host = named.get("service", ""), named.get("host", "")
    match first[0]:
        case "{":
            fields = json.loads(first)
            time = _ms(fields.get("timestamp") or fields["time"])
            level = fields["level"].upper() if "level" in fields else None
            message = fields["msg"] if "msg" in fields else fields["message"]
            service, host = service or fields.get("service", ""), host or fields.get("host", "")
            return Event(time, service, host, level, message, fields.get("trace_id"), details)
        case "[":
            time = _ms(first[1:24])
            level, said = first[26:].split(" ", 1)
            message, _ = said.rsplit(" (", 1)
            return Event(time, service, host, level, message, _correlation(message), details)
        case "<":
            head, time_text, _host, _service, _, _, _, message = first.split(" ", 7)
            level = {6: "INFO", 4: "WARN", 3: "ERROR"}[int(head[1:-2]) % 8]
            return Event(_ms(time_text), service, host, level, message, _correlation(message), details)
    parts = first.split(" - ", 3)
    if len(parts) == 4:
        return Event(_ms(parts[0]), service, host, parts[2], parts[3], _correlation(parts[3]), details)
    time_text, _host, _program, message = first.split(" ", 3)
    return Event(_ms(time_text), service, host, None, message, None, details)


def _ms(text: str) -> int:
    time = datetime.fromisoformat(text)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _correlation(message: str) -> str | None:
    return message.partition("trace_id=")[2] or None


class Request(NamedTuple):
    """A row of `correlated`."""

    correlation: str
    first_ms: int
    last_ms: int
    services: tuple[str, ...]
    events: int
    errors: int
    worst: str | None


class Burst(NamedTuple):
    """A row of `bursts`."""

    service: str
    start_ms: int
    end_ms: int
    errors: int
    windows: int
    most: int
    usual: int


@dataclass(slots=True)
class Recount:
    """What was read in one run after the other, each of them one batch."""

    watermark_ms: int = 0
    late: int = 0
    requests: list[Request] = field(default_factory=list)
    counts: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _open: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))

    def run(self, events: Iterable[Event], ends: bool = False) -> None:
        """One more run; the last one `ends` with a heartbeat that closes everything."""
        newest = self.watermark_ms
        for event in events:
            start = event.ms // WINDOW_MS * WINDOW_MS
            if start + WINDOW_MS > self.watermark_ms:
                self.counts[event.service, start] += event.level in ERRORS
            else:
                self.late += 1
            if event.correlation is not None and event.ms + GAP_MS > self.watermark_ms:
                self._open[event.correlation].append(event)
            newest = max(newest, event.ms - WATERMARK_MS)
        self.watermark_ms = 2**62 if ends else newest
        for correlation, seen in list(self._open.items()):
            self._open[correlation] = []
            for session in sessions(seen):
                if session[-1].ms + GAP_MS <= self.watermark_ms:
                    self.requests.append(_request(correlation, session))
                else:
                    self._open[correlation] += session

    def bursts(self) -> list[Burst]:
        """Of all runs, when the last one has ended."""
        services = {service for service, _ in self.counts}
        return [burst for service in sorted(services) for burst in self._of(service)]

    def _of(self, service: str) -> list[Burst]:
        errors = {start: count for (one, start), count in self.counts.items() if one == service}
        found: list[Burst] = []
        for start in sorted(errors):
            before = sorted(errors[at] for at in range(start - HISTORY * WINDOW_MS, start, WINDOW_MS) if at in errors)
            usual = before[(len(before) - 1) // 2] if before else 0
            if errors[start] < LEAST or errors[start] <= FACTOR * usual:
                continue
            count, end = errors[start], start + WINDOW_MS
            if found and found[-1].end_ms == start:
                last = found.pop()
                most = max(last.most, count)
                found.append(last._replace(end_ms=end, errors=last.errors + count, windows=last.windows + 1, most=most))
            else:
                found.append(Burst(service, start, end, count, 1, count, usual))
        return found


def sessions(events: Sequence[Event]) -> list[list[Event]]:
    """Events without a silence of the gap; those of one moment stay in the order in which they were read."""
    found: list[list[Event]] = []
    for event in sorted(events, key=lambda one: one.ms):
        if found and event.ms <= found[-1][-1].ms + GAP_MS:
            found[-1].append(event)
        else:
            found.append([event])
    return found


def _request(correlation: str, events: list[Event]) -> Request:
    worst = max((WORST.index(event.level) for event in events if event.level is not None), default=None)
    return Request(
        correlation,
        events[0].ms,
        events[-1].ms,
        tuple(dict.fromkeys(event.service for event in events)),
        len(events),
        sum(event.level in ERRORS for event in events),
        None if worst is None else WORST[worst],
    )
