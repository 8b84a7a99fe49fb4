"""Acquiring records for a member: those that are available again first, then new ones.

What was delivered often is handed out in small pieces, so that one record which breaks its consumers does not use up
the deliveries of its whole batch: from `throttle_limit` deliveries on in pieces of half the batch, of a quarter, and so
on; and a record on its last delivery alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kpybroker.core.share.archived import Reason
from kpybroker.core.share.runs import Run, cut, join, runs_from, track_offsets
from kpybroker.core.share.state import ShareState, archive
from kpybroker.core.share.values import Acquired, Fetched, FetchedBatch, RecordState

THROTTLE_DELIVERIES_MIN = 2
"""Fewer deliveries never make a record suspicious, however low the limit is."""


@dataclass(frozen=True, slots=True)
class Acquisition:
    """One call of `acquire`: for whom, from which record batches, and how rows are cut."""

    member_id: str
    batches: Sequence[FetchedBatch]
    batch_size: int
    strict: bool
    deadline: float


def acquire(state: ShareState, wish: Acquisition, fetched: Fetched, max_records: int) -> list[Acquired]:
    """Acquire up to `max_records` of what was fetched; see `SharePartition.acquire`."""
    if not fetched.batches or fetched.batches[-1].last_offset < state.start_offset:
        return []
    last, max_records = _room(state, fetched, max_records)
    if max_records <= 0:
        return []
    first = fetched.batches[0].base_offset
    _archive_compacted(state, fetched.fetch_offset, first)
    if first > last:
        return []  # at the limit, and what was available is no longer in the log
    floor = state.floor(first)
    is_in_flight = floor >= 0 and state.batches[floor].last >= first
    base = state.batches[floor].first if is_in_flight else first
    in_flight = state.between(min(first, base), last)
    if in_flight:
        rows = _acquire_again(state, wish, in_flight, (base, last), max_records)
    else:
        rows = _acquire_new(state, wish, base, last, max_records)
    return _without_aborted(state, rows, fetched.aborted)


def _room(state: ShareState, fetched: Fetched, max_records: int) -> tuple[int, int]:
    """The last offset to acquire and how many, at the limit of records in flight only of those in flight."""
    last = fetched.batches[-1].last_offset
    room = min(max_records, state.settings.partition_max_record_locks - state.in_flight)
    if room <= 0 and fetched.fetch_offset <= state.end_offset:
        return min(last, state.end_offset), min(max_records, state.end_offset - fetched.fetch_offset + 1)
    return last, room


def _archive_compacted(state: ShareState, fetch_offset: int, first: int) -> None:
    """The log has no batch any more between the offset that was asked for and the first that it gave."""
    if fetch_offset < first:
        archive(state, fetch_offset, first - 1, RecordState.AVAILABLE, Reason.NO_RECORD, counts=True)


def _acquire_again(
    state: ShareState, wish: Acquisition, in_flight: Sequence[Run], between: tuple[int, int], max_records: int
) -> list[Acquired]:
    """Go through batches in flight, and offsets between and after them that have no state yet."""
    rows: list[Acquired] = []
    gap_start, last = between
    requested = (wish.batches[0].base_offset, last)
    left = max_records
    for batch in in_flight:
        if left <= 0:
            break
        if state.is_gap_open:
            if gap_start < batch.first:
                found = _acquire_new(state, wish, gap_start, batch.first - 1, left)
                rows += found
                left -= _count(found)
            gap_start = batch.last + 1
            if left <= 0:
                break
        suspicious = _is_suspicious(state, batch, requested)
        if suspicious and rows:
            left = 0
            break
        found = _acquire_batch(state, wish, batch, requested, (left, suspicious))
        rows += found
        left = 0 if suspicious and found else left - _count(found)
    if left > 0 and in_flight[-1].last < last:
        rows += _acquire_new(state, wish, in_flight[-1].last + 1, last, left)
    if rows:
        state.close_gap_before(rows[-1].last + 1)
    return rows


def _acquire_batch(
    state: ShareState, wish: Acquisition, batch: Run, requested: tuple[int, int], limits: tuple[int, bool]
) -> list[Acquired]:
    """What of a batch is available: all of it if it is alike, requested as a whole, and not too much."""
    max_records, suspicious = limits
    if batch.parts is None:
        if not batch.is_available:
            return []
        is_whole = requested[0] <= batch.first and batch.last <= requested[1]
        is_too_much = wish.strict and batch.last - batch.first + 1 > max_records
        if is_whole and not suspicious and not is_too_much:
            batch.acquire(wish.member_id, wish.deadline)
            return [Acquired(batch.first, batch.last, batch.delivery_count)]
        track_offsets(batch)
    return _acquire_offsets(state, wish, batch, requested, max_records)


def _acquire_offsets(
    state: ShareState, wish: Acquisition, batch: Run, requested: tuple[int, int], max_records: int
) -> list[Acquired]:
    limit = state.settings.delivery_count_limit
    throttle_limit = throttle_limit_of(limit)
    rows: list[Acquired] = []
    acquired, throttled_max = 0, 0
    for available in runs_from(batch, max(requested[0], state.available_from)):
        if not available.is_available:
            continue
        first, last = max(available.first, requested[0]), min(available.last, requested[1])
        if first > last:
            break
        delivered, take = available.delivery_count, last - first + 1
        is_last_delivery = limit > THROTTLE_DELIVERIES_MIN and delivered == limit - 1
        if is_last_delivery:
            if acquired:
                break
            take = 1
        if delivered >= throttle_limit and not throttled_max:
            throttled_max = max(1, (batch.last - batch.first + 1) >> (delivered - throttle_limit + 1))
        if wish.strict:
            take = min(take, max_records - acquired)
        if acquired < throttled_max:
            take = min(take, throttled_max - acquired)
        for run in cut(batch, first, first + take - 1):
            run.acquire(wish.member_id, wish.deadline)
        acquired += take
        _add_row(rows, Acquired(first, first + take - 1, delivered + 1))
        if is_last_delivery or (wish.strict and acquired == max_records) or acquired == throttled_max:
            break
    if rows:
        join(batch, rows[0].first, rows[-1].last)
    return rows


def throttle_limit_of(delivery_count_limit: int) -> int:
    """From how many deliveries on records are handed out in small pieces."""
    return max(THROTTLE_DELIVERIES_MIN, (delivery_count_limit + 1) // 2)


def _is_suspicious(state: ShareState, batch: Run, requested: tuple[int, int]) -> bool:
    """Whether an available record of the batch, of those requested, was delivered often."""
    limit = throttle_limit_of(state.settings.delivery_count_limit)
    if batch.parts is None:
        return batch.is_available and batch.delivery_count >= limit
    return any(
        run.delivery_count >= limit and run.is_available and run.first <= requested[1] and run.last >= requested[0]
        for run in runs_from(batch, max(requested[0], state.available_from))
    )


def _acquire_new(state: ShareState, wish: Acquisition, first: int, last: int, max_records: int) -> list[Acquired]:
    """Offsets that have no state yet, rounded up to whole record batches; strictly, a batch stays available in part."""
    first = max(first, state.start_offset)
    if first > last:
        return []
    if max_records < last - first + 1:
        rounded = _end_of_batch(wish.batches, first + max_records - 1)
        last = min(rounded, last) if state.is_gap_open else rounded
    rows = _rows_of_new(wish, first, last)
    acquired_last = min(last, first + max_records - 1) if wish.strict else last
    for row in rows:
        state.put(_new_batch(wish, row, acquired_last))
    if acquired_last < last:
        state.offer(acquired_last + 1)
        rows = [Acquired(first, acquired_last, 1)]
    if state.batches[0].first == first:
        state.start_offset = first
    state.end_offset = max(state.end_offset, last)
    state.close_gap_before(acquired_last + 1)
    return rows


def _new_batch(wish: Acquisition, row: Acquired, acquired_last: int) -> Run:
    batch = Run(row.first, row.last, RecordState.ACQUIRED, 1, wish.member_id, wish.deadline)
    if acquired_last < row.last:
        acquired = Run(row.first, acquired_last, RecordState.ACQUIRED, 1, wish.member_id, wish.deadline)
        batch.parts = [acquired, Run(acquired_last + 1, row.last, RecordState.AVAILABLE, 0)]
    return batch


def _rows_of_new(wish: Acquisition, first: int, last: int) -> list[Acquired]:
    """New offsets as rows of `batch_size` or a little more, each from the start of a record batch on."""
    rows: list[Acquired] = []
    if not wish.strict and last - first + 1 > wish.batch_size:
        for base, _ in wish.batches:
            if base > last:
                break
            if base - first >= wish.batch_size:
                rows.append(Acquired(first, base - 1, 1))
                first = base
    rows.append(Acquired(first, last, 1))
    return rows


def _end_of_batch(batches: Sequence[FetchedBatch], offset: int) -> int:
    """The last offset of the record batch with this offset; the offset itself between batches."""
    for base, last in batches:
        if base <= offset <= last:
            return last
    return offset


def _without_aborted(state: ShareState, rows: list[Acquired], aborted: Sequence[FetchedBatch]) -> list[Acquired]:
    """Archive what was acquired of aborted transactions, and leave it out of the rows."""
    for base, last in aborted:
        archive(state, base, last, RecordState.ACQUIRED, Reason.NO_RECORD, counts=True)
        rows = [piece for row in rows for piece in _outside(row, base, last)]
    return rows


def _outside(row: Acquired, first: int, last: int) -> list[Acquired]:
    if row.last < first or row.first > last:
        return [row]
    around = (Acquired(row.first, first - 1, row.delivery_count), Acquired(last + 1, row.last, row.delivery_count))
    return [one for one in around if one.first <= one.last]


def _add_row(rows: list[Acquired], row: Acquired) -> None:
    if rows and rows[-1].last + 1 == row.first and rows[-1].delivery_count == row.delivery_count:
        row = Acquired(rows.pop().first, row.last, row.delivery_count)
    rows.append(row)


def _count(rows: Sequence[Acquired]) -> int:
    return sum(last - first + 1 for first, last, _ in rows)
