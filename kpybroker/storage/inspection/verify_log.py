"""One look at one partition for `kpybroker log verify`: a single walk over its segments feeds every check.

Files are listed before they are read and indexes are measured before the log, so that no file misses what a broker
appends at that time while another one has it. A file that was removed since is a note.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeVar

from kpybroker.core.log.producer_entries import ProducerStateEntry
from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_leader_epochs, decode_partition_metadata
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.disk.files import File, Files
from kpybroker.storage.inspection.batch_walk import Damage, DamageKind, crc_of, walk
from kpybroker.storage.inspection.dump_files import index_entries, read_small, rest_of
from kpybroker.storage.inspection.readable import open_file
from kpybroker.storage.inspection.verify_checks import (
    ERROR,
    NOTE,
    Entries,
    EpochsCheck,
    EpochsFile,
    LogSummary,
    OffsetIndexCheck,
    OffsetsCheck,
    RecordsCheck,
    Report,
    TimeIndexCheck,
    TransactionsCheck,
)
from kpybroker.storage.log.producer_snapshots import decode_snapshot

T = TypeVar("T")

_LEFTOVERS = (names.CLEANED_SUFFIX, names.SWAP_SUFFIX)


@dataclass(slots=True)
class Totals:
    """How much was checked."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0

    def add(self, other: Totals) -> None:
        """Add the numbers of another look."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class LogLook:
    """One look at a partition's directory, and its results."""

    files: Files
    directory: str
    is_deep: bool
    is_clean: bool  # the broker stopped in order
    log_start_offset: int = 0  # as the checkpoint has it
    report: Report = field(default_factory=Report)
    state: LogSummary = field(default_factory=LogSummary)
    totals: Totals = field(default_factory=Totals)
    epochs: list[EpochEntry] = field(default_factory=list)
    topic_id: bytes | None = None
    end_offset: int = 0
    is_cut: bool = False  # a segment could not be walked to its end


def look_at(look: LogLook) -> None:
    """Verify a whole partition."""
    listed = sorted(entry.name for entry in look.files.listdir(look.directory) if not entry.is_dir)
    look.totals.partitions = 1
    look.topic_id = decoded(look, names.PARTITION_METADATA, decode_partition_metadata)
    look.epochs = decoded(look, names.LEADER_EPOCH_CHECKPOINT, decode_leader_epochs) or []
    snapshots = _read_snapshots(look, [name for name in listed if name.endswith(names.SNAPSHOT_SUFFIX)])
    bases = sorted(base for name in listed if names.is_log_file(name) and (base := names.offset_of(name)) is not None)
    for base, next_base in zip_longest(bases, bases[1:]):
        look_at_segment(look, base, next_base)
    look.end_offset = max(bases[-1], look.state.end_offset or 0) if bases else 0
    _look_around(look, listed, set(bases))
    _report_gaps(look)
    if not look.is_cut:
        _check_epoch_bounds(look)
        _check_snapshots(look, snapshots)


def decoded(
    look: LogLook, name: str, decode: Callable[[bytes, str], T], *, severity: str = ERROR, excuse: str = ""
) -> T | None:
    """The content of a small file; None where it is missing or, reported, unreadable."""
    path = f"{look.directory}/{name}"
    try:
        file = open_file(look.files, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        look.report.add(ERROR, "file", path, f"cannot be read: {error.strerror or error}")
        return None
    try:
        return decode(read_small(file), path)
    except (CorruptCheckpointError, OSError) as error:
        look.report.add(severity, "file", path, f"{error}{excuse}")
        return None
    finally:
        file.close()


def _read_snapshots(look: LogLook, listed: list[str]) -> dict[str, list[ProducerStateEntry]]:
    """A running broker may be writing the newest one, and a killed one may have left it incomplete."""
    found = {}
    for name in listed:
        if name == listed[-1] and not look.is_clean:
            severity, excuse = NOTE, ": being written, or left by an unclean stop and removed by the next start"
        else:
            severity, excuse = ERROR, ""
        entries = decoded(look, name, lambda data, _path: decode_snapshot(data), severity=severity, excuse=excuse)
        if entries is not None:
            found[name] = entries
    return found


# --- a segment


def look_at_segment(look: LogLook, base: int, next_base: int | None) -> None:
    """Verify one segment and its indexes, with what the segments before it left in `look.state`."""
    path = names.segment_file(look.directory, base, names.LOG_SUFFIX)
    with ExitStack() as stack:
        indexes = {suffix: _open(look, stack, base, suffix) for suffix in names.INDEX_SUFFIXES}
        try:
            log = open_file(look.files, path)
            stack.callback(log.close)
            _walk_segment(look, _Segment(path, log, log.size(), base, next_base), indexes)
        except FileNotFoundError:
            look.report.add(NOTE, "file", path, "has gone since the directory was listed")
        except OSError as error:
            look.is_cut = True
            look.report.add(ERROR, "file", path, f"cannot be read: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class _Segment:
    path: str
    file: File
    size: int
    base: int
    next_base: int | None

    def index_path(self, suffix: str) -> str:
        return self.path.removesuffix(names.LOG_SUFFIX) + suffix


def _open(look: LogLook, stack: ExitStack, base: int, suffix: str) -> tuple[File, int] | None:
    """An index file and its size now; None where there is none."""
    path = names.segment_file(look.directory, base, suffix)
    try:
        file = open_file(look.files, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        look.report.add(ERROR, suffix[1:], path, f"cannot be read: {error.strerror or error}")
        return None
    stack.callback(file.close)
    size = file.size()
    if rest_of(suffix, size):
        message = f"{rest_of(suffix, size)} bytes after the last whole entry"
        look.report.add(ERROR, suffix[1:], path, message, position=size - rest_of(suffix, size))
    return file, size


def _walk_segment(look: LogLook, segment: _Segment, indexes: dict[str, tuple[File, int] | None]) -> None:
    report, state, file = look.report, look.state, segment.path

    def entries(suffix: str) -> Entries:
        found = indexes[suffix]
        return iter(()) if found is None else index_entries(found[0], suffix, found[1])

    offsets = OffsetsCheck(report, file, state, segment.base, segment.next_base)
    records = RecordsCheck(report, file)
    index_file, time_file = segment.index_path(names.INDEX_SUFFIX), segment.index_path(names.TIME_INDEX_SUFFIX)
    index = OffsetIndexCheck(report, index_file, segment.base, entries(names.INDEX_SUFFIX))
    times = TimeIndexCheck(report, time_file, segment.base, entries(names.TIME_INDEX_SUFFIX))
    txn_file = segment.index_path(names.TXN_INDEX_SUFFIX)
    transactions = TransactionsCheck(report, txn_file, file, state, entries(names.TXN_INDEX_SUFFIX))
    epoch_file = f"{look.directory}/{names.LEADER_EPOCH_CHECKPOINT}"
    checkpoint = EpochsFile(epoch_file, look.epochs, look.log_start_offset, look.is_clean)
    epochs = EpochsCheck(report, checkpoint, file, state)
    look.totals.segments += 1
    try:
        for position, header, data in walk(segment.file, segment.size):
            look.totals.batches += 1
            offsets.batch(position, header)
            index.batch(position, header)
            times.batch(header, data)
            crc = crc_of(segment.file, position, header, data)
            if crc != header.crc:
                message = f"stored crc {header.crc}, computed crc {crc}"
                report.add(ERROR, "crc", file, message, position=position, offset=header.base_offset)
                continue
            transactions.batch(position, header, data)
            epochs.batch(position, header)
            if data is None:
                message = f"the records of a batch of {header.size} bytes were not checked"
                report.add(NOTE, "records", file, message, position=position, offset=header.base_offset)
            elif look.is_deep:
                records.batch(position, header, data)
    except Damage as damage:
        _report_damage(look, segment, damage)
    else:
        _check_index_files(look, segment, indexes, index.slots, times.slots)
        index.end(segment.size)
        is_sealed = look.is_clean or segment.next_base is not None
        times.end(is_sealed=is_sealed and indexes[names.TIME_INDEX_SUFFIX] is not None)
        transactions.end()
    look.totals.records += records.records
    look.totals.bytes += segment.size


def _report_damage(look: LogLook, segment: _Segment, damage: Damage) -> None:
    """The end of the last segment may be a batch that is being written, or that a killed broker left unfinished."""
    at_the_tail = segment.next_base is None and not look.is_clean
    offset = look.state.end_offset
    if at_the_tail and damage.kind is not DamageKind.CORRUPT:
        message = f"{damage}: being written, or left by an unclean stop and cut off by the next start"
        look.report.add(NOTE, "tail", segment.path, message, position=damage.position, offset=offset)
        return
    look.is_cut = True
    left = segment.size - damage.position
    message = f"{damage}; the last {left} bytes of the segment were not checked"
    look.report.add(ERROR, "batch", segment.path, message, position=damage.position, offset=offset)


def _check_index_files(
    look: LogLook, segment: _Segment, indexes: dict[str, tuple[File, int] | None], index_slots: int, time_slots: int
) -> None:
    """Offset and time index are there, and hold nothing but entries once the segment takes no more appends."""
    for suffix, slots, entry_size in ((names.INDEX_SUFFIX, index_slots, 8), (names.TIME_INDEX_SUFFIX, time_slots, 12)):
        found = indexes[suffix]
        path = segment.index_path(suffix)
        is_sealed = look.is_clean or segment.next_base is not None
        if found is None:
            look.report.add(ERROR if is_sealed else NOTE, suffix[1:], path, "missing")
            continue
        unused = found[1] // entry_size - slots
        if unused > 1 and is_sealed:  # a single entry may truly be zero
            message = f"{unused} zero entries at the end of the index of a segment that takes no more appends"
            look.report.add(NOTE, suffix[1:], path, message, position=slots * entry_size)


# --- files next to the segments


def _look_around(look: LogLook, listed: list[str], bases: set[int]) -> None:
    for name in listed:
        path = f"{look.directory}/{name}"
        base = names.offset_of(name)
        if name.endswith(_LEFTOVERS):
            look.report.add(NOTE, "file", path, "of a replacement of segments that is under way or was interrupted")
        elif names.is_index_file(name) and base not in bases:
            message = "an index without its segment: being removed, or left by an unclean stop"
            look.report.add(ERROR if look.is_clean else NOTE, "file", path, message)


def _report_gaps(look: LogLook) -> None:
    state = look.state
    if state.first_gap is not None:
        file, start, end = state.first_gap
        message = f"{state.missing} offsets are missing at {state.gaps} places, the first between {start} and {end}"
        look.report.add(NOTE, "gap", file, f"{message}: compaction leaves such gaps, nothing else does", offset=start)


def _check_epoch_bounds(look: LogLook) -> None:
    path = f"{look.directory}/{names.LEADER_EPOCH_CHECKPOINT}"
    last_epoch, last_start = -1, -1
    for epoch, start_offset in look.epochs:
        wrong = None
        if epoch <= last_epoch or start_offset <= last_start:
            wrong = f"epoch {epoch} from {start_offset} after epoch {last_epoch} from {last_start}"
        elif start_offset > look.end_offset:
            wrong = f"epoch {epoch} begins at {start_offset}, the log ends at {look.end_offset}"
        if wrong is not None:
            look.report.add(ERROR, "epochs", path, wrong, offset=start_offset)
        last_epoch, last_start = epoch, start_offset


def _check_snapshots(look: LogLook, snapshots: dict[str, list[ProducerStateEntry]]) -> None:
    for name, entries in snapshots.items():
        path, offset = f"{look.directory}/{name}", names.offset_of(name) or 0
        if offset > look.end_offset:
            look.report.add(ERROR, "snapshot", path, f"the log ends at {look.end_offset}", offset=offset)
        for entry in entries:
            latest = max(entry.last_data_offset, entry.current_txn_first_offset)
            if latest >= offset:
                message = f"producer {entry.producer_id} at offset {latest}, which the snapshot does not cover"
                look.report.add(ERROR, "snapshot", path, message, offset=latest)
