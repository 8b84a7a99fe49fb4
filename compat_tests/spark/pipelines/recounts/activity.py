"""What the pipeline should say, counted again in plain Python: no Spark, and nothing of the pipeline's own code.

`Recount` takes the events batch by batch, as the runs of the pipeline got them, and keeps the rules of event time: the
watermark is the newest time of the batches before, less the allowed lateness; what has ended by then is closed.
Times are milliseconds since 1970.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple


class Event(NamedTuple):
    time_ms: int
    order: tuple[int, int]  # partition and offset
    page: str
    visitor: str


class Count(NamedTuple):
    window_start: int
    window_end: int
    page: str
    events: int


class Top(NamedTuple):
    window_start: int
    window_end: int
    rank: int
    page: str
    events: int


class Session(NamedTuple):
    visitor: str
    session_start: int
    session_end: int
    events: int
    pages: int
    first_page: str
    last_page: str


@dataclass(slots=True)
class Recount:
    window_ms: int
    lateness_ms: int
    gap_ms: int
    top: int
    watermark: int = -(10**18)
    late: int = 0
    counts: list[Count] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    _windows: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _open: dict[str, list[list[Event]]] = field(default_factory=lambda: defaultdict(list))

    def batch(self, events: Iterable[Event], heartbeat_ms: int | None = None) -> None:
        """Take a batch in; what its own times close comes out with it."""
        newest = [heartbeat_ms] if heartbeat_ms is not None else []
        for event in events:
            newest.append(event.time_ms)
            start = event.time_ms - event.time_ms % self.window_ms
            if start + self.window_ms > self.watermark:
                self._windows[start][event.page] += 1
            else:
                self.late += 1
            if event.time_ms + self.gap_ms > self.watermark:
                self._add_to_session(event)
        self.watermark = max([self.watermark, *(time - self.lateness_ms for time in newest)])
        self._close()

    def _add_to_session(self, event: Event) -> None:
        apart, joined = [], [event]
        for session in self._open[event.visitor]:
            first, last = min(one.time_ms for one in session), max(one.time_ms for one in session)
            # a silence of exactly the gap does not end a session yet
            if first - self.gap_ms <= event.time_ms <= last + self.gap_ms:
                joined += session
            else:
                apart.append(session)
        self._open[event.visitor] = [*apart, joined]

    def _close(self) -> None:
        for start in [start for start in self._windows if start + self.window_ms <= self.watermark]:
            for page, events in self._windows.pop(start).items():
                self.counts.append(Count(start, start + self.window_ms, page, events))
        for visitor, open_sessions in self._open.items():
            still = []
            for session in open_sessions:
                if max(one.time_ms for one in session) + self.gap_ms > self.watermark:
                    still.append(session)
                else:
                    self.sessions.append(_summary(visitor, session))
            self._open[visitor] = still

    def tops(self) -> list[Top]:
        out = []
        for start in sorted({count.window_start for count in self.counts}):
            of_window = [count for count in self.counts if count.window_start == start]
            of_window.sort(key=lambda count: (-count.events, count.page))
            out += [
                Top(start, count.window_end, rank, count.page, count.events)
                for rank, count in enumerate(of_window[: self.top], 1)
            ]
        return out


def _summary(visitor: str, session: list[Event]) -> Session:
    ordered = sorted(session)
    pages = {event.page for event in session}
    first, last = ordered[0], ordered[-1]
    return Session(visitor, first.time_ms, last.time_ms, len(session), len(pages), first.page, last.page)


def parse_activity(line: str) -> tuple[int, str, str]:
    event = json.loads(line)
    return _ms(datetime.fromisoformat(event["timestamp"])), event["page"], event["user"]


def parse_access(line: str) -> tuple[int, str, str]:
    host = line.split(" ", 1)[0]
    stamp = line[line.index("[") + 1 : line.index("]")]
    target = line[line.index('"') + 1 :].split(" ")[1]
    page = target.split("#")[0].split("?")[0]
    return _ms(datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z")), page, host


def parse_dpkg(line: str) -> tuple[int, str, str]:
    words = line.split(" ")
    when = datetime.fromisoformat(f"{words[0]}T{words[1]}").replace(tzinfo=UTC)
    match words[2]:
        case "startup":
            page = "dpkg"
        case "status":
            page = words[4].split(":")[0]
        case "conffile":
            page = " ".join(words[3:-1])
        case _:
            page = words[3].split(":")[0]
    return _ms(when), page, "dpkg"


def _ms(when: datetime) -> int:
    return round(when.timestamp() * 1000)
