"""`Scan`: reads what a `Timeline` wants, in ranges, and gives the records that a filter accepts.

A range is read whole before anything of it is given towards older records; towards newer ones, what was read of it
counts. Ranges grow while they are read quickly, so that a search of millions of records is one long read, and stay
within RANGE_BYTES, so that little is kept. One consumer of librdkafka reads all ranges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.records.record import Record
from kpybroker.console.queries.filters import Accepts
from kpybroker.console.queries.messages import BATCH, Reading
from kpybroker.console.queries.records.timeline import NEWER, Timeline

RANGE_S_MIN: Final = 0.3
RANGE_S_MAX: Final = 1.0
"""A range that took less is followed by one of twice the size, and one that took more by a smaller one."""
RANGE_BYTES: Final = 16 << 20
"""Of the next range, by the mean size of records so far."""
EACH_MAX: Final = 1 << 20

Stop = Callable[[], bool]


class Scan:
    """The records of `timeline`; use it with `with`. `scanned`, `scanned_bytes` and `seconds` say what it took."""

    def __init__(self, settings: Settings, topic: str, timeline: Timeline, accepts: Accepts, each: int) -> None:
        self.timeline = timeline
        self._topic = topic
        self._accepts = accepts
        self._each = max(1, each)
        self._reading = Reading(settings, topic, {})
        self._began = time.monotonic()

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *error: object) -> None:
        self._reading.__exit__(*error)

    @property
    def scanned(self) -> int:
        """Records that were read."""
        return self._reading.scanned

    @property
    def scanned_bytes(self) -> int:
        """Bytes of their keys and values."""
        return self._reading.scanned_bytes

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def records(self, stop: Stop) -> Iterator[Record]:
        """The accepted records in order, until everything was read or `stop` says so. Raises CommandError."""
        while True:
            while (record := self.timeline.pop()) is not None:
                yield record
            ranges = self.timeline.wanted(self._each)
            if not ranges or stop():
                return
            self._read(ranges, stop)

    def _read(self, ranges: dict[int, Bounds], stop: Stop) -> None:
        began, before, bytes_before = time.monotonic(), self.scanned, self.scanned_bytes
        found: dict[int, list[Record]] = {number: [] for number in ranges}
        edges: dict[int, int] = {}
        reading, is_newer = self._reading, self.timeline.way == NEWER
        reading.begin({(self._topic, number): one for number, one in ranges.items()})
        at = dict(reading.cursor)
        while not reading.is_done and not stop() and self.scanned_bytes - bytes_before < 2 * RANGE_BYTES:
            for record in reading.next(BATCH):
                number = record.partition or 0
                if is_newer or number not in edges:
                    edges[number] = record.timestamp_ms or 0
                if self._accepts(record):
                    found[number].append(record)
                at[number] = (record.offset or 0) + 1
                if stop():
                    break
        if not reading.is_done:
            reading.require_response()
        for number, one in ranges.items():
            is_whole = reading.is_read((self._topic, number))
            if is_newer or is_whole:
                scanned = one if is_whole else Bounds(one.start, at[number])
                self.timeline.take(number, found[number], scanned, edges.get(number))
        self._adapt(time.monotonic() - began, self.scanned - before, self.scanned_bytes - bytes_before, len(ranges))

    def _adapt(self, seconds: float, records: int, size: int, ranges: int) -> None:
        if seconds > RANGE_S_MAX:
            self._each //= 2
        elif seconds < RANGE_S_MIN:
            self._each *= 2
        if records:
            self._each = min(self._each, RANGE_BYTES * records // (max(1, size) * ranges))
        self._each = max(1, min(self._each, EACH_MAX))
