"""What must hold of a segment's batches and of the files next to it: small observers of one walk over the log.

A check sees every batch in order and the segment's end, and reports to a `Report`. None of them holds more than a few
entries of its file, so memory does not grow with the log (except for producers with an open transaction).

Rules, as Kafka's readers rely on them: an offset index entry names the position of a batch, and the last offset of it
or of a later one appended together with it; a time index entry names the batch that first had the largest timestamp so
far; an aborted transaction names its marker. What compaction may have removed is no finding.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.storage.inspection.dump_segment import UNCOMPRESSED_MAX
from kpybroker.storage.segments.txn_index import VERSION as TXN_VERSION
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.constants import INT32_MAX, NO_TIMESTAMP
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import BatchHeader, TimestampType
from kpybroker.wire.records.claims import largest_timestamp
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, parse_end_transaction_marker
from kpybroker.wire.records.default_record import iter_spans, records_section
from kpybroker.wire.records.legacy import read_wrapper
from kpybroker.wire.records.record import iter_records

Entries = Iterator[tuple[int, ...]]

FINDINGS_MAX: Final = 100
"""Findings of one kind that are reported one by one for one file; the rest are counted."""

ERROR: Final = "error"
NOTE: Final = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """An error, or a note: something in order that may be worth knowing."""

    severity: str
    check: str
    file: str
    message: str
    position: int | None = None
    offset: int | None = None


class Report:
    """Findings, bounded."""

    __slots__ = ("_counts", "findings")

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(
        self,
        severity: str,
        check: str,
        file: str,
        message: str,
        *,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Add a finding. `position` is in bytes within the file."""
        key = (severity, check, file)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count <= FINDINGS_MAX:
            self.findings.append(Finding(severity, check, file, message, position, offset))

    def keep(self, condition: Callable[[Finding], bool]) -> None:
        """Drop the findings that do not meet the condition."""
        self.findings = [finding for finding in self.findings if condition(finding)]

    def close(self) -> list[Finding]:
        """All findings; those above FINDINGS_MAX as a number."""
        for (severity, check, file), count in self._counts.items():
            if count > FINDINGS_MAX:
                self.findings.append(Finding(severity, check, file, f"and {count - FINDINGS_MAX} more of these"))
        return self.findings


@dataclass(slots=True)
class LogSummary:
    """What the checks of one segment pass on to those of the next."""

    end_offset: int | None = None  # after the last batch seen
    latest_epoch: int = -1
    epoch_reported: int = -1  # the last one that the checkpoint was found to lack
    gaps: int = 0
    missing: int = 0
    first_gap: tuple[str, int, int] | None = None  # file, and the offsets between which something is missing
    last_gap_end: int = -1
    open_transactions: dict[int, int] = field(default_factory=dict)  # producer id -> first offset

    def note_gap(self, file: str, start: int, end: int, missing: int) -> None:
        """Count offsets that are missing between two batches."""
        self.gaps += 1
        self.missing += missing
        self.last_gap_end = end
        self.first_gap = self.first_gap or (file, start, end)


class OffsetsCheck:
    """Offsets rise over batches and segments, within what the segment's name and index can express."""

    def __init__(self, report: Report, file: str, state: LogSummary, base: int, next_base: int | None) -> None:
        self._report, self._file, self._state = report, file, state
        self._base, self._next_base = base, next_base

    def batch(self, position: int, header: BatchHeader) -> None:
        """Check the next batch."""
        state = self._state
        expected = self._base if state.end_offset is None else state.end_offset
        first, last = header.base_offset, header.last_offset
        wrong = None
        if header.last_offset_delta < 0:
            wrong = f"last offset delta {header.last_offset_delta}"
        elif first < self._base:
            wrong = f"offset {first} in a segment that begins at {self._base}"
        elif first < expected:
            wrong = f"offset {first} after {expected - 1}"
        elif self._next_base is not None and last >= self._next_base:
            wrong = f"last offset {last}, but the next segment begins at {self._next_base}"
        elif last - self._base > INT32_MAX:
            wrong = f"offset {last} is more than 2^31 - 1 after the segment's base"
        elif header.magic == 2 and not 0 <= header.records_count <= header.last_offset_delta + 1:
            wrong = f"{header.records_count} records with a last offset delta of {header.last_offset_delta}"
        if wrong is not None:
            self._report.add(ERROR, "offsets", self._file, wrong, position=position, offset=first)
        elif header.magic == 2 or not header.is_compressed:  # a wrapper does not say where it begins
            missing = first - expected
            if header.magic == 2:
                missing += header.last_offset_delta + 1 - header.records_count
            if missing:
                state.note_gap(self._file, expected, last, missing)
        state.end_offset = max(expected, header.next_offset)


class RecordsCheck:
    """The records of each batch: as many as the header says, in order, with its largest timestamp."""

    def __init__(self, report: Report, file: str) -> None:
        self._report, self._file = report, file
        self.records = 0

    def batch(self, position: int, header: BatchHeader, data: memoryview) -> None:
        """Check the records of the next batch."""
        try:
            wrong = self._v2(header, data) if header.magic == 2 else self._legacy(header, data)
        except KafkaError as error:
            wrong = str(error)
        if wrong is not None:
            self._report.add(ERROR, "records", self._file, wrong, position=position, offset=header.base_offset)

    def _v2(self, header: BatchHeader, data: memoryview) -> str | None:
        if header.records_count == 0:
            return None
        previous, timestamp = -1, NO_TIMESTAMP
        for span in iter_spans(records_section(data, 0, header, UNCOMPRESSED_MAX), header):
            delta = span[0]
            if delta <= previous:
                return f"the record of offset {header.base_offset + delta} follows {header.base_offset + previous}"
            previous = delta
            if span[1] > timestamp:
                timestamp = span[1]
        self.records += header.records_count
        if previous > header.last_offset_delta:
            return f"a record of offset {header.base_offset + previous} above the last offset {header.last_offset}"
        if timestamp != header.max_timestamp and header.timestamp_type is TimestampType.CREATE_TIME:
            return f"the largest timestamp is {timestamp}, the header says {header.max_timestamp}"
        if header.is_control:
            for record in iter_records(data, header, read_headers_max=0):
                parse_end_transaction_marker(record)
        return None

    def _legacy(self, header: BatchHeader, data: memoryview) -> str | None:
        if not header.is_compressed:
            self.records += sum(1 for _ in iter_records(data, header))
            return None
        offsets = [
            message.record.offset for message in read_wrapper(data, header, max_bytes=UNCOMPRESSED_MAX, check_crc=True)
        ]
        self.records += len(offsets)
        if any(later <= earlier for earlier, later in pairwise(offsets)):
            return "the offsets of the messages within do not rise"
        return None


class OffsetIndexCheck:
    """Entries rise; each names the position of a batch, and the last offset of that batch or of a later one."""

    def __init__(self, report: Report, file: str, base: int, entries: Entries) -> None:
        self._report, self._file, self._base = report, file, base
        self._entries = self._rising(entries)
        self._next = next(self._entries, None)
        self._pending: tuple[int, int] | None = None
        self.slots = 0

    def _rising(self, entries: Entries) -> Iterator[tuple[int, int]]:
        """(offset, position) of the entries that rise above the one before."""
        last_offset, last_position = self._base - 1, -1
        for slot, relative, position in entries:
            self.slots = slot + 1
            offset = self._base + relative
            if offset <= last_offset or position <= last_position:
                message = f"entry {slot} ({offset} at {position}) after ({last_offset} at {last_position})"
                self._report.add(ERROR, "index", self._file, message, position=slot * 8, offset=offset)
                continue
            last_offset, last_position = offset, position
            yield offset, position

    def _wrong(self, offset: int, position: int, message: str) -> None:
        self._report.add(ERROR, "index", self._file, message, position=position, offset=offset)

    def batch(self, position: int, header: BatchHeader) -> None:
        """Check the entries that name the next batch."""
        while self._next is not None and self._next[1] <= position:
            offset, at = self._next
            if at < position:
                self._wrong(offset, at, f"the entry for offset {offset} names position {at}, where no batch begins")
            elif header.base_offset > offset:
                self._wrong(
                    offset, at, f"the entry for offset {offset} names a batch that begins at {header.base_offset}"
                )
            else:
                self._pending = self._next
            self._next = next(self._entries, None)
        if self._pending is not None and header.last_offset >= self._pending[0]:
            offset, at = self._pending
            if header.last_offset != offset:
                self._wrong(offset, at, f"the entry names offset {offset}, which is no batch's last one")
            self._pending = None

    def end(self, size: int) -> None:
        """The log ends at `size` bytes; remaining entries point beyond it."""
        while self._next is not None:
            offset, at = self._next
            self._wrong(offset, at, f"the entry for offset {offset} names position {at} of a log of {size} bytes")
            self._next = next(self._entries, None)
        if self._pending is not None:
            self._wrong(*self._pending, f"the entry names offset {self._pending[0]}, and the log ends before it")


class TimeIndexCheck:
    """Entries rise; each names the batch that first had its timestamp, the largest so far."""

    def __init__(self, report: Report, file: str, base: int, entries: Entries) -> None:
        self._report, self._file, self._base = report, file, base
        self._last_timestamp = NO_TIMESTAMP
        self._entries = self._rising(entries)
        self._next = next(self._entries, None)
        self._largest = NO_TIMESTAMP
        self.slots = 0

    def _rising(self, entries: Entries) -> Iterator[tuple[int, int]]:
        """(timestamp, offset) of the entries that rise above the one before."""
        last_offset = self._base - 1
        for slot, timestamp, relative in entries:
            self.slots = slot + 1
            offset = self._base + relative
            if offset <= last_offset or timestamp <= self._last_timestamp:
                message = (
                    f"entry {slot} ({timestamp} at offset {offset}) after ({self._last_timestamp} at {last_offset})"
                )
                self._report.add(ERROR, "timeindex", self._file, message, position=slot * 12, offset=offset)
                continue
            last_offset, self._last_timestamp = offset, timestamp
            yield timestamp, offset

    def _wrong(self, offset: int, message: str) -> None:
        self._report.add(ERROR, "timeindex", self._file, message, offset=offset)

    def batch(self, header: BatchHeader, data: memoryview | None) -> None:
        """Check the entries that name the next batch. An entry may say what the records do and the header does not."""
        while self._next is not None and self._next[1] <= header.last_offset:
            timestamp, offset = self._next
            has_it = header.max_timestamp == timestamp or _largest_of_records(header, data) == timestamp
            if not has_it or (header.magic == 2 and offset < header.base_offset):
                self._wrong(
                    offset,
                    f"the entry says {timestamp}, the batch of offset {header.base_offset} has {header.max_timestamp}",
                )
            elif timestamp <= self._largest:
                self._wrong(offset, f"the entry says {timestamp}, but {self._largest} came before it")
            self._next = next(self._entries, None)
        self._largest = max(self._largest, header.max_timestamp)

    def end(self, *, is_sealed: bool) -> None:
        """The log ends. The index of a segment that takes no more appends ends with its largest timestamp."""
        while self._next is not None:
            self._wrong(self._next[1], f"the entry names offset {self._next[1]}, and the log ends before it")
            self._next = next(self._entries, None)
        if is_sealed and self._largest > max(self._last_timestamp, 0):
            message = f"the last entry says {self._last_timestamp}, the largest timestamp is {self._largest}"
            self._report.add(ERROR, "timeindex", self._file, message)


def _largest_of_records(header: BatchHeader, data: memoryview | None) -> int | None:
    if data is None:
        return None
    try:
        return largest_timestamp(data, 0, header, UNCOMPRESSED_MAX)
    except KafkaError:
        return None


class TransactionsCheck:
    """Every entry of the transaction index names an abort marker, and every marker that aborted records has one."""

    def __init__(self, report: Report, file: str, log_file: str, state: LogSummary, entries: Entries) -> None:
        self._report, self._file, self._log_file, self._state = report, file, log_file, state
        self._to_begin: dict[int, AbortedTxn] = {}
        self._entries = self._rising(entries)
        self._next = next(self._entries, None)

    def _rising(self, entries: Entries) -> Iterator[AbortedTxn]:
        last = -1
        for slot, version, *fields in entries:
            entry = AbortedTxn(*fields)
            wrong = None
            if version != TXN_VERSION:
                wrong = f"unknown version {version}"
            elif entry.last_offset <= last or not 0 <= entry.first_offset < entry.last_offset:
                wrong = f"offsets {entry.first_offset} to {entry.last_offset} after {last}"
            elif entry.last_stable_offset > entry.last_offset + 1:  # written by a Kafka follower
                self._to_begin[entry.last_stable_offset] = entry
            if wrong is not None:
                self._wrong(entry.last_offset, f"entry {slot}: {wrong}")
                continue
            last = entry.last_offset
            yield entry

    def _wrong(self, offset: int, message: str) -> None:
        self._report.add(ERROR, "txnindex", self._file, message, offset=offset)

    def batch(self, position: int, header: BatchHeader, data: memoryview | None) -> None:
        """Check the entries up to the next batch; `data` is None where the batch is too large to read."""
        if not header.is_transactional:
            return
        if not header.is_control:
            self._to_begin.pop(header.base_offset, None)
            self._state.open_transactions.setdefault(header.producer_id, header.base_offset)
            return
        try:
            marker = _marker(header, data)
        except KafkaError as error:
            self._report.add(ERROR, "records", self._log_file, str(error), position=position, offset=header.base_offset)
            return
        if marker is None:
            return
        first = self._state.open_transactions.pop(header.producer_id, None)
        if first is not None and first <= self._state.last_gap_end:
            first = None  # compaction went over this part: a marker between the two may be gone
        self._passed(header.base_offset)
        entry = self._next
        if entry is not None and entry.last_offset == header.base_offset:
            self._compare(entry, marker, header.producer_id, first)
            self._next = next(self._entries, None)
        elif first is not None and marker.control_type is ControlRecordType.ABORT:
            message = f"producer {header.producer_id} aborted {first} to {header.base_offset}, and no entry says so"
            self._wrong(header.base_offset, message)

    def _compare(self, entry: AbortedTxn, marker: EndTransactionMarker, producer_id: int, first: int | None) -> None:
        if marker.control_type is not ControlRecordType.ABORT or entry.producer_id != producer_id:
            said = f"producer {entry.producer_id} aborted"
            self._wrong(entry.last_offset, f"{said}; the marker is producer {producer_id}'s {marker.control_type.name}")
        elif first is not None and entry.first_offset != first:
            said = f"the transaction is said to begin at {entry.first_offset}"
            self._wrong(entry.last_offset, f"{said}; its first batch is at {first}")

    def _passed(self, offset: int) -> None:
        while self._next is not None and self._next.last_offset < offset:
            self._wrong(self._next.last_offset, f"no marker at offset {self._next.last_offset}")
            self._next = next(self._entries, None)

    def end(self) -> None:
        """The log ends; remaining entries name markers that are not there."""
        self._passed(2**63)
        for offset, entry in self._to_begin.items():
            if offset > self._state.last_gap_end:
                self._wrong(entry.last_offset, f"last stable offset {offset}, and no transaction begins there")


def _marker(header: BatchHeader, data: memoryview | None) -> EndTransactionMarker | None:
    """None where compaction has emptied the batch."""
    if data is not None and header.records_count:
        for record in iter_records(data, header, read_headers_max=0):
            return parse_end_transaction_marker(record)
    return None


class EpochsFile(NamedTuple):
    """A leader-epoch checkpoint, and what it has to cover: from the log start offset, all of it if `is_clean`."""

    file: str
    entries: list[EpochEntry]
    log_start_offset: int
    is_clean: bool


class EpochsCheck:
    """Leader epochs never fall, and the checkpoint has the epoch of every batch."""

    def __init__(
        self,
        report: Report,
        checkpoint: EpochsFile,
        log_file: str,
        state: LogSummary,
    ) -> None:
        self._report, self._checkpoint, self._log_file, self._state = report, checkpoint, log_file, state

    def batch(self, position: int, header: BatchHeader) -> None:
        """Check the leader epoch of the next batch."""
        epoch = header.partition_leader_epoch
        if header.magic < 2 or epoch < 0:
            return
        state = self._state
        if epoch < state.latest_epoch:
            message = f"leader epoch {epoch} after {state.latest_epoch}"
            self._report.add(ERROR, "epochs", self._log_file, message, position=position, offset=header.base_offset)
        state.latest_epoch = max(state.latest_epoch, epoch)
        if state.epoch_reported != epoch and header.last_offset >= self._checkpoint.log_start_offset:
            self._compare(epoch, header)

    def _compare(self, epoch: int, header: BatchHeader) -> None:
        """Below the log start offset epochs are forgotten. An epoch missing from the checkpoint is reported once."""
        offset = max(header.base_offset, self._checkpoint.log_start_offset)
        slot = bisect_right(self._checkpoint.entries, offset, key=_start_of)
        expected = self._checkpoint.entries[slot - 1].epoch if slot else None
        if expected == epoch:
            return
        self._state.epoch_reported = epoch
        lags = expected is None or epoch > self._checkpoint.entries[-1].epoch
        message = f"offset {offset} belongs to leader epoch {expected}, its batch says {epoch}"
        if expected is None:
            message = f"no entry for leader epoch {epoch} at offset {offset}"
        severity = NOTE if lags and not self._checkpoint.is_clean else ERROR
        self._report.add(severity, "epochs", self._checkpoint.file, message, offset=offset)


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
