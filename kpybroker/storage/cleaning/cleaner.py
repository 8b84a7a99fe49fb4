"""Cleaning one log's files: the reading and writing half of Kafka's Cleaner. Runs in a process of its own.

`clean` reads segments and writes cleaned ones next to them (`.cleaned`), complete and synced, and reports each step; it
changes no existing file. The broker then puts each cleaned segment in its place (`cleaned.swap_in`), or removes it. So
a cleaning may be stopped at any point. Files that it reads may vanish during it: then it fails.

Steps: map the last offset of each key in the dirty part, as far as the map's memory allows; group segments; copy each
group into one segment through the filter. Every batch's CRC is checked (Kafka does not): damaged batches are not
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kpybroker.core.log.cleaner_map import OffsetMap
from kpybroker.core.log.cleaner_plan import SegmentSizes, group_segments
from kpybroker.storage.cleaning.filter import Filter, KeptBatch, LastRecord, iter_places, section_of
from kpybroker.storage.cleaning.transactions import CleanedTransactions
from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import Buffer, Files, read_exactly
from kpybroker.storage.segments.overflow import check_no_overflow
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentSettings
from kpybroker.storage.segments.swap import create_cleaned_segment
from kpybroker.storage.segments.txn_index import AbortedTxn, TransactionIndex
from kpybroker.wire.records.batch import LOG_OVERHEAD, BatchHeader, corrupt, iter_batches, verify_crc
from kpybroker.wire.records.record import iter_records

Tick = Callable[[int], None]
"""Called with the bytes that were read or written just now; it may sleep, and raise to stop the cleaning."""

WRITE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """Everything needed to clean a log, as plain values; made on the loop (`cleaned.cleaning_job`)."""

    directory: str
    base_offsets: list[int]
    """Of all segments, also those that are not cleaned: they may record aborts of transactions below them."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    map_load_factor: float
    io_bytes: int
    producers: list[tuple[int, int, int]]
    """Live producers: id, last data offset (-1 for a marker), epoch."""


class Mapped(NamedTuple):
    """The map is built: offsets below `end_offset` are going to be cleaned."""

    end_offset: int
    bytes_read: int
    utilization: float


class CleanedSegment(NamedTuple):
    """The segment `base_offset` exists as `.cleaned`, to replace the segments with these base offsets."""

    base_offset: int
    replaces: list[int]


class Cleaned(NamedTuple):
    """The cleaning is complete: the first offset that is not cleaned, and the work it took."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    messages_read: int
    messages_written: int
    invalid_messages: int


class Source(NamedTuple):
    """A segment that is read. `next_offset` is where the following one begins."""

    base_offset: int
    next_offset: int
    path: str
    modified_ms: int
    sizes: SegmentSizes


def clean(files: Files, job: CleaningJob, tick: Tick) -> Iterator[Mapped | CleanedSegment | Cleaned]:
    """Clean step by step.

    Raises OSError, KafkaError (damaged data), SegmentOverflowError, ValueError (map too small).
    """
    sources = _sources(files, job)
    offsets = OffsetMap(job.map_bytes, job.map_load_factor)
    mapped_bytes = build_map(files, job, sources, offsets, tick)
    end_offset = offsets.latest_offset + 1
    yield Mapped(end_offset, mapped_bytes, offsets.utilization)
    below = [source for source in sources if source.base_offset < end_offset]
    by_base = {source.base_offset: source for source in below}
    rules = Filter(
        offsets,
        CleanedTransactions(_aborted(files, job, 0, below[-1].next_offset if below else 0)),
        {producer_id: LastRecord(offset, epoch) for producer_id, offset, epoch in job.producers},
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
        first_uncleanable_offset=job.first_uncleanable_offset,
    )
    legacy_horizon_ms = _legacy_delete_horizon(job, sources)
    bytes_read = bytes_written = 0
    for group in group_segments(
        [source.sizes for source in below], job.segment_bytes, job.segment_index_bytes, job.first_uncleanable_offset
    ):
        members = [by_base[sizes.base_offset] for sizes in group]
        bytes_written += _clean_group(files, job, members, rules, legacy_horizon_ms, tick)
        bytes_read += sum(member.sizes.size for member in members)
        yield CleanedSegment(members[0].base_offset, [member.base_offset for member in members])
    yield Cleaned(
        end_offset,
        mapped_bytes + bytes_read,
        bytes_written,
        rules.messages_read,
        rules.messages_written,
        rules.invalid_messages,
    )


def _sources(files: Files, job: CleaningJob) -> list[Source]:
    """The segments below the first uncleanable offset."""

    def size_of(base_offset: int, suffix: str) -> int:
        found = files.stat(names.segment_file(job.directory, base_offset, suffix))
        return 0 if found is None else found.size

    sources = []
    for place, base_offset in enumerate(job.base_offsets):
        if base_offset >= job.first_uncleanable_offset:
            break
        path = names.segment_file(job.directory, base_offset, names.LOG_SUFFIX)
        found = files.stat(path)
        if found is None:
            raise FileNotFoundError(path)
        sizes = SegmentSizes(
            base_offset,
            found.size,
            size_of(base_offset, names.INDEX_SUFFIX),
            size_of(base_offset, names.TIME_INDEX_SUFFIX),
        )
        sources.append(Source(base_offset, job.base_offsets[place + 1], path, found.mtime_ms, sizes))
    return sources


def _aborted(files: Files, job: CleaningJob, start: int, end: int) -> list[AbortedTxn]:
    """Aborted transactions that overlap a range of offsets."""
    found = []
    for base_offset in job.base_offsets:
        path = names.segment_file(job.directory, base_offset, names.TXN_INDEX_SUFFIX)
        found += TransactionIndex(files, path, base_offset).entries()
    return [entry for entry in found if entry.last_offset >= start and entry.first_offset < end]


def _legacy_delete_horizon(job: CleaningJob, sources: list[Source]) -> int:
    """Segments last changed before this time lose their tombstones of magic 0 and 1."""
    clean_ones = [source for source in sources if source.base_offset < job.first_dirty_offset]
    return clean_ones[-1].modified_ms - job.delete_retention_ms if clean_ones else 0


def read_batches(files: Files, path: str, io_bytes: int, tick: Tick) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """Every batch of a segment: a buffer, where in it the batch lies, its header. CORRUPT_MESSAGE for damaged ones."""
    file = files.open(path, writable=False)
    try:
        at, size = 0, file.size()
        wanted = io_bytes
        while at < size:
            data = read_exactly(file, min(wanted, size - at), at)
            tick(len(data))
            used = 0
            for position, header in iter_batches(data):
                verify_crc(data, position, header)
                yield data, position, header
                used = position + header.size
            wanted = io_bytes
            if used == 0:
                wanted = _size_of_first(data)
                if not len(data) < wanted <= size - at:
                    raise corrupt(f"{path}: a batch of {wanted} bytes at {at}, where {size - at} are left")
            at += used
    finally:
        file.close()


def _size_of_first(data: bytes) -> int:
    return LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)


# --- the map


def build_map(files: Files, job: CleaningJob, sources: list[Source], offsets: OffsetMap, tick: Tick) -> int:
    """Map the keys from the first dirty offset on, until the map is full or the range ends; bytes read."""
    start = job.first_dirty_offset
    transactions = CleanedTransactions(_aborted(files, job, start, job.first_uncleanable_offset))
    offsets.latest_offset = start - 1
    bytes_read = 0
    for source in sources:
        if source.next_offset <= start:
            continue
        bytes_read += source.sizes.size
        if not _map_segment(files, job, source, transactions, offsets, tick):
            break
        offsets.latest_offset = source.next_offset - 1
    return bytes_read


def _map_segment(
    files: Files, job: CleaningJob, source: Source, transactions: CleanedTransactions, offsets: OffsetMap, tick: Tick
) -> bool:
    """False once the map is full."""
    start = job.first_dirty_offset
    for data, position, header in read_batches(files, source.path, job.io_bytes, tick):
        if header.last_offset < start:
            continue
        if not transactions.may_discard(data, position, header) and not header.is_control:
            keys, key_bytes = _keys(data, position, header)
            if header.base_offset < start or header.magic < 2:
                keys = [entry for entry in keys if entry[1] >= start]
            if not offsets.put_all(keys, key_bytes):
                return False
        offsets.latest_offset = header.last_offset
    return True


def _keys(data: bytes, position: int, header: BatchHeader) -> tuple[list[tuple[bytes, int]], int]:
    """Keys and offsets of a batch, and an upper bound of the bytes of the keys."""
    if header.magic < 2:
        records = iter_records(data, header, position)
        keys = [(record.key, record.offset) for record in records if record.key is not None]
        return keys, sum(len(key) for key, _ in keys)
    section = section_of(data, position, header)
    content, base_offset = section.data, header.base_offset
    keys = [
        (content[key_start:key_end], base_offset + delta)
        for delta, key_start, key_end, _, _, _ in iter_places(section, header.records_count)
        if key_end >= 0
    ]
    return keys, section.end - section.start


# --- the copy


def _clean_group(
    files: Files, job: CleaningJob, members: list[Source], rules: Filter, legacy_horizon_ms: int, tick: Tick
) -> int:
    """Copy what remains of neighbouring segments into one; the bytes written."""
    target = create_cleaned_segment(
        files,
        job.directory,
        members[0].base_offset,
        SegmentSettings(job.segment_index_bytes, job.index_interval_bytes),
        now_ms=job.now_ms,
    )
    try:
        output = _Output(target, tick)
        for member in members:
            rules.retain_legacy_deletes = member.modified_ms > legacy_horizon_ms
            for data, position, header in read_batches(files, member.path, job.io_bytes, tick):
                kept = rules.clean(data, position, header)
                if kept is not None:
                    output.add(kept)
        output.flush()
        for transaction in rules.take_retained_transactions():
            target.txn_index.append(transaction)
        target.become_inactive()
        target.sync()
        files.set_mtime(target.records.path, members[-1].modified_ms)
        files.sync_dir(job.directory)
        return target.size
    finally:
        target.close_handlers()


class _Output:
    """Appends batches to a segment, many with one write. Index entries are those that single appends would make."""

    __slots__ = ("_pending", "_pending_bytes", "_since_index_entry", "_target", "_tick")

    def __init__(self, target: LogSegment, tick: Tick) -> None:
        self._target = target
        self._tick = tick
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        self._since_index_entry = 0

    def add(self, kept: KeptBatch) -> None:
        data, last_offset, max_timestamp = kept
        target = self._target
        check_no_overflow(target, last_offset)
        target.note_timestamp(max_timestamp, last_offset)
        if self._since_index_entry > target.index_interval_bytes:
            if not (target.offset_index.is_full or target.time_index.is_full):
                target.add_recovered_index_entries(last_offset, target.size + self._pending_bytes)
            self._since_index_entry = 0
        self._since_index_entry += len(data)
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        if data:
            self._target.records.append(data)
            self._tick(len(data))
