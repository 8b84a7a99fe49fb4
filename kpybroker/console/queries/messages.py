"""Messages of a topic: the consumer that reads them, where a reader wants to begin, and one message.

`records` has what a page shows: a timeline over partitions. What one page reads is bounded: SCANNED_MAX records,
SCANNED_BYTES_MAX bytes, SCAN_S_MAX seconds, from PLACES_MAX partitions. librdkafka buffers BUFFER_KIB at most, and one
message more. Reading uses no group and commits nothing.
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
from kpybroker.client.connect.errors import FIXES, CommandError, Failures, kafka_error, usage
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
from kpybroker.console.queries.topics import find, places

PLACES_MAX: Final = 1000
SHOWN_MAX: Final = 200
SCANNED_MAX: Final = 20_000
SCANNED_BYTES_MAX: Final = 64 << 20
SCAN_S_MAX: Final = 6.0
BUFFER_KIB: Final = 8 << 10
QUEUED_MIN: Final = 20_000
BACKOFF_MS: Final = 20
"""How long a full queue, or the end of a partition, holds up the next range that is read."""
POLL_S: Final = 0.1
BATCH: Final = 100
END: Final = "_PARTITION_EOF"
PASSING: Final = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED"})
"""librdkafka looks for the coordinator of a group that reading does not use, so a user need not be allowed one."""
STARTS: Final = ("latest", "oldest", "offset", "time")
WAYS: Final = ("newer", "older")

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
    """Where the page before this one ended, and `way` in which to go on from there: one of WAYS."""
    way: str = "newer"


def spans(cluster: Cluster, wanted: Selection) -> dict[Place, Bounds]:
    """For each partition the first offset to read and the end, now. Raises CommandError."""
    edges = edges_of(cluster, wanted)
    begins = {(wanted.topic, number): offset for number, offset in begin(cluster, wanted, edges).items()}
    return {place: Bounds(begins[place], one.end) for place, one in edges.items()}


def edges_of(cluster: Cluster, wanted: Selection, failures: Failures | None = None) -> dict[Place, Bounds]:
    """The first offset and the end of each partition that is to be read, for readers of committed transactions.

    A partition that cannot be read is one of the failures; without them, it raises CommandError.
    """
    topic = find(cluster, wanted.topic)
    numbers = parse_partitions([wanted.partitions]) if wanted.partitions.strip() else []
    missing = sorted(set(numbers) - {partition.number for partition in topic.partitions})
    if missing:
        raise usage(f"topic {topic.name} has no partition {missing[0]}", "its page shows the partitions")
    chosen = places(topic, numbers)
    if len(chosen) > PLACES_MAX:
        raise usage(f"{len(chosen)} partitions are too many for one page", f"name at most {PLACES_MAX}, as in 0-99")
    edges = bounds(cluster, chosen, committed_only=True)
    for partition in topic.partitions:
        if partition.leader is None and (not numbers or partition.number in numbers):
            edges[partition.place] = CommandError("it has no leader now", "kpybroker cluster health shows why")
    found = known(edges)
    for place, error in edges.items():
        if isinstance(error, CommandError):
            if failures is None or not found:
                raise error
            failures.add(f"partition {place[1]} is left out", error)
    return found


def begin(cluster: Cluster, wanted: Selection, edges: dict[Place, Bounds]) -> Cursor:
    """By partition where to begin, within its edges. A partition that a cursor does not have is new since it was made.

    Raises CommandError.
    """
    if wanted.cursor is not None:
        given = wanted.cursor
        return {place[1]: within(given.get(place[1], one.start), one) for place, one in edges.items()}
    position = _position(wanted)
    at_time = time_lookup(cluster, edges)
    return {place[1]: within(resolve(position, one, partial(at_time, place)), one) for place, one in edges.items()}


def _position(wanted: Selection) -> Position:
    now_ms = time.time_ns() // 1_000_000
    try:
        if wanted.start == "offset":
            return parse_position(wanted.at or "0", now_ms)
        if wanted.start == "time":
            return Position("timestamp", parse_timestamp(wanted.at.removeprefix("@"), now_ms))
    except BadOffset as error:
        raise usage(str(error), f"an offset is a number, +5 or -5; a time is {TIMES}") from None
    return Position("start" if wanted.start == "oldest" else "end")


class Reading:
    """A consumer of chosen partitions from chosen offsets; use it with `with`.

    With `is_endless` it goes on after the end. `cursor` is what is to be read next, `scanned` how many were read.
    """

    def __init__(self, settings: Settings, topic: str, span: dict[Place, Bounds], *, is_endless: bool = False) -> None:
        self._watch = ErrorWatch()
        self._exact = Exact(settings)
        self._has_responded = False
        self._open: dict[Place, Bounds] = {}
        self._is_endless = is_endless
        self.cursor: Cursor = {}
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
            queued_min_messages=QUEUED_MIN,
            fetch_queue_backoff_ms=BACKOFF_MS,
            **({} if is_endless else {"fetch_wait_max_ms": BACKOFF_MS}),
            fetch_max_bytes=BUFFER_KIB << 10,
        )
        self.begin(span)

    def begin(self, span: dict[Place, Bounds]) -> None:
        """Read these partitions and offsets from now on, and nothing else."""
        self._open = {place: one for place, one in span.items() if self._is_endless or one.start < one.end}
        self.cursor = {place[1]: one.start for place, one in span.items()}
        if self._open:
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

    def is_read(self, place: Place) -> bool:
        """Whether a partition was read to its end."""
        return place not in self._open

    def require_response(self) -> None:
        """Raises CommandError if the cluster has sent nothing yet."""
        if not self._has_responded:
            self._watch.check(has_timed_out=True)
            cause = "the cluster has not sent any message in time"
            raise CommandError(cause, FIXES["_TIMED_OUT"])

    def collect(self, limit: int, deadline: float) -> list[Record]:
        """As many records as there are until the deadline. Raises CommandError."""
        found: list[Record] = []
        while not self.is_done and len(found) < limit and time.monotonic() < deadline:
            found += self.next(limit - len(found))
        if not self.is_done:
            self.require_response()
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

    def _finish(self, place: Place) -> None:
        if not self._is_endless and self._open.pop(place, None) is not None:
            self._consumer.incremental_unassign([TopicPartition(*place)])


def one(cluster: Cluster, topic: str, partition: int, offset: int) -> Record:
    """The record at an offset. Raises CommandError if there is none."""
    place = (topic, partition)
    edges = edges_of(cluster, Selection(topic, partitions=str(partition)))
    if place in edges and edges[place].start <= offset < edges[place].end:
        with Reading(cluster.settings, topic, {place: Bounds(offset, offset + 1)}) as reading:
            for record in reading.collect(1, time.monotonic() + SCAN_S_MAX):
                if record.offset == offset:
                    return record
    raise CommandError(f"{topic}-{partition} has no record at offset {offset}", "compaction or retention removed it")
