"""The state of one loaded log, and the steps that all its operations share: rolling, the high watermark, I/O errors.

`Log` is this with its operations; they are functions in modules of their own, which take a `LogState`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from kpybroker.config.topic import LogConfig
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.replication.leader_epochs import LeaderEpochCache
from kpybroker.storage.disk import names
from kpybroker.storage.disk.deletions import PendingDeletions
from kpybroker.storage.disk.errors import LogDirError, is_disk_full
from kpybroker.storage.disk.files import Files, unlink_if_exists
from kpybroker.storage.log import partition_metadata
from kpybroker.storage.log.loader import LogLoader, make_directory, read_epochs
from kpybroker.storage.log.seen_log import UNSEEN
from kpybroker.storage.log.settings import DEFAULT_SETTINGS, NO_CHECKPOINTS, LogCheckpoints, LogSettings
from kpybroker.storage.log.unflushed import EpochCheckpoint, Unflushed
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.storage.segments.segment_list import LogSegments, open_segment
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.append_rules import append_rules

logger = logging.getLogger("kafka.log.UnifiedLog")

NOTHING_CACHED = (-1, -1, -1)
NO_LIMIT = 2**63 - 1


class LogState:
    """One partition's log, loaded. Everything runs on the loop.

    `rules` are those for appends. `truncations` counts cuts, so that a flush notices one. `bound_cache` is the position
    of the last isolation bound that a read looked up (offset, segment, position). `cleaner_offset` is None if never
    cleaned.
    """

    __slots__ = (
        "_pending_deletions",
        "_settings",
        "bound_cache",
        "cleaner_offset",
        "cleaning",
        "config",
        "directory",
        "epoch_checkpoint",
        "epochs",
        "files",
        "first_unstable_offset",
        "flush_times",
        "high_watermark",
        "is_closed",
        "is_future",
        "last_flush_ms",
        "log_dir",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producers",
        "recovery_point",
        "recovery_point_max",
        "rules",
        "seen",
        "segments_map",
        "snapshots",
        "topic_id",
        "truncations",
        "unflushed",
        "verification_enabled",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        *,
        now_ms: int,
        checkpoints: LogCheckpoints = NO_CHECKPOINTS,
        settings: LogSettings = DEFAULT_SETTINGS,
    ) -> None:
        """Open the log in a directory, which is created if missing.

        Raises OSError; KafkaError(CORRUPT_MESSAGE) where a cleanly closed log cannot be read.
        """
        self.files = files
        self.directory = directory
        self.log_dir = sys.intern(os.path.dirname(directory))
        self.partition = names.parse_dir_name(directory)
        self.config = config
        self._settings = settings
        self._note_config()
        self.flush_times = settings.flush_times
        self.rules = append_rules(config, check_every_record=settings.check_every_record)
        self.is_future = directory.endswith(names.FUTURE_DIR_SUFFIX)
        self.verification_enabled = settings.verification_enabled
        is_new = make_directory(files, directory)
        # A directory that another process created and never flushed may not be durable either.
        was_never_flushed = not checkpoints.had_clean_shutdown and checkpoints.recovery_point == 0
        self.unflushed = Unflushed(has_new_directory=is_new or was_never_flushed)
        epochs_path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
        epochs = read_epochs(files, epochs_path)
        self.epochs = LeaderEpochCache(epochs)
        self.epoch_checkpoint = EpochCheckpoint(directory, epochs)
        loader = LogLoader(
            files, directory, self.partition, config, self.epochs, settings, checkpoints, now_ms, self._roll_jitter_ms()
        )
        loader.load()
        self._set_loaded(loader)
        self.cleaner_offset = checkpoints.cleaner_offset  # cleaned up to here; None if never
        self.cleaning: Callable[[], None] | None = None  # cancels the cleaning that is in progress
        self.last_flush_ms = now_ms
        self.is_closed = False
        self.truncations = 0
        self._pending_deletions: PendingDeletions | None = None
        self.seen = UNSEEN
        self.schedule_deletion(loader.deleted_paths, now_ms)
        self.topic_id = partition_metadata.read_topic_id(files, directory)
        if self.topic_id is not None and self.unflushed.has_new_directory:
            self.unflushed.names += (names.PARTITION_METADATA,)

    def _set_loaded(self, loader: LogLoader) -> None:
        self.segments_map: LogSegments = loader.segments
        self.snapshots = loader.snapshots
        self.producers: ProducerState = loader.snapshots.state
        self.log_start_offset = loader.log_start_offset
        self.log_end_offset = loader.next_offset
        self.recovery_point = max(loader.recovery_point, self.log_start_offset)
        self.recovery_point_max = NO_LIMIT  # where an announced truncation will cut
        self.high_watermark = self.log_start_offset
        self.bound_cache = NOTHING_CACHED
        self.first_unstable_offset: int | None = None
        self.update_first_unstable_offset()
        self.check_order()

    def __repr__(self) -> str:
        return (
            f"Log(dir={self.directory}, topic={self.partition.topic}, partition={self.partition.partition}, "
            f"highWatermark={self.high_watermark}, lastStableOffset={self.last_stable_offset}, "
            f"logStartOffset={self.log_start_offset}, logEndOffset={self.log_end_offset})"
        )

    @property
    def active_segment(self) -> LogSegment:
        """The segment that takes appends: the last one."""
        return self.segments_map.active

    def segments(self) -> list[LogSegment]:
        """All segments, by base offset."""
        return self.segments_map.all()

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.segments_map.size

    @property
    def last_stable_offset(self) -> int:
        """The offset below which everything is committed, aborted, or of no transaction."""
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None or unstable > self.high_watermark else unstable

    def update_config(self, config: LogConfig) -> None:
        """Take over a changed configuration; new segments and the next checks use it."""
        if self.config.compact and not config.compact:
            self.abort_cleaning()
        self.config = config
        self._note_config()
        self.rules = append_rules(config, check_every_record=self._settings.check_every_record)

    def _roll_jitter_ms(self) -> int:
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._settings.random_below(jitter) if jitter > 0 else 0

    def abort_cleaning(self) -> None:
        """Cancel the cleaning that is in progress, if any: its segments are about to change or to be removed."""
        abort, self.cleaning = self.cleaning, None
        if abort is not None:
            logger.info("The cleaning for partition %s is aborted", self.partition)
            abort()

    def schedule_deletion(self, paths: list[str], now_ms: int) -> None:
        """Remove files after `file.delete.delay.ms`; they carry `.deleted` already."""
        if paths:
            if self._pending_deletions is None:
                self._pending_deletions = PendingDeletions()
            self._pending_deletions.add(now_ms + self.config.file_delete_delay_ms, paths)
            if self._settings.notices is not None:
                self._settings.notices.deleting[self] = None

    def deletions_due(self, now_ms: int) -> list[str]:
        """Paths whose delay is over; the caller removes them, in a thread if it likes."""
        return [] if self._pending_deletions is None else self._pending_deletions.take_due(now_ms)

    @property
    def has_deletions(self) -> bool:
        """Whether files are left to be removed later."""
        return self._pending_deletions is not None and not self._pending_deletions.is_empty

    def _note_config(self) -> None:
        if self.config.compact and self._settings.notices is not None:
            self._settings.notices.has_compacted = True

    def mark_flushed(self, offset: int) -> None:
        """Move the recovery point to an offset up to which a flush is complete."""
        self.recovery_point = max(self.recovery_point, min(offset, self.recovery_point_max))

    def io_error(self, error: OSError) -> Exception:
        """The exception for an OSError: a full disk fails this operation only, anything else the whole directory."""
        if is_disk_full(error):
            logger.error("No space left for %s: %s", self.partition, error)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No space left in {self.log_dir} for {self.partition}")
        return LogDirError(self.log_dir, error)

    # --- rolling

    def roll(self, now_ms: int, expected_next_offset: int = 0) -> LogSegment:
        """Close the active segment and start a new one at the log end offset, with a producer snapshot.

        Raises OSError.
        """
        base_offset = max(expected_next_offset, self.log_end_offset)
        active = self.segments_map.active
        if base_offset == active.base_offset:
            if active.size > 0:
                raise ValueError(f"Trying to roll a new log segment at {base_offset} while it already exists")
            return active
        assert base_offset > active.base_offset, "a roll goes forward"
        remove_files_in_the_way(self.files, self.directory, base_offset)
        active.become_inactive()
        try:
            self.segments_map.add(self.new_segment(base_offset, now_ms))
        except OSError:
            # Otherwise the next start takes part of it for the end of the log, and drops the records after it.
            remove_files_in_the_way(self.files, self.directory, base_offset)
            raise
        self.unflushed.rolled += (active,)
        # The snapshot gets the segment's base as its offset, which may be above the end of the state after a gap.
        self.producers.map_end_offset = base_offset
        self.snapshots.take(sync=False)
        logger.info("Rolled new log segment at offset %d in %s", base_offset, self.directory)
        return self.segments_map.active

    def new_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        """Create an empty segment, not yet part of the log. Raises OSError."""
        return open_segment(
            SegmentFiles(self.files, self.directory, base_offset),
            self.config,
            now_ms=now_ms,
            roll_jitter_ms=self._roll_jitter_ms(),
            create=True,
        )

    # --- high watermark and stability

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, kept between log start and log end offset; returns the value set."""
        if high_watermark > self.log_end_offset:
            high_watermark = self.log_end_offset
        elif high_watermark < self.log_start_offset:
            high_watermark = self.log_start_offset
        self.high_watermark = high_watermark
        if self.first_unstable_offset is not None:
            self.producers.on_high_watermark_updated(high_watermark)
            self.update_first_unstable_offset()
            self.check_order()
        return high_watermark

    def update_first_unstable_offset(self) -> None:
        """Take over the producer state's first unstable offset, not below the log start offset."""
        first = self.producers.first_unstable_offset
        self.first_unstable_offset = None if first is None else max(first, self.log_start_offset)

    def check_order(self) -> None:
        """Assert the first rule of `log`, after what moves more than one of its offsets.

        A plain append moves one end of it: there `append` and `Partition` compare that one.
        """
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark <= self.log_end_offset, (
            f"{self}: its offsets are not in order"
        )


def remove_files_in_the_way(files: Files, directory: str, base_offset: int) -> None:
    """Remove files with the names of a new segment, which a crash within a roll may have left."""
    for suffix in names.SEGMENT_SUFFIXES:
        path = names.segment_file(directory, base_offset, suffix)
        if unlink_if_exists(files, path):
            logger.warning("Newly rolled segment file %s already exists; deleting it first", path)
