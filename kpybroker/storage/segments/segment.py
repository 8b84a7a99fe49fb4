"""One segment of a log: a `.log` file with its offset, time and transaction index (Kafka's LogSegment).

Rules. Offsets in a segment are at or above its base offset, which is above every offset of the segment before. The
first append after `index.interval.bytes` writes an index entry. The time index gets the segment's largest timestamp
when the segment becomes inactive or is closed, so a closed segment knows it without a scan. Indexes are opened at first
use, and every position taken from one is checked against the batch found there: a wrong index raises CorruptIndexError,
and `rebuild_indexes` rebuilds it.

Not here: which segment (`segment_list`, `log`), the index files (`segment_indexes`), producer state and leader epochs
(`recovery`), when files are removed (`log`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.disk.files import Buffer
from kpybroker.storage.disk.slice import SharedFile
from kpybroker.storage.segments.file_records import BatchPosition, FileRecords
from kpybroker.storage.segments.index import OffsetIndex, TimeIndex, TimestampOffset
from kpybroker.storage.segments.segment_files import SegmentFiles, SegmentSettings
from kpybroker.storage.segments.segment_indexes import SegmentIndexes, walk
from kpybroker.storage.segments.txn_index import TransactionIndex
from kpybroker.wire.constants import INT32_MAX, NO_TIMESTAMP
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, corrupt, parse_header

logger = logging.getLogger("kafka.log.LogSegment")

Index = TypeVar("Index", OffsetIndex, TimeIndex)

RECENT_APPENDS_MAX = 8
NO_TAIL = 2**63


class LogSegment:
    """A segment. I/O errors are raised as OSError."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_data_damage",
        "_indexes",
        "_is_index_full",
        "_is_walk_complete",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_recent",
        "_rolling_timestamp",
        "_tail_offset",
        "active",
        "base_offset",
        "created_ms",
        "files",
        "index_interval_bytes",
        "is_corrected",
        "is_new",
        "records",
        "roll_jitter_ms",
        "walked_bytes",
    )

    def __init__(self, files: SegmentFiles, settings: SegmentSettings, *, now_ms: int, create: bool) -> None:
        """Open a segment, or with `create` a new empty one whose index files exist from the start."""
        self.files = files
        self.base_offset = base_offset = files.base_offset
        self.index_interval_bytes = settings.index_interval_bytes
        self.roll_jitter_ms = settings.roll_jitter_ms
        self.created_ms = now_ms
        self.active = create
        self.is_new = False  # its name in the directory is not yet durable
        fresh = create and settings.preallocate_bytes > 0
        self.records = FileRecords(files, create=create, empty=fresh)
        if fresh:
            self.records.preallocate(settings.preallocate_bytes)
        self._indexes = SegmentIndexes(files, settings.max_index_bytes)
        self._rolling_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        self.is_corrected = False  # some header does not say the largest timestamp of its batch
        self.walked_bytes = 0  # the timestamps of the records up to there were read
        self._is_walk_complete = True
        self._bytes_since_index_entry = 0
        self._is_index_full: bool | None = None  # not known since the indexes changed
        self._data_damage: KafkaError | None = None
        # The last append's first offset, and the positions of the last few: a reader at the tail needs no index.
        self._tail_offset = NO_TAIL
        self._recent: dict[int, int] | None = None
        if create:
            self._max_timestamp = NO_TIMESTAMP
            try:
                if self.offset_index.file.entries or self.time_index.file.entries:
                    raise FileExistsError(f"{self} is new and has index entries")
            except OSError:
                self.close_handlers()
                raise
            self.note_synced()  # the files are empty
            self.is_new = True

    def __repr__(self) -> str:
        return f"LogSegment(baseOffset={self.base_offset}, size={self.size}, dir={self.files.directory})"

    @property
    def size(self) -> int:
        """Bytes of the `.log` file that hold data."""
        return self.records.size

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, opened at first use, and rebuilt if it contradicts itself."""
        return self._indexes.offset or self._opened(self._open_offset_index)

    def _open_offset_index(self) -> OffsetIndex:
        return self._indexes.open_offset(active=self.active, log_size=self.records.size)

    @property
    def time_index(self) -> TimeIndex:
        """The time index, opened at first use, and rebuilt if it contradicts itself."""
        return self._indexes.time or self._opened(self._open_time_index)

    def _open_time_index(self) -> TimeIndex:
        return self._indexes.open_time(active=self.active)

    @property
    def txn_index(self) -> TransactionIndex:
        """The aborted transactions, read at first use."""
        return self._indexes.transactions

    def rest(self) -> None:
        """Forget what the next use reads again: of many partitions most are idle, and none then holds its indexes."""
        self._indexes.rest()

    def _opened(self, open_index: Callable[[], Index]) -> Index:
        try:
            return open_index()
        except CorruptIndexError as error:
            self._rebuild_because(error)
            return open_index()

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp so far; -1 where there is none. At first use, of a closed segment, the index's last."""
        known = self._max_timestamp
        if known is None:
            last = self.time_index.last_entry
            if not self.holds_max_timestamp(last):
                logger.warning("Rebuilding the indexes of %s: no batch has %s", self, last)
                self.rebuild_indexes()
                last = self.time_index.last_entry
            known, self._offset_of_max_timestamp = last
            self._max_timestamp = known
        return known

    def holds_max_timestamp(self, entry: TimestampOffset) -> bool:
        """Whether the batch that an entry of the time index names has the timestamp of the entry."""
        if entry.timestamp < 0:
            return True
        found = self.translate_offset(entry.offset)
        if found is None:
            return False
        header = parse_header(self.records.read(found.position, RECORD_BATCH_OVERHEAD))
        if header.base_offset > entry.offset or header.max_timestamp == entry.timestamp:
            return header.base_offset <= entry.offset
        self.is_corrected = self.records.largest_timestamp(found.position, header) == entry.timestamp
        return self.is_corrected

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch that has the largest timestamp."""
        _ = self.max_timestamp
        return self._offset_of_max_timestamp

    @property
    def last_modified_ms(self) -> int:
        """When the `.log` file changed last; 0 if it is missing. Raises OSError."""
        found = self.files.files.stat(self.records.path)
        return 0 if found is None else found.mtime_ms

    @property
    def largest_timestamp(self) -> int:
        """What lookups by time use: the largest timestamp, or the last change of the file if no record has one."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms

    @property
    def certain_timestamp(self) -> int:
        """What removes records by time: the same, but of headers that were not checked not before the last change."""
        if self.walked_bytes == self.size and self._is_walk_complete:
            return self.largest_timestamp
        return max(self.max_timestamp, self.last_modified_ms)

    def learn_timestamps(self, walked_bytes: int, timestamp: int, offset: int, is_complete: bool) -> None:
        """Records up to `walked_bytes` were read, but for some if not `is_complete`: their largest timestamp."""
        self.walked_bytes = walked_bytes
        self._is_walk_complete = self._is_walk_complete and is_complete
        if timestamp > self.max_timestamp:
            self.is_corrected = True
            self._max_timestamp, self._offset_of_max_timestamp = timestamp, offset
            self.time_index.truncate_to(offset)
            self.append_largest_timestamp()
            self._indexes.keep_open(self.active)

    def should_roll(
        self, segment_bytes: int, segment_ms: int, size: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> bool:
        """Whether an append of `size` bytes needs a new segment."""
        held = self.records.size
        if held > segment_bytes - size or last_offset - self.base_offset > INT32_MAX:
            return True
        if held > 0:
            first = self._rolling_timestamp
            if first is None:
                first = self._load_first_timestamp()
            # Message time since the first batch, or wall time since creation where messages have no time.
            waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
            if waited_ms > segment_ms - self.roll_jitter_ms:
                return True
        if self._is_index_full is None:
            self._is_index_full = self.offset_index.is_full or self.time_index.is_full
        return self._is_index_full

    def _load_first_timestamp(self) -> int:
        for _, header in self.records.headers():
            self._rolling_timestamp = header.max_timestamp
            return header.max_timestamp
        return NO_TIMESTAMP

    @property
    def first_batch_timestamp(self) -> int | None:
        """The first batch's timestamp, for max.compaction.lag.ms; None where it has none."""
        first = self._load_first_timestamp() if self._rolling_timestamp is None else self._rolling_timestamp
        return first if first >= 0 else None

    def append(
        self, data: Buffer, first_offset: int, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int
    ) -> None:
        """Write at the end. On OSError nothing was appended to any file."""
        records = self.records
        position = records.size
        records.append(data)
        if position == 0:
            self._rolling_timestamp = max_timestamp
        known = self._max_timestamp
        if max_timestamp > (self.max_timestamp if known is None else known):
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = offset_of_max_timestamp
        if self._bytes_since_index_entry > self.index_interval_bytes:
            self._add_index_entries(last_offset, position)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += len(data)
        self._tail_offset = first_offset
        recent = self._recent
        if recent is None:
            recent = self._recent = {}
        recent[first_offset] = position
        if len(recent) > RECENT_APPENDS_MAX:
            del recent[next(iter(recent))]

    def _add_index_entries(self, last_offset: int, position: int) -> None:
        self._is_index_full = None
        offset_index, time_index = self.offset_index, self.time_index
        entries = offset_index.file.entries
        try:
            offset_index.append(last_offset, position)
            time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        except OSError:
            offset_index.drop_last(entries)
            self.records.truncate_to(position)
            self._max_timestamp = None
            self._max_timestamp, self._offset_of_max_timestamp = self._scan_largest_timestamp()
            self._forget_tail()
            raise
        self._is_index_full = offset_index.is_full or time_index.is_full

    def _forget_tail(self) -> None:
        self._tail_offset = NO_TAIL
        self._recent = None

    def recent_position(self, offset: int) -> int | None:
        """The position of the batch that begins with an offset, if it is one of the last appended."""
        return None if self._recent is None else self._recent.get(offset)

    def translate_offset(self, offset: int) -> BatchPosition | None:
        """The first batch whose last offset is at or above `offset`; None where there is none.

        A wrong index is rebuilt on the way. Raises CORRUPT_MESSAGE where the data are damaged.
        """
        try:
            return self._translate(offset)
        except (CorruptIndexError, KafkaError) as error:
            self._rebuild_because(error)
            return self._translate(offset)

    def _rebuild_because(self, error: Exception) -> None:
        logger.warning("Rebuilding the indexes of %s: %s", self, error)
        self.rebuild_indexes()

    def _translate(self, offset: int) -> BatchPosition | None:
        if self._recent is not None and offset >= self._tail_offset:
            mapped_offset, mapped_position, first = 0, self._recent[self._tail_offset], False
        else:
            mapped_offset, mapped_position = self.offset_index.lookup(offset)
            first = mapped_position > 0
        for position, header in self.records.headers(mapped_position):
            last_offset = header.last_offset
            if first:
                self._indexes.check_entry(header, mapped_offset, mapped_position, self)
                first = False
            if last_offset >= offset:
                return BatchPosition(position, header.size)
        if first:
            raise CorruptIndexError(f"{self}: the index names position {mapped_position}, where no batch begins")
        return None

    def next_offset(self) -> int:
        """The offset after the last batch, by a scan from the last index entry. As `translate_offset`.

        A file that does not end with a whole batch is damaged: recovery cuts off a batch that was not written whole.
        """
        try:
            return self._scan_to_end()
        except (CorruptIndexError, KafkaError) as error:
            self._rebuild_because(error)
            return self._scan_to_end()

    def _scan_to_end(self) -> int:
        offset = self.base_offset
        mapped_offset, mapped_position = self.offset_index.last_offset, self.offset_index.last_position
        first = mapped_position > 0
        end = mapped_position
        for position, header in self.records.headers(mapped_position):
            if first:
                self._indexes.check_entry(header, mapped_offset, mapped_position, self)
                first = False
            offset = header.next_offset
            end = position + header.size
        if end != self.records.size:
            raise corrupt(f"{self.records.path} ends within the batch at {end}")
        return offset

    def note_timestamp(self, timestamp: int, last_offset: int) -> None:
        """Take a batch's largest timestamp into account, while a segment is scanned."""
        if timestamp > self.max_timestamp:
            self._max_timestamp, self._offset_of_max_timestamp = timestamp, last_offset

    def reset_indexes(self) -> None:
        """Empty the indexes and forget the largest timestamp, as the start of a recovery.

        Unreadable index files are replaced. Raises OSError.
        """
        self._remove_indexes()
        self.txn_index.reset()
        self._data_damage = None
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._rolling_timestamp = None

    def add_recovered_index_entries(self, last_offset: int, position: int) -> None:
        """Add an entry to both indexes while a segment is scanned. Raises OSError."""
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)

    def rebuild_indexes(self) -> None:
        """Rebuild offset and time index from the batch headers.

        Raises CORRUPT_MESSAGE where the data themselves are damaged; the indexes then stay as they are, and the next
        call does not scan the segment again.
        """
        if self._data_damage is not None:
            raise self._data_damage
        try:
            found = walk(self.records.headers(), self.base_offset, self.index_interval_bytes, self)
        except KafkaError as error:
            self._data_damage = error
            raise
        self._remove_indexes()
        for last_offset, position, *largest in found.entries:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*largest)
        self._max_timestamp, self._offset_of_max_timestamp = found.max_timestamp, found.offset_of_max_timestamp
        self._bytes_since_index_entry = self.records.size - found.last_position
        if not self.active:
            self.append_largest_timestamp()

    def _remove_indexes(self) -> None:
        """Empty both indexes, or make new ones in place of those that have something in them."""
        self._is_index_full, self.walked_bytes = None, 0
        self._indexes.make_empty()
        self._indexes.close_transactions()
        self._open_offset_index()
        self._open_time_index()

    def append_largest_timestamp(self) -> None:
        """Add the final entry of the time index of a segment that takes no more appends."""
        self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp, skip_full_check=True)

    def become_active(self) -> None:
        """Make this the last segment of a loaded log: its index files stay open once they are used."""
        self.active = True
        self._is_index_full = None
        self._indexes.keep_open(True)

    def become_inactive(self) -> None:
        """Finish a segment that was rolled: final time index entry, no preallocated space."""
        self.append_largest_timestamp()
        self._indexes.keep_open(False)
        self.records.trim()
        self.active = False
        self._indexes.close_transactions()

    def truncate_to(self, offset: int) -> int:
        """Remove every batch that ends at or above an offset; bytes removed."""
        self._forget_tail()
        self._is_index_full = None
        found = self.translate_offset(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        removed = 0 if found is None else self.records.truncate_to(found.position)
        self.walked_bytes = min(self.walked_bytes, self.records.size)
        if self.records.size == 0:
            self._rolling_timestamp = None
        self._bytes_since_index_entry = 0
        if self.max_timestamp >= 0:
            self._max_timestamp, self._offset_of_max_timestamp = self._scan_largest_timestamp()
        return removed

    def _scan_largest_timestamp(self) -> tuple[int, int]:
        timestamp, offset = self.time_index.last_entry
        found = self.translate_offset(offset)
        for _, header in self.records.headers(self.size if found is None else found.position):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        return timestamp, offset

    def write_out_indexes(self) -> bool:
        """Write index entries that are only in memory; False on a full disk. Raises any other OSError."""
        return self._indexes.write_out()

    def take_dirty_files(self) -> Iterator[SharedFile]:
        """The files that have something to sync, acquired for the caller and marked clean. Raises OSError."""
        if self.records.dirty:
            self.records.dirty = False
            yield self.records.shared.acquire()
        for handle in self._indexes.handles():
            if handle.dirty:
                handle.dirty = False
                yield handle.shared.acquire()
                if not self.active:
                    handle.close()

    @property
    def is_dirty(self) -> bool:
        """Whether one of its files, or its name, is not durable."""
        return self.is_new or self.records.dirty or any(handle.dirty for handle in self._indexes.handles())

    def note_synced(self) -> None:
        """All of its files are durable, with their names: the file system was synced since the last change."""
        self.is_new = self.records.dirty = False
        for handle in self._indexes.handles():
            handle.dirty = False

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files of the segment from one suffix to another."""
        assert self.files.suffix == old, f"{self} has suffix {self.files.suffix!r}"
        for kind in names.SEGMENT_SUFFIXES:
            target = names.segment_file(self.files.directory, self.base_offset, kind) + new
            if kind == names.LOG_SUFFIX:
                self.files.files.rename(self.files.path(kind), target)
            else:
                self._indexes.rename(kind, target)
        self.files.suffix = new

    def move_to(self, directory: str) -> None:
        """Take over the new path of a directory that was renamed."""
        self.files.directory = directory
        self._indexes.update_paths()

    def close_handlers(self) -> None:
        """Close the files and write nothing, as the disk may have failed."""
        self._indexes.close()
        self._indexes.close_transactions()
        self.records.close()

    def seal(self) -> None:
        """Bring the files to the state of a cleanly closed segment; `sync` and `close_handlers` follow."""
        if self._max_timestamp is not None:
            self.append_largest_timestamp()
        self._indexes.keep_open(False)
        self.records.trim()

    def sync(self) -> None:
        """Make all files of the segment durable. Raises OSError."""
        self.records.sync()
        self._indexes.sync()
