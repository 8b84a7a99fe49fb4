"""Messages of a topic: read from a position, followed, produced.

What one page reads is bounded: SCANNED_MAX records, SCANNED_BYTES_MAX bytes, SCAN_S_MAX seconds, from PLACES_MAX
partitions. librdkafka buffers BUFFER_KIB at most, and one message more. Reading uses no group and commits nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from kpybroker.client.actions.partitions import Place, bounds, known, parse_partitions, time_lookup
from kpybroker.client.connect.admin import THREAD, Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, kafka_error, usage
from kpybroker.client.connect.settings import CLIENT_ID, Settings
from kpybroker.client.records.exact import Exact
from kpybroker.client.records.offsets import (
    TIMES,
    BadOffset,
    Bounds,
    Position,
    parse_position,
    parse_timestamp,
    resolve,
    within,
)
from kpybroker.client.records.record import Record
from kpybroker.console.queries.filters import Accepts
from kpybroker.console.queries.topics import find, places

PLACES_MAX: Final = 500
SHOWN_MAX: Final = 200
LATEST_MAX: Final = 1000
"""Records that are read, over all partitions, to find the latest of them."""
SCANNED_MAX: Final = 20_000
SCANNED_BYTES_MAX: Final = 64 << 20
SCAN_S_MAX: Final = 6.0
BUFFER_KIB: Final = 8 << 10
POLL_S: Final = 0.1
BATCH: Final = 100
END: Final = "_PARTITION_EOF"
PASSING: Final = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED"})
"""librdkafka looks for the coordinator of a group that reading does not use, so a user need not be allowed one."""
STARTS: Final = ("latest", "oldest", "offset", "time")

Cursor = dict[int, int]
"""By partition, the next offset to read."""


class Selection(NamedTuple):
    """Where to read, and how much. `start` is one of STARTS, and `at` its offset or time."""

    topic: str
    start: str = "latest"
    at: str = ""
    partitions: str = ""
    limit: int = 50
    cursor: Cursor | None = None


class Read(NamedTuple):
    """Records in the order in which they are shown, and how far reading came."""

    records: list[Record]
    scanned: int
    cursor: Cursor
    is_at_end: bool


def read(cluster: Cluster, wanted: Selection, accepts: Accepts, has_filter: bool) -> Read:
    """The records of one page. Raises CommandError.

    The latest are the end of every partition, read forward. Where that is more than a page may read, less is tried.
    """
    is_latest = wanted.start == "latest" and wanted.cursor is None
    deadline = time.monotonic() + SCAN_S_MAX
    count = SCANNED_MAX // 4 if has_filter else LATEST_MAX
    while True:
        span = spans(cluster, wanted, count)
        with Reading(cluster.settings, wanted.topic, span) as reading:
            found = reading.collect(accepts, None if is_latest else wanted.limit, deadline)
        if not is_latest or reading.is_done or count <= len(span) or time.monotonic() > deadline:
            break
        count = max(len(span), count // 8)
    found.sort(key=_order, reverse=is_latest)
    return Read(found[: wanted.limit], reading.scanned, reading.cursor, reading.is_done)


def _order(record: Record) -> tuple[int, int, int]:
    return record.timestamp_ms or 0, record.partition or 0, record.offset or 0


def spans(cluster: Cluster, wanted: Selection, count: int) -> dict[Place, Bounds]:
    """For each partition the first offset to read and the end, now. `count`: of `latest`, over all partitions."""
    topic = find(cluster, wanted.topic)
    numbers = parse_partitions([wanted.partitions]) if wanted.partitions.strip() else []
    missing = sorted(set(numbers) - {partition.number for partition in topic.partitions})
    if missing:
        raise usage(f"topic {topic.name} has no partition {missing[0]}", "its page shows the partitions")
    chosen = places(topic, numbers)
    if len(chosen) > PLACES_MAX:
        raise usage(f"{len(chosen)} partitions are too many for one page", f"name at most {PLACES_MAX}, as in 0-99")
    edges = known(bounds(cluster, chosen, committed_only=True))
    if wanted.cursor is not None:
        begins = {place: wanted.cursor.get(place[1], one.end) for place, one in edges.items()}
    else:
        each = count // max(1, len(edges))
        position = _position(wanted, max(1, each if count > LATEST_MAX else min(each, wanted.limit)))
        at_time = time_lookup(cluster, edges)
        begins = {place: resolve(position, one, partial(at_time, place)) for place, one in edges.items()}
    return {place: Bounds(within(begins[place], one), one.end) for place, one in edges.items()}


def _position(wanted: Selection, each: int) -> Position:
    now_ms = time.time_ns() // 1_000_000
    try:
        if wanted.start == "offset":
            return parse_position(wanted.at or "0", now_ms)
        if wanted.start == "time":
            return Position("timestamp", parse_timestamp(wanted.at.removeprefix("@"), now_ms))
    except BadOffset as error:
        raise usage(str(error), f"an offset is a number, +5 or -5; a time is {TIMES}") from None
    return Position("start") if wanted.start == "oldest" else Position("before_end", each)


class Reading:
    """A consumer of chosen partitions from chosen offsets; use it with `with`.

    With `is_endless` it goes on after the end. `cursor` is what is to be read next, `scanned` how many were read.
    """

    def __init__(self, settings: Settings, topic: str, span: dict[Place, Bounds], *, is_endless: bool = False) -> None:
        self._watch = ErrorWatch()
        self._exact = Exact(settings)
        self._has_responded = False
        self._open = {place: one for place, one in span.items() if is_endless or one.start < one.end}
        self._is_endless = is_endless
        self.cursor: Cursor = {place[1]: one.start for place, one in span.items()}
        self.scanned = 0
        self.scanned_bytes = 0
        self._consumer: Any = make(
            Consumer,
            settings,
            self._watch,
            group_id=CLIENT_ID,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            enable_partition_eof=True,
            queued_max_messages_kbytes=BUFFER_KIB,
            queued_min_messages=1000,
            fetch_max_bytes=BUFFER_KIB << 10,
        )
        self._consumer.assign([TopicPartition(*place, one.start) for place, one in self._open.items()])

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._exact.close()
        threading.Thread(target=self._consumer.close, name=THREAD, daemon=True).start()

    @property
    def is_done(self) -> bool:
        """Whether every partition was read to its end."""
        return not self._open

    def collect(self, accepts: Accepts, limit: int | None, deadline: float) -> list[Record]:
        """Accepted records until there are enough, or a bound of the page is reached. Raises CommandError."""
        found: list[Record] = []
        while not self.is_done and (limit is None or len(found) < limit) and time.monotonic() < deadline:
            if self.scanned >= SCANNED_MAX or self.scanned_bytes >= SCANNED_BYTES_MAX:
                break
            for record in self.next(BATCH if limit is None else min(BATCH, limit - len(found))):
                if time.monotonic() > deadline:
                    self._leave(record)
                    break
                if accepts(record):
                    found.append(record)
        if not self._has_responded and self._open:
            raise self._watch.unreachable()
        return found

    def next(self, count: int) -> Iterator[Record]:
        """The records that arrive within POLL_S. Raises CommandError."""
        messages = self._consumer.consume(num_messages=count, timeout=POLL_S)
        if not messages and not self._has_responded:
            self._watch.check()
        for message in messages:
            error = message.error()
            if error is None:
                self._has_responded = True
                if self._saw(message):
                    yield self._exact.record(message)
            elif error.name() == END:
                self._has_responded = True
                self._finish((message.topic(), message.partition()))
            elif error.name() not in PASSING:
                raise kafka_error(error)

    def _saw(self, message: Any) -> bool:
        """Count it, and say whether it is within its partition's span."""
        place, offset = (message.topic(), message.partition()), message.offset()
        span = self._open.get(place)
        if span is None or (offset >= span.end and not self._is_endless):
            self._finish(place)
            return False
        self.cursor[place[1]] = offset + 1
        self.scanned += 1
        self.scanned_bytes += len(message)
        if offset >= span.end - 1:
            self._finish(place)
        return True

    def _leave(self, record: Record) -> None:
        """It is for the next page."""
        partition, offset = record.partition or 0, record.offset or 0
        self.cursor[partition] = offset
        self._open.setdefault((record.topic or "", partition), Bounds(offset, offset + 1))

    def _finish(self, place: Place) -> None:
        if not self._is_endless and self._open.pop(place, None) is not None:
            self._consumer.incremental_unassign([TopicPartition(*place)])


def one(cluster: Cluster, topic: str, partition: int, offset: int) -> Record:
    """The record at an offset. Raises CommandError if there is none."""
    place = (topic, partition)
    span = spans(cluster, Selection(topic, "offset", str(offset), str(partition)), 1)
    if place in span:
        with Reading(cluster.settings, topic, {place: Bounds(offset, offset + 1)}) as reading:
            for record in reading.collect(lambda record: True, 1, time.monotonic() + SCAN_S_MAX):
                if record.offset == offset:
                    return record
    raise CommandError(f"{topic}-{partition} has no record at offset {offset}", "compaction or retention removed it")


def write_cursor(cursor: Cursor) -> str:
    """A cursor as a query's text."""
    return "_".join(f"{partition}.{offset}" for partition, offset in sorted(cursor.items()))


def read_cursor(text: str) -> Cursor | None:
    """The reverse; None for none. Raises CommandError for another text."""
    if not text:
        return None
    parts = [part.partition(".") for part in text.split("_")]
    if len(parts) > PLACES_MAX or not all(_is_number(left) and _is_number(right) for left, _, right in parts):
        raise usage("this page's position cannot be read", "begin again from the topic's messages")
    return {int(partition): int(offset) for partition, _, offset in parts}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
