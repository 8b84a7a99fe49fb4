"""The log of one partition: Kafka's UnifiedLog and LocalLog.

Rules. `log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset`, and after a restart
neither the end nor the leader epochs are behind what was flushed. There is always an active segment. An
append either is in the log as a whole or left no trace: a write that fails is cut back; a full disk is then
KAFKA_STORAGE_ERROR and nothing more, any other I/O error is LogDirError and ends the directory. Nothing here
syncs, but `flush`, `close` and what the loader does: the loop captures a FlushJob and a thread runs it.

Files that go are renamed to `.deleted` at once and removed after `file.delete.delay.ms` by whoever runs
`deletions_due`; a slice that a reader holds stays readable.

Not here: appending (`append`), reading (`reader`), retention and truncation (`maintenance`),
loading (`loader`), what a flush captures (`flush`), the topic id's file (`partition_metadata`).
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from kpybroker.config.topic import LogConfig
from kpybroker.core.log.producer_state import (
    NO_VERIFICATION,
    PRODUCER_ID_EXPIRATION_MS_DEFAULT,
    AppendOrigin,
    ProducerState,
    VerificationGuard,
)
from kpybroker.core.replication.leader_epochs import EpochEndOffset, LeaderEpochCache
from kpybroker.storage.disk import names
from kpybroker.storage.disk.deletions import PendingDeletions
from kpybroker.storage.disk.errors import LogDirError, is_disk_full
from kpybroker.storage.disk.files import Files
from kpybroker.storage.log import append, flush, maintenance, partition_metadata, reader
from kpybroker.storage.log.append import AppendInfo
from kpybroker.storage.log.flush import EpochCheckpoint, FlushJob, Unflushed
from kpybroker.storage.log.loader import LogLoader, make_directory, read_epochs
from kpybroker.storage.log.reader import FetchSlice, Search
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_list import LogSegments, open_segment
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.append_rules import append_rules
from kpybroker.wire.records.batch import Buffer
from kpybroker.wire.records.validate import ValidatedRecords

logger = logging.getLogger("kafka.log.UnifiedLog")

P = ParamSpec("P")
R = TypeVar("R")


class Log:
    """One partition's log, loaded. All methods run on the loop; see `flush` for threads."""

    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        *,
        now_ms: int,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        had_clean_shutdown: bool = True,
        cleaner_offset: int | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT,
        verification_enabled: bool = True,
        walk_records: bool = False,
        random_below: Callable[[int], int] = random.randrange,
    ) -> None:
        """Open the log in a directory, which is made if missing. Raises OSError, or KafkaError(CORRUPT_MESSAGE) where a
        cleanly closed log cannot be read."""
        self.files = files
        self.directory = directory
        self.log_dir = os.path.dirname(directory)
        self.partition = names.parse_dir_name(directory)
        self.config = config
        self._walk_records = walk_records
        self.rules = append_rules(config, check_every_record=walk_records)
        self.is_future = directory.endswith(names.FUTURE_DIR_SUFFIX)
        self.verification_enabled = verification_enabled
        self._random_below = random_below
        made = make_directory(files, directory)
        # Neither may a directory be durable that another process made and never flushed.
        self.unflushed = Unflushed(has_new_directory=made or (not had_clean_shutdown and recovery_point == 0))
        epochs_path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
        self.epochs = LeaderEpochCache(read_epochs(files, epochs_path))
        self.epoch_checkpoint = EpochCheckpoint(epochs_path, self.epochs.version)
        loader = LogLoader(
            files,
            directory,
            config,
            self.epochs,
            producer_id_expiration_ms,
            had_clean_shutdown,
            log_start_offset,
            recovery_point,
            now_ms,
            self._roll_jitter_ms(),
            cleaner_offset or 0,
        )
        loader.load()
        self._take_over(loader)
        self.cleaner_offset = cleaner_offset  # cleaned up to here, as the cleaner's checkpoint says; None for never
        self.cleaning: Callable[[], None] | None = None  # what calls off the cleaning that is under way
        self.last_flush_ms = now_ms
        self.is_closed = False
        self.truncations = 0
        self._pending_deletions = PendingDeletions()
        self.schedule_deletion(loader.deleted_paths, now_ms)
        self.topic_id = partition_metadata.read_topic_id(files, directory)
        if self.topic_id is not None and self.unflushed.has_new_directory:
            self.unflushed.paths.append(partition_metadata.path_in(directory))

    def _take_over(self, loader: LogLoader) -> None:
        """What was loaded: from here on it is the log's, and the loader is done."""
        self.segments_map: LogSegments = loader.segments
        self.snapshots = loader.snapshots
        self.producers: ProducerState = loader.snapshots.state
        self.log_start_offset = loader.log_start_offset
        self.log_end_offset = loader.next_offset
        self.recovery_point = max(loader.recovery_point, self.log_start_offset)
        self.recovery_point_max = maintenance.NO_LIMIT  # where a truncation that was announced will cut
        self.high_watermark = self.log_start_offset
        self.bound_cache = maintenance.NOTHING_CACHED
        self.first_unstable_offset: int | None = None
        self.update_first_unstable_offset()

    def __repr__(self) -> str:
        return (
            f"Log(dir={self.directory}, topic={self.partition.topic}, partition={self.partition.partition}, "
            f"highWatermark={self.high_watermark}, lastStableOffset={self.last_stable_offset}, "
            f"logStartOffset={self.log_start_offset}, logEndOffset={self.log_end_offset})"
        )

    # --- what it is

    @property
    def active_segment(self) -> LogSegment:
        return self.segments_map.active

    def segments(self) -> list[LogSegment]:
        return self.segments_map.all()

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.segments_map.size

    @property
    def last_stable_offset(self) -> int:
        """Everything below is decided: committed, aborted, or of no transaction."""
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None or unstable > self.high_watermark else unstable

    def update_config(self, config: LogConfig) -> None:
        """Take over a changed configuration; new segments and the next checks go by it."""
        if self.config.compact and not config.compact:
            self.abort_cleaning()
        self.config = config
        self.rules = append_rules(config, check_every_record=self._walk_records)

    def _roll_jitter_ms(self) -> int:
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._random_below(jitter) if jitter > 0 else 0

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Remember the topic's id; INCONSISTENT_TOPIC_ID where it has another one. Zeros mean that there is none."""
        partition_metadata.assign_topic_id(self, topic_id)

    # --- appending (storage/append)

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard = NO_VERIFICATION,
        request_version: int | None = None,
        checked: ValidatedRecords | None = None,
    ) -> AppendInfo:
        """Append batches, giving them offsets and the leader epoch.

        Stamps `records` in place where it is writable. `checked` is what validating them for offset 0 gave, where that
        was done beforehand (`wire.records.slow_validation`). Raises KafkaError as Kafka does, LogDirError for the disk.
        """
        return append.append_as_leader(
            self, records, leader_epoch, now_ms, origin, verification_guard, request_version, checked
        )

    def append_as_coordinator(
        self,
        records: Buffer,
        leader_epoch: int,
        *,
        now_ms: int,
        verification_guard: VerificationGuard = NO_VERIFICATION,
    ) -> AppendInfo:
        """Append what a coordinator of this broker wrote: no sequence numbers, control batches allowed."""
        return append.append_as_leader(
            self, records, leader_epoch, now_ms, AppendOrigin.COORDINATOR, verification_guard, None
        )

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> AppendInfo:
        """Append batches as the leader wrote them.

        Raises KafkaError(CORRUPT_MESSAGE), UnexpectedAppendOffsetError, LogDirError.
        """
        return append.append_as_follower(self, records, now_ms)

    def io_error(self, error: OSError) -> Exception:
        """What an OSError means: a full disk fails the one operation, anything else the directory."""
        if is_disk_full(error):
            logger.error("No space left for %s: %s", self.partition, error)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No space left in {self.log_dir} for {self.partition}")
        return LogDirError(self.log_dir, error)

    # --- rolling

    def roll(self, now_ms: int, expected_next_offset: int = 0) -> LogSegment:
        """Close the active segment and begin a new one at the log end, with a producer snapshot. Raises OSError."""
        base_offset = max(expected_next_offset, self.log_end_offset)
        active = self.segments_map.active
        if base_offset == active.base_offset:
            if active.size > 0:
                raise ValueError(f"Trying to roll a new log segment at {base_offset} while it already exists")
            return active
        assert base_offset > active.base_offset, "a roll goes forward"
        maintenance.remove_files_in_the_way(self.files, self.directory, base_offset)
        active.become_inactive()
        try:
            self.segments_map.add(self.new_segment(base_offset, now_ms))
        except OSError:
            # Else the next start would take a part of it for the end of the log, and the records after it for none.
            maintenance.remove_files_in_the_way(self.files, self.directory, base_offset)
            raise
        self.unflushed.rolled.append(active)
        # The snapshot's offset is to be the segment's base, which may be above the state's end after a gap.
        self.producers.map_end_offset = base_offset
        self.snapshots.take(sync=False)
        logger.info("Rolled new log segment at offset %d in %s", base_offset, self.directory)
        return self.segments_map.active

    def new_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        return open_segment(
            self.files,
            self.directory,
            base_offset,
            self.config,
            now_ms=now_ms,
            roll_jitter_ms=self._roll_jitter_ms(),
            create=True,
        )

    # --- high watermark and stability

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, kept between log start and log end; the value set."""
        if high_watermark > self.log_end_offset:
            high_watermark = self.log_end_offset
        elif high_watermark < self.log_start_offset:
            high_watermark = self.log_start_offset
        self.high_watermark = high_watermark
        if self.first_unstable_offset is not None:
            self.producers.on_high_watermark_updated(high_watermark)
            self.update_first_unstable_offset()
        return high_watermark

    def maybe_increment_high_watermark(self, high_watermark: int) -> bool:
        """Move the high watermark forward only; whether it moved."""
        if high_watermark > self.log_end_offset:
            raise ValueError(f"High watermark {high_watermark} exceeds the log end offset {self.log_end_offset}")
        if high_watermark <= self.high_watermark:
            return False
        self.update_high_watermark(high_watermark)
        return True

    def update_first_unstable_offset(self) -> None:
        first = self.producers.first_unstable_offset
        self.first_unstable_offset = None if first is None else max(first, self.log_start_offset)

    # --- reading

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        max_offset: int | None = None,
        min_one_message: bool = True,
    ) -> FetchSlice:
        """Batches from an offset, below `max_offset` (the isolation bound; the log end where not given).

        Raises OFFSET_OUT_OF_RANGE; LogDirError.
        """
        bound = self.log_end_offset if max_offset is None else max_offset
        return self._reading(reader.read, start_offset, max_bytes, bound, min_one_message)

    def _reading(self, function: Callable[Concatenate[Log, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(self, *args, **kwargs)
        except OSError as error:
            raise LogDirError(self.log_dir, error) from error

    def aborted_transactions(self, fetch_offset: int, fetched: FetchSlice) -> list[AbortedTxn]:
        """What a read_committed consumer must know to read a slice; from `fetch_offset`, the slice's start offset."""
        assert fetch_offset == fetched.start_offset
        return self._reading(reader.aborted_transactions, fetched)

    def collect_aborted_transactions(self, start_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        """Aborted transactions in a range of offsets."""
        return self._reading(reader.collect_aborted, start_offset, upper_bound_offset)

    def search_timestamp(self, timestamp: int) -> Search:
        """For the first record at or after a time. What it reads later raises OSError."""
        return self._reading(reader.search_timestamp, timestamp)

    def search_max_timestamp(self) -> Search:
        """For the first record with the largest timestamp."""
        return self._reading(reader.search_max_timestamp)

    def legacy_offsets_before(self, timestamp: int, limit: int, now_ms: int) -> list[int]:
        """ListOffsets version 0."""
        return self._reading(reader.legacy_offsets_before, timestamp, limit, now_ms)

    # --- leader epochs

    @property
    def latest_epoch(self) -> int:
        """-1 where there is none."""
        return self.epochs.latest_epoch

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """A leader begins at an offset."""
        self.epochs.assign(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """(epoch, end offset), (-1, -1) where it is unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """-1 where it is unknown."""
        epoch = self.epochs.epoch_for_offset(offset)
        return -1 if epoch is None else epoch

    @property
    def earliest_epoch(self) -> int:
        """The log start's epoch for ListOffsets; -1 where the first known one begins after it."""
        first = self.epochs.earliest_entry
        return first.epoch if first is not None and first.start_offset <= self.log_start_offset else -1

    # --- producers

    def start_verification(self, producer_id: int, sequence: int, epoch: int, now_ms: int) -> VerificationGuard:
        """Begin to verify a transactional produce (KIP-890); NO_VERIFICATION where none is needed."""
        return self.producers.start_verification(producer_id, sequence, epoch, now_ms)

    def has_ongoing_transaction(self, producer_id: int) -> bool:
        return self.producers.has_ongoing_transaction(producer_id)

    def remove_expired_producers(self, now_ms: int) -> None:
        self.producers.remove_expired(now_ms)

    # --- flushing

    @property
    def has_unflushed(self) -> bool:
        unflushed = self.unflushed
        return (
            bool(unflushed.rolled or unflushed.paths or self.snapshots.unsynced)
            or self.log_end_offset > self.recovery_point
        )

    def prepare_flush(self) -> FlushJob:
        """Capture everything that is not yet durable, up to the log end. See `flush`. Raises LogDirError."""
        return flush.prepare(self)

    def mark_flushed(self, offset: int) -> None:
        """A flush job is complete."""
        self.recovery_point = max(self.recovery_point, min(offset, self.recovery_point_max))

    def flush(self, now_ms: int | None = None) -> None:
        """Make everything durable, here and now. Raises LogDirError, KAFKA_STORAGE_ERROR."""
        job = self.prepare_flush()
        job.run()
        job.complete()
        if now_ms is not None:
            self.last_flush_ms = now_ms

    # --- truncation, retention, deletion (storage/maintenance)

    def prepare_truncation(self, offset: int) -> None:
        """Hold the recovery point down until the log is cut at an offset (`LogManager.prepare_truncation`)."""
        self.recovery_point_max = offset
        self.recovery_point = min(self.recovery_point, offset)

    def truncate_to(self, target_offset: int, *, now_ms: int) -> bool:
        """Cut the log so that it ends at or before an offset; whether anything was above it."""
        return maintenance.whole_or_offline(self, maintenance.truncate_to, target_offset, now_ms)

    def truncate_fully_and_start_at(self, new_offset: int, *, now_ms: int, log_start_offset: int | None = None) -> None:
        """Remove everything and begin anew at an offset."""
        maintenance.whole_or_offline(
            self, maintenance.truncate_fully_and_start_at, new_offset, now_ms, log_start_offset
        )

    def increment_log_start_offset(self, offset: int) -> bool:
        """Forget what is below an offset; OFFSET_OUT_OF_RANGE where it is above the high watermark."""
        return maintenance.increment_log_start_offset(self, offset)

    def delete_old_segments(self, now_ms: int, *, below: int = maintenance.NO_LIMIT) -> int:
        """Remove some of the segments that begin below an offset and that time, size or the log start offset make
        superfluous; how many, and 0 where there are no more.
        """
        return maintenance.guarded(self, maintenance.delete_old_segments, now_ms, below)

    def abort_cleaning(self) -> None:
        """Call off the cleaning that is under way, if any: its segments are about to change or to go."""
        abort, self.cleaning = self.cleaning, None
        if abort is not None:
            logger.info("The cleaning for partition %s is aborted", self.partition)
            abort()

    def schedule_deletion(self, paths: list[str], now_ms: int) -> None:
        if paths:
            self._pending_deletions.add(now_ms + self.config.file_delete_delay_ms, paths)

    def deletions_due(self, now_ms: int) -> list[str]:
        """Paths whose delay is over; the caller removes them, in a thread if it likes."""
        return self._pending_deletions.take_due(now_ms)

    # --- the end

    def rename_directory(self, name: str) -> None:
        """Give the log's directory another name (deletion, stray, future). Raises LogDirError, KAFKA_STORAGE_ERROR."""
        self.abort_cleaning()
        target = f"{self.log_dir}/{name}"
        try:
            self.files.rename(self.directory, target)
        except OSError as error:
            raise self.io_error(error) from error
        self.directory = self.snapshots.directory = target
        self.epoch_checkpoint.path = f"{target}/{names.LEADER_EPOCH_CHECKPOINT}"
        for unsynced in (self.unflushed.paths, self.snapshots.unsynced):
            unsynced[:] = [f"{target}/{os.path.basename(path)}" for path in unsynced]
        self._pending_deletions = PendingDeletions()  # they go with the directory, or at the next start
        for segment in self.segments_map.all():
            segment.move_to(target)

    def close(self) -> None:
        """Leave everything as a clean stop does: sealed segments, snapshot, epochs, all of it durable.

        Raises LogDirError; KAFKA_STORAGE_ERROR on a full disk: then its records are durable and it is closed, but has
        to be recovered.
        """
        if self.is_closed:
            return
        for job in list(self.unflushed.jobs):
            job.run()
            job.check()
        self.unflushed.rolled = segments = self.segments_map.all()
        no_space: KafkaError | None = None
        try:
            self.snapshots.take(sync=True)
            for segment in segments:
                segment.seal()
        except OSError as error:
            failure = self.io_error(error)
            if not isinstance(failure, KafkaError):
                raise failure from error
            no_space = failure
        try:
            self.flush()
        except KafkaError as error:
            no_space = error
        self.close_handlers()
        if no_space is not None:
            raise no_space

    def close_handlers(self) -> None:
        """Close files and write nothing: the directory is offline, or to be deleted."""
        if self.is_closed:
            return
        self.abort_cleaning()
        self.is_closed = True
        for segment in self.segments_map.all():
            segment.close_handlers()
