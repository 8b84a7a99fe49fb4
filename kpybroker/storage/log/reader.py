"""Reading a log: slices for fetches, lookups by time, aborted transactions.

Functions over a `LogState`. None changes the log, but a wrong index is rebuilt on the way. A response without data has
no slice. A slice starts at the batch that holds the offset, so its first records may be before the offset, and may end
within a batch unless that is the first one (KIP-74). Producers decide how long a lookup by time takes: therefore
`search_timestamp` goes step by step, and its caller decides where and when the steps run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from kpybroker.storage.disk.errors import CorruptIndexError, LogDirError
from kpybroker.storage.disk.slice import FileSlice
from kpybroker.storage.segments.file_records import BatchPosition, walk_headers
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.lookup import find_in_batch
from kpybroker.wire.records.slow_validation import is_slow_to_search
from kpybroker.wire.yield_budget import WorkBudget

if TYPE_CHECKING:
    from kpybroker.storage.log.log_state import LogState

logger = logging.getLogger("kafka.log.UnifiedLog")

P = ParamSpec("P")
R = TypeVar("R")

HEADER_COST = 2
"""Units of a `WorkBudget` that reading one batch header costs."""


class TimestampAndOffset(NamedTuple):
    """The result of a lookup by time; leader epoch -1 where the batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int


class FetchSlice(NamedTuple):
    """The result of a read. The caller releases the slice.

    `segment_base_offset` and `position` say where the start offset is (LogOffsetMetadata); -1 where no data was found.
    """

    slice: FileSlice | None
    start_offset: int
    segment_base_offset: int = -1
    position: int = -1
    first_entry_incomplete: bool = False
    is_on_older_segment: bool = False
    """A later segment has records below the bound; one read returns data of one segment."""

    @property
    def size(self) -> int:
        """Bytes of the slice; 0 without one."""
        return 0 if self.slice is None else self.slice.size


def _or_offline(function: Callable[Concatenate[LogState, P], R]) -> Callable[Concatenate[LogState, P], R]:
    """The function, whose OSError is the LogDirError of the log's directory."""

    @wraps(function)
    def reading(log: LogState, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(log, *args, **kwargs)
        except OSError as error:
            raise LogDirError(log.log_dir, error) from error

    return reading


def read(
    log: LogState,
    start_offset: int,
    max_bytes: int,
    *,
    max_offset: int | None = None,
    min_one_message: bool = True,
) -> FetchSlice:
    """Batches from `start_offset`, none that reaches `max_offset`, at most `max_bytes` (but see `min_one_message`).

    `max_offset` is the isolation bound, by default the log end offset. Raises OFFSET_OUT_OF_RANGE for an offset before
    the log start or after the log end, LogDirError.
    """
    if not log.log_start_offset <= start_offset <= log.log_end_offset:
        raise _out_of_range(log, start_offset)
    bound = log.log_end_offset if max_offset is None else max_offset
    if start_offset >= bound:
        return FetchSlice(None, start_offset)
    try:  # not by `_or_offline`: it is on the way of each fetch
        return _slice(log, start_offset, max_bytes, bound, min_one_message)
    except OSError as error:
        raise LogDirError(log.log_dir, error) from error


def _slice(log: LogState, start_offset: int, max_bytes: int, max_offset: int, min_one_message: bool) -> FetchSlice:
    segments = log.segments_map
    segment: LogSegment | None = segments.active
    if start_offset < segments.active.base_offset:
        segment = segments.floor(start_offset)
        if segment is None:
            raise _out_of_range(log, start_offset)
    while segment is not None:
        found = _first_batch(segment, start_offset, max_bytes)
        if found is not None:
            limit = _visible_bytes(log, segment, max_offset)
            wanted = max(max_bytes, found.size) if min_one_message else max_bytes
            size = min(limit - found.position, wanted)
            if size <= 0:
                return FetchSlice(None, start_offset, segment.base_offset, found.position)
            following = None if segment is segments.active else segments.higher(segment.base_offset)
            return FetchSlice(
                segment.records.slice(found.position, size),
                start_offset,
                segment.base_offset,
                found.position,
                wanted < found.size,
                following is not None and following.base_offset < max_offset,
            )
        # The segment has nothing from the offset on: the next one has what follows.
        if not (log.config.compact or segment.base_offset < (log.cleaner_offset or 0)):
            logger.error("%s has no records from offset %d on: its end is lost", segment.records.path, start_offset)
        segment = segments.higher(segment.base_offset)
    return FetchSlice(None, start_offset)


def _out_of_range(log: LogState, offset: int) -> KafkaError:
    if offset < log.log_start_offset:
        bound = f"starting from offset: {log.log_start_offset}"
    else:
        bound = f"upto {log.log_end_offset}"
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Received request for offset {offset} for partition {log.partition}, but we only have log segments {bound}.",
    )


def _first_batch(segment: LogSegment, start_offset: int, max_bytes: int) -> BatchPosition | None:
    """Where a read begins.

    The size of the batch is 0 where the limit covers all data that follows, whatever that size is: a reader at the tail
    mostly asks for what was appended last, and needs no look into the file.
    """
    position = segment.recent_position(start_offset)
    if position is not None and segment.records.size - position <= max_bytes:
        return BatchPosition(position, 0)
    return segment.translate_offset(start_offset)


def _visible_bytes(log: LogState, segment: LogSegment, max_offset: int) -> int:
    """How many bytes of a segment are below an offset."""
    if max_offset >= log.log_end_offset:
        return segment.records.size
    if max_offset <= segment.base_offset:
        return 0
    following = log.segments_map.higher(segment.base_offset)
    if following is not None and following.base_offset <= max_offset:
        return segment.records.size
    cached = log.bound_cache
    if cached[0] == max_offset and cached[1] == segment.base_offset:
        return cached[2]
    found = segment.translate_offset(max_offset)
    position = segment.records.size if found is None else found.position
    log.bound_cache = (max_offset, segment.base_offset, position)
    return position


@_or_offline
def aborted_transactions(log: LogState, fetch_offset: int, fetched: FetchSlice) -> list[AbortedTxn]:
    """The aborted transactions that a read_committed consumer must know to read a slice that starts at an offset.

    Raises LogDirError.
    """
    assert fetch_offset == fetched.start_offset
    if fetched.slice is None:
        return []
    segments = log.segments_map
    segment = segments.get(fetched.segment_base_offset)
    if segment is None or not _has_aborted(log, segment):
        return []
    try:
        upper_bound = segment.offset_index.fetch_upper_bound_offset(fetched.position + fetched.size)
    except CorruptIndexError:
        segment.rebuild_indexes()
        upper_bound = segment.offset_index.fetch_upper_bound_offset(fetched.position + fetched.size)
    if upper_bound is None:
        following = segments.higher(segment.base_offset)
        upper_bound = log.log_end_offset if following is None else following.base_offset
    return _collect_aborted(log, fetched.start_offset, upper_bound, segment)


def _has_aborted(log: LogState, segment: LogSegment | None) -> bool:
    """Whether this segment or a later one holds an abort marker. Most logs have none and need no lookup."""
    while segment is not None:
        if not segment.txn_index.is_empty:
            return True
        segment = log.segments_map.higher(segment.base_offset)
    return False


@_or_offline
def collect_aborted_transactions(log: LogState, start_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
    """Aborted transactions in a range of offsets. Raises LogDirError."""
    return _collect_aborted(log, start_offset, upper_bound_offset, log.segments_map.floor(start_offset))


def _collect_aborted(
    log: LogState, start_offset: int, upper_bound_offset: int, segment: LogSegment | None
) -> list[AbortedTxn]:
    """Aborted transactions that overlap [start, upper bound), by the markers in `segment` and later ones."""
    found: list[AbortedTxn] = []
    while segment is not None:
        if segment.txn_index.collect_aborted(start_offset, upper_bound_offset, found):
            break
        segment = log.segments_map.higher(segment.base_offset)
    return found


class BatchSearch(NamedTuple):
    """One batch that may hold the record. `run` reads and searches it: in a thread where it `is_long`."""

    records: FileSlice
    position: int  # in the slice
    header: BatchHeader
    timestamp: int
    start_offset: int

    @property
    def is_long(self) -> bool:
        """Whether the search may hold the loop for long."""
        return is_slow_to_search(self.header)

    def run(self) -> TimestampAndOffset | None:
        """Search the batch; None where it has no such record. Raises OSError, KafkaError."""
        batch = self.records.read(self.position, self.header.size)
        found = find_in_batch(batch, 0, self.header, self.timestamp, self.start_offset)
        return None if found is None else TimestampAndOffset(found[1], found[0], self.header.partition_leader_epoch)


Search = Generator[BatchSearch | None]
"""The batches to search, in order, until one has the record; None where other tasks may run.

A batch's timestamps are what its producer claims, so all batches of a segment may have to be searched. The log may
change during the search: what is searched is the segment as it was. Close it (`contextlib.closing`): it holds a file.
"""


@_or_offline
def search_timestamp(log: LogState, timestamp: int) -> Search:
    """Search for the first record at or after a time, from the log start offset on.

    Raises LogDirError; the steps of the search raise OSError.
    """
    for segment in log.segments_map.all():
        if segment.largest_timestamp >= timestamp:
            position = _position_for_time(segment, timestamp, log.log_start_offset)
            return _search(segment, position, timestamp, log.log_start_offset)
    return _search_nothing()


@_or_offline
def search_max_timestamp(log: LogState) -> Search:
    """Search for the first record with the log's largest timestamp (KIP-734), which is -1 if no record has one.

    Raises LogDirError; the steps of the search raise OSError.
    """
    segment = max(log.segments_map.all(), key=lambda known: known.max_timestamp)
    found = segment.translate_offset(segment.offset_of_max_timestamp)
    return _search(segment, 0 if found is None else found.position, segment.max_timestamp, 0)


def _search_nothing() -> Search:
    yield from ()


def _search(segment: LogSegment, start: int, timestamp: int, start_offset: int) -> Search:
    records = segment.records.slice(start, segment.size - start)
    try:
        walk = walk_headers(records.read, segment.records, 0, records.size)
        budget = WorkBudget()
        for position, header in walk:
            if segment.is_corrected or header.max_timestamp >= timestamp:
                yield BatchSearch(records, position, header, timestamp, start_offset)
            if budget.is_spent(HEADER_COST):
                yield None
    finally:
        records.release()


def _position_for_time(segment: LogSegment, timestamp: int, start_offset: int) -> int:
    """Where the search begins: at the last batch that the index knows to be early enough."""
    try:
        indexed = segment.time_index.lookup(timestamp)
    except CorruptIndexError as error:
        logger.warning("Rebuilding the indexes of %s: %s", segment, error)
        segment.rebuild_indexes()
        return 0
    if not segment.holds_max_timestamp(indexed):
        logger.warning("The time index of %s names %s, which no batch has", segment, tuple(indexed))
        return 0
    found = segment.translate_offset(max(indexed.offset, start_offset))
    return segment.size if found is None else found.position


@_or_offline
def legacy_offsets_before(log: LogState, timestamp: int, limit: int, now_ms: int) -> list[int]:
    """ListOffsets version 0: starts of segments changed at or before a time (-1 latest, -2 earliest), newest first."""
    segments = log.segments_map.all()
    known = [(max(s.base_offset, log.log_start_offset), s.last_modified_ms) for s in segments]
    if segments[-1].size > 0:
        known.append((log.log_end_offset, now_ms))
    if timestamp == -1:
        last = len(known) - 1
    elif timestamp == -2:
        last = 0
    else:
        last = max((slot for slot, (_, modified) in enumerate(known) if modified <= timestamp), default=-1)
    offsets = [offset for offset, _ in known[max(0, last + 1 - limit) : last + 1]]
    return sorted(offsets, reverse=True)
