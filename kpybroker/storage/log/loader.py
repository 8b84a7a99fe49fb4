"""Opening the log of one partition: leftovers, segments, recovery, producer state (Kafka's LogLoader).

The order is Kafka's, because each step relies on the one before:
1. remove `.deleted` and `.cleaned` files, and `.swap` files of an unfinished split (at or above a `.cleaned` one);
2. finish an interrupted swap: the other `.swap` files replace the segments in their range;
3. open the segments; one without an offset index, or with a corrupt transaction index, is recovered at once;
4. after an unclean stop, recover every segment from the one that holds the recovery point; at the first bad batch cut,
   and remove every segment after it;
5. bring leader epochs, log start offset and producer state into line with what is left.

A segment whose offsets its index cannot express (KAFKA-6264) is split, and the loading starts over at step 3.
The log removes the files marked `.deleted` later. Raises OSError.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from kpybroker.config.topic import LogConfig
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.replication.leader_epochs import EpochEntry, LeaderEpochCache
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_leader_epochs
from kpybroker.storage.disk.errors import CorruptCheckpointError, CorruptIndexError
from kpybroker.storage.disk.files import Files, make_dirs, read_file, unlink_if_exists
from kpybroker.storage.log.producer_snapshots import ProducerSnapshots
from kpybroker.storage.log.recovery import check_aborted, rebuild_producer_state, recover_segment, take_empty_snapshots
from kpybroker.storage.log.settings import LogCheckpoints, LogSettings
from kpybroker.storage.segments.overflow import SegmentOverflowError
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.storage.segments.segment_list import LogSegments, open_segment
from kpybroker.storage.segments.swap import split_overflowed_segment

logger = logging.getLogger("kafka.log.LogLoader")


@dataclass(slots=True)
class LogLoader:
    """Loads one log. After `load`, the fields are the parts of the log."""

    files: Files
    directory: str
    partition: TopicPartition
    config: LogConfig
    epochs: LeaderEpochCache
    settings: LogSettings
    checkpoints: LogCheckpoints
    now_ms: int
    roll_jitter_ms: int = 0
    log_start_offset: int = field(init=False)
    recovery_point: int = field(init=False)
    segments: LogSegments = field(default_factory=LogSegments)
    snapshots: ProducerSnapshots = field(init=False)
    _recovered: ProducerSnapshots | None = field(init=False, default=None)
    next_offset: int = 0
    deleted_paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log_start_offset, self.recovery_point = self.checkpoints.log_start_offset, self.checkpoints.recovery_point

    def load(self) -> None:
        """Run all steps. Raises OSError, and KafkaError(CORRUPT_MESSAGE) for damage in a cleanly closed log."""
        self._remove_leftovers_and_finish_swap()
        self._retry_on_overflow(self._load_segments)
        if self.directory.endswith(names.DELETE_DIR_SUFFIX):
            if not len(self.segments):
                self.segments.add(self._open_segment(0, create=True))
            self.recovery_point = 0
            self.next_offset = max(self.log_start_offset, self.segments.first.base_offset)
        else:
            self._retry_on_overflow(self._recover_log)
        self.segments.active.become_active()
        self.epochs.truncate_from_end(self.next_offset)
        # The earliest epoch may not have been written before a hard failure.
        self.epochs.truncate_from_start(self.log_start_offset)
        self.log_start_offset = max(self.log_start_offset, self.segments.first.base_offset)
        self.snapshots = self._snapshots_at(self.next_offset)
        self.snapshots.remove_stray(self.segments.base_offsets)
        if self.snapshots.latest_offset is None and self.checkpoints.had_clean_shutdown:
            take_empty_snapshots(self.snapshots, self.segments, self.next_offset)
        else:
            self._rebuild_producer_state(self.snapshots, self.next_offset)
        for segment in self.segments.all():
            segment.rest()

    def _rebuild_producer_state(self, snapshots: ProducerSnapshots, end_offset: int) -> None:
        start = self.log_start_offset
        rebuild_producer_state(snapshots, self.segments, start, end_offset, now_ms=self.now_ms, sync=True)

    def _new_snapshots(self) -> ProducerSnapshots:
        state = ProducerState(self.partition, self.settings.producer_id_expiration_ms)
        return ProducerSnapshots(self.files, self.directory, state)

    def _snapshots_at(self, offset: int) -> ProducerSnapshots:
        """The state that recovery left at this offset, if it got that far; else an empty one.

        A snapshot has only each producer's last batch, but after a crash several unacknowledged ones may be sent again.
        """
        recovered, self._recovered = self._recovered, None
        if recovered is not None and recovered.state.map_end_offset == offset:
            return recovered
        return self._new_snapshots()

    def _open_segment(self, base_offset: int, *, create: bool = False, suffix: str = "") -> LogSegment:
        return open_segment(
            SegmentFiles(self.files, self.directory, base_offset, suffix),
            self.config,
            now_ms=self.now_ms,
            roll_jitter_ms=self.roll_jitter_ms,
            create=create,
        )

    def _file_names(self) -> list[str]:
        entries = self.files.listdir(self.directory)
        for entry in entries:
            if entry.is_link:
                raise OSError(errno.ELOOP, names.IS_LINK, f"{self.directory}/{entry.name}")
        return sorted(entry.name for entry in entries if not entry.is_dir)

    def _unlink(self, name: str) -> None:
        unlink_if_exists(self.files, f"{self.directory}/{name}")

    def _remove_leftovers_and_finish_swap(self) -> None:
        found = self._file_names()
        cleaned = [name for name in found if name.endswith(names.CLEANED_SUFFIX)]
        swap = [name for name in found if name.endswith(names.SWAP_SUFFIX)]
        minimum_cleaned = min((_offset(name) for name in cleaned), default=None)
        for name in found:
            if name.endswith((names.DELETED_SUFFIX, ".tmp")):
                self._unlink(name)
        for name in list(swap):
            if minimum_cleaned is not None and _offset(name) >= minimum_cleaned:
                self._unlink(name)
                swap.remove(name)
        for name in cleaned:
            self._unlink(name)
        if swap:
            self._finish_swap(swap)

    def _finish_swap(self, swap: list[str]) -> None:
        """Remove the segments that the `.swap` ones replace, then rename those."""
        low: int | None = None
        high = -1
        for name in swap:
            if not name.endswith(names.LOG_SUFFIX + names.SWAP_SUFFIX):
                continue
            segment = self._open_segment(_offset(name), suffix=names.SWAP_SUFFIX)
            logger.info("Found log file %s from interrupted swap operation, which is recoverable.", name)
            low = segment.base_offset if low is None else min(low, segment.base_offset)
            high = max(high, segment.next_offset())
            segment.close_handlers()
        for name in self._file_names():
            offset = names.offset_of(name)
            if name in swap or offset is None or low is None:
                continue
            if low <= offset < high:
                logger.info("Deleting segment files %s that is compacted but has not been deleted yet.", name)
                self._unlink(name)
        for name in swap:
            path = f"{self.directory}/{name}"
            self.files.rename(path, names.replace_suffix(path, names.SWAP_SUFFIX, ""))
        self.files.sync_dir(self.directory)

    def _retry_on_overflow(self, step: Callable[[], None]) -> None:
        while True:
            try:
                step()
                return
            except SegmentOverflowError as error:
                logger.info("Caught segment overflow error: %s. Split segment and retry.", error)
                self.deleted_paths += split_overflowed_segment(
                    self.files, self.directory, error.segment, self.segments, self.config, self.now_ms
                )

    def _load_segments(self) -> None:
        for segment in self.segments.all():
            segment.close_handlers()
            self.segments.remove(segment.base_offset)
        found = self._file_names()
        bases = [_offset(name) for name in found if names.is_log_file(name) and names.offset_of(name) is not None]
        for name in found:
            offset = names.offset_of(name)
            if offset is not None and names.is_index_file(name) and offset not in bases:
                logger.warning("Found an orphaned index file %s, with no corresponding log file.", name)
                self._unlink(name)
        unflushed_from = max((base for base in bases if base <= self.recovery_point), default=0)
        for base in bases:
            segment = self._open_segment(base)
            if self.checkpoints.had_clean_shutdown or base < unflushed_from:
                self._check_indexes(segment, set(found))
            self.segments.add(segment)

    def _check_indexes(self, segment: LogSegment, present: set[str]) -> None:
        """Check the indexes of a segment that is not going to be recovered anyway."""
        base = f"{segment.base_offset:020d}"
        try:
            if base + names.INDEX_SUFFIX not in present:
                raise CorruptIndexError("the offset index file does not exist")
            segment.txn_index.sanity_check()
            if not self._may_be_compacted(segment):  # the cleaner takes transactions out of the log
                check_aborted(segment, self.segments)
            if base + names.TIME_INDEX_SUFFIX not in present:
                # Kafka makes an empty one, as logs older than 0.10.1 have none, and finds nothing there by time.
                logger.warning("Rebuilding the time index of %s, which does not exist", segment)
                segment.rebuild_indexes()
        except CorruptIndexError as error:
            logger.error("Recovering segment %s and rebuilding index files: %s", segment.records.path, error)
            self.segments.add(segment)
            self._recover_segment(segment)

    def _may_be_compacted(self, segment: LogSegment) -> bool:
        """The cleaner's checkpoint may be older than its last swap, or lost."""
        return self.config.compact or segment.base_offset < (self.checkpoints.cleaner_offset or 0)

    def _recover_segment(self, segment: LogSegment) -> int:
        """Recover one segment, with the producer state that the segments before it leave."""
        snapshots = self._snapshots_at(segment.base_offset)
        self._rebuild_producer_state(snapshots, segment.base_offset)
        removed = recover_segment(segment, snapshots, self.epochs, may_overflow=self._may_be_compacted(segment))
        snapshots.take(sync=True)  # so that the next segment need not replay this one
        self._recovered = snapshots
        return removed

    def _recover_log(self) -> None:
        if not self.checkpoints.had_clean_shutdown:
            self._recover_unflushed()
        end_offset = self._delete_all_if_behind_log_start()
        if not len(self.segments):
            self.segments.add(self._open_segment(self.log_start_offset, create=True))
        if self.checkpoints.had_clean_shutdown and end_offset is not None:
            if end_offset < self.recovery_point:
                path = self.segments.active.records.path
                logger.error("%s was closed at offset %d and ends at %d", path, self.recovery_point, end_offset)
            self.recovery_point = self.next_offset = end_offset
            return
        if end_offset is None:
            end_offset = self.segments.active.next_offset()
        # Only a flush moves the recovery point forward: what was just recovered may not be on the device.
        self.recovery_point = min(self.recovery_point, end_offset)
        self.next_offset = end_offset

    def _recover_unflushed(self) -> None:
        unflushed = self.segments.from_offset(self.recovery_point)
        if unflushed:
            # A truncation lowers the recovery point at once, the epochs on file only with the next flush: the entries
            # for these segments may be of removed batches. The batches that are there add them again.
            self.epochs.truncate_from_end(unflushed[0].base_offset)
        for number, segment in enumerate(unflushed):
            logger.info(
                "Recovering unflushed segment %d. %d/%d recovered for %s.",
                segment.base_offset,
                number,
                len(unflushed),
                self.directory,
            )
            removed = self._recover_segment(segment)
            following = unflushed[number + 1 :]
            if removed or (following and self._lacks_its_end(segment, following[0])):
                logger.warning(
                    "Corruption found in segment %s, truncating to offset %d",
                    segment.records.path,
                    segment.next_offset(),
                )
                self._remove_segments(following)
                return

    def _lacks_its_end(self, segment: LogSegment, following: LogSegment) -> bool:
        """A power cut may remove the end of one segment and leave the next one (Kafka would serve the hole).

        Segments follow each other without a gap until they are compacted, which the checkpoint records only afterwards.
        """
        return not self._may_be_compacted(segment) and segment.next_offset() < following.base_offset

    def _delete_all_if_behind_log_start(self) -> int | None:
        """The log end offset; None where there are no segments, or none that reach the log start offset."""
        if not len(self.segments):
            return None
        end_offset = self.segments.active.next_offset()
        if end_offset >= self.log_start_offset:
            return end_offset
        logger.warning(
            "Deleting all segments because logEndOffset (%d) is smaller than logStartOffset %d. "
            "This could happen if segment files were deleted from the file system.",
            end_offset,
            self.log_start_offset,
        )
        self._remove_segments(self.segments.all())
        self.epochs.clear()
        self._new_snapshots().truncate_fully_and_start_at(self.log_start_offset)
        return None

    def _remove_segments(self, segments: list[LogSegment]) -> None:
        """Remove segments from the log and rename their files, which are deleted after the usual delay."""
        snapshots = self._new_snapshots()
        for segment in segments:
            logger.info("Deleting segment as part of log recovery: %s", segment)
            self.segments.remove(segment.base_offset)
            segment.change_suffix("", names.DELETED_SUFFIX)
            segment.close_handlers()
            self.deleted_paths += segment.files.paths()
            snapshot = snapshots.mark_deleted(segment.base_offset)
            if snapshot is not None:
                self.deleted_paths.append(snapshot)


def _offset(name: str) -> int:
    offset = names.offset_of(name)
    if offset is None:
        raise OSError(f"File {name} should begin with an offset")
    return offset


def make_directory(files: Files, directory: str) -> bool:
    """Create a partition's directory, which the first flush makes durable; False if it existed."""
    make_dirs(files, os.path.dirname(directory))
    try:
        files.mkdir(directory)
    except FileExistsError:
        return False
    return True


def read_epochs(files: Files, path: str) -> list[EpochEntry]:
    """The leader epochs in a checkpoint, none if it is missing.

    Raises OSError if damaged, so that epochs never go back.
    """
    data = read_file(files, path)
    if not data:
        return []
    try:
        return decode_leader_epochs(data, path)
    except CorruptCheckpointError as error:
        raise OSError(errno.EIO, str(error)) from error
