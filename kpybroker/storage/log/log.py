"""The log of one partition: Kafka's UnifiedLog and LocalLog.

Rules. `log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset`, and after a restart neither the end
nor the leader epochs are behind what was flushed. There is always an active segment. An append either is in the log as
a whole or left no trace: a write that fails is cut back. A full disk is then KAFKA_STORAGE_ERROR and nothing more; any
other I/O error is LogDirError and ends the directory. Only `flush`, `close` and the loader sync: the loop captures a
FlushJob, and a thread runs it.

Files to be removed are renamed to `.deleted` at once and removed after `file.delete.delay.ms` by the caller of
`deletions_due`; a slice that a reader holds stays readable.

Not here: the state and what all operations share (`log_state`), appending (`append`), reading (`reader`), retention and
truncation (`maintenance`), loading (`loader`), what a flush captures (`flush`), the topic id's file
(`partition_metadata`).
"""

from __future__ import annotations

import logging
import os
from typing import ParamSpec, TypeVar

from kpybroker.core.log.verification import VerificationGuard
from kpybroker.core.replication.leader_epochs import EpochEndOffset
from kpybroker.storage.disk import checkpoints, names
from kpybroker.storage.disk.files import write_file
from kpybroker.storage.log import append, flush, maintenance, partition_metadata, reader
from kpybroker.storage.log.append import AppendInfo
from kpybroker.storage.log.log_state import LogState
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer

logger = logging.getLogger("kafka.log.UnifiedLog")

P = ParamSpec("P")
R = TypeVar("R")


class Log(LogState):
    """One partition's log, loaded. All methods run on the loop; see `flush` for threads."""

    __slots__ = ()

    append_as_leader = append.append_as_leader
    append_as_follower = append.append_as_follower

    read = reader.read
    aborted_transactions = reader.aborted_transactions
    collect_aborted_transactions = reader.collect_aborted_transactions
    search_timestamp = reader.search_timestamp
    search_max_timestamp = reader.search_max_timestamp
    legacy_offsets_before = reader.legacy_offsets_before

    truncate_to = maintenance.truncate_to
    truncate_fully_and_start_at = maintenance.truncate_fully_and_start_at
    increment_log_start_offset = maintenance.increment_log_start_offset
    delete_old_segments = maintenance.delete_old_segments

    prepare_flush = flush.prepare

    def append_copied(self, records: Buffer, *, now_ms: int) -> AppendInfo:
        """As `append_as_follower`, for the log of a replica that catches up: an empty one may start within a batch.

        DeleteRecords moves a log's start there. The copy then begins where the batch does, until its own start is
        moved. Raises KafkaError(CORRUPT_MESSAGE), UnexpectedAppendOffsetError, LogDirError.
        """
        try:
            return self.append_as_follower(records, now_ms=now_ms)
        except append.UnexpectedAppendOffsetError as error:
            end = self.log_end_offset
            if not (end == self.log_start_offset and error.first_offset < end <= error.last_offset):
                raise
            self.truncate_fully_and_start_at(error.first_offset, now_ms=now_ms)
            return self.append_as_follower(records, now_ms=now_ms)

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Record the topic's id in `partition.metadata`; zeros mean that there is none.

        Raises INCONSISTENT_TOPIC_ID where the log has another id, KAFKA_STORAGE_ERROR, LogDirError.
        """
        if topic_id == ZERO_UUID or topic_id == self.topic_id:
            return
        if self.topic_id is not None:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"Tried to assign topic ID {checkpoints.uuid_to_text(topic_id)} to log for topic partition "
                f"{self.partition}, but log already contained topic ID {checkpoints.uuid_to_text(self.topic_id)}",
            )
        path = partition_metadata.path_in(self.directory)
        try:
            write_file(self.files, path, checkpoints.encode_partition_metadata(topic_id), sync=False)
        except OSError as error:
            raise self.io_error(error) from error
        self.topic_id = topic_id
        self.unflushed.names += (names.PARTITION_METADATA,)

    # --- leader epochs

    @property
    def latest_epoch(self) -> int:
        """The latest leader epoch; -1 where there is none."""
        return self.epochs.latest_epoch

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Record that a leader epoch begins at an offset."""
        self.epochs.assign(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """(epoch, end offset) for OffsetsForLeaderEpoch; (-1, -1) where the epoch is unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch of an offset; -1 where it is unknown."""
        epoch = self.epochs.epoch_for_offset(offset)
        return -1 if epoch is None else epoch

    @property
    def earliest_epoch(self) -> int:
        """The leader epoch at the log start offset, for ListOffsets; -1 where the first known one begins after it."""
        first = self.epochs.earliest_entry
        return first.epoch if first is not None and first.start_offset <= self.log_start_offset else -1

    # --- producers

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int, *, adds: bool = False
    ) -> VerificationGuard:
        """Begin to verify a transactional produce (KIP-890), or to add its partition.

        NO_VERIFICATION where its transaction is open here already. Raises INVALID_PRODUCER_EPOCH.
        """
        return self.producers.start_verification(producer_id, sequence, epoch, now_ms, adds=adds)

    def has_ongoing_transaction(self, producer_id: int) -> bool:
        """Whether a producer has an open transaction in this partition."""
        return self.producers.has_ongoing_transaction(producer_id)

    def remove_expired_producers(self, now_ms: int) -> None:
        """Forget producers that wrote nothing for `producer.id.expiration.ms`."""
        self.producers.remove_expired(now_ms)

    # --- flushing

    @property
    def has_unflushed(self) -> bool:
        """Whether a flush would have anything to make durable."""
        unflushed = self.unflushed
        return (
            bool(unflushed.rolled or unflushed.names or self.snapshots.unsynced)
            or self.log_end_offset > self.recovery_point
        )

    @property
    def is_dirty(self) -> bool:
        """Whether `close` has anything but leader epochs to sync: a log that was recovered has, even without a record
        to flush.
        """
        unflushed = self.unflushed
        return (
            self.has_unflushed
            or unflushed.has_new_directory
            or unflushed.has_renamed
            or any(segment.is_dirty for segment in self.segments())
        )

    def flush(self, now_ms: int | None = None) -> None:
        """Make everything durable, here and now. Raises LogDirError, KAFKA_STORAGE_ERROR."""
        job = self.prepare_flush()
        job.run()
        job.complete()
        if now_ms is not None:
            self.last_flush_ms = now_ms

    # --- truncation, retention, deletion

    def prepare_truncation(self, offset: int) -> None:
        """Keep the recovery point at or below an offset until the log is cut (`LogManager.prepare_truncation`)."""
        self.recovery_point_max = offset
        self.recovery_point = min(self.recovery_point, offset)

    # --- the end

    def rename_directory(self, name: str) -> None:
        """Rename the log's directory (deletion, stray, future). Raises LogDirError, KAFKA_STORAGE_ERROR."""
        self.abort_cleaning()
        target = f"{self.log_dir}/{name}"
        try:
            self.files.rename(self.directory, target)
        except OSError as error:
            raise self.io_error(error) from error
        self.directory = self.snapshots.directory = target
        self.epoch_checkpoint.directory = target
        self.snapshots.unsynced = tuple(f"{target}/{os.path.basename(path)}" for path in self.snapshots.unsynced)
        self._pending_deletions = None  # they go with the directory, or at the next start
        for segment in self.segments_map.all():
            segment.move_to(target)

    def seal(self) -> None:
        """Write what a closed log has, its leader epochs excepted, and sync nothing. A second call does nothing.

        Raises LogDirError; KAFKA_STORAGE_ERROR on a full disk.
        """
        for job in self.unflushed.jobs:
            job.run()
            job.check()
        segments = self.segments_map.all()
        self.unflushed.rolled = tuple(segments)
        try:
            self.snapshots.take(sync=False)
            for segment in segments:
                segment.seal()
        except OSError as error:
            raise self.io_error(error) from error

    def note_synced(self) -> None:
        """The file system was synced after `seal`: nothing is left to make durable but leader epochs."""
        self.unflushed.note_synced()
        self.snapshots.unsynced = ()
        for segment in self.segments():
            segment.note_synced()
        self.mark_flushed(self.log_end_offset)

    def close(self) -> None:
        """Leave everything as a clean stop does: sealed segments, snapshot, epochs, all of it durable.

        Raises LogDirError. KAFKA_STORAGE_ERROR on a full disk: then the log is closed and its records are durable, but
        the next start has to recover it.
        """
        if self.is_closed:
            return
        no_space: KafkaError | None = None
        try:
            self.seal()
        except KafkaError as error:
            no_space = error
        try:
            self.flush()
        except KafkaError as error:
            no_space = error
        self.close_handlers()
        if no_space is not None:
            raise no_space

    def close_handlers(self) -> None:
        """Close files and write nothing: the directory is offline, or is going to be deleted."""
        if self.is_closed:
            return
        self.abort_cleaning()
        self.is_closed = True
        for segment in self.segments_map.all():
            segment.close_handlers()
