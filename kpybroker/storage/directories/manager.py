"""All logs of a broker, over all its log directories (Kafka's LogManager).

Order at start: `LogManager(...)` opens the directories (`log_dirs`); the broker learns its cluster id;
`dirs.check_meta` and `dirs.write_meta`; `load`. At the end `shutdown`. In between the broker runs, at Kafka's
intervals, `cleanup_logs`, `deletions_due`, `flush_jobs` and the checkpoints; everything that syncs is a job for a
thread.

`take_offline` takes a directory that failed out of service: its logs are closed and forgotten. The clean-shutdown
marker is written only where every log closed without error.

Not here: the directories themselves (`log_dirs`, `log_dir`), what the checkpoints hold (`offset_checkpoints`), how
files are deleted (`deletions`).
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from kpybroker.config.topic import LogConfig
from kpybroker.core.topic_names import partition_invalid_reason
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.metrics.histogram import Histogram
from kpybroker.storage.directories.closing import close_all
from kpybroker.storage.directories.log_dir import LogDirectory, absolute
from kpybroker.storage.directories.log_dirs import LogDirs
from kpybroker.storage.directories.offset_checkpoints import OFFSET_OF, checkpoint_job
from kpybroker.storage.directories.presence import Presence
from kpybroker.storage.disk import deletions, names
from kpybroker.storage.disk.deletions import Job, PendingDeletions
from kpybroker.storage.disk.errors import DuplicateLogError, LogDirError, failing_takes_offline, is_disk_full
from kpybroker.storage.disk.files import Files
from kpybroker.storage.log.flush import FlushJob
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.settings import DEFAULT_SETTINGS, LogCheckpoints, LogNotices, LogSettings
from kpybroker.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafka.log.LogManager")

ConfigFor = Callable[[str], LogConfig]
"""A topic's configuration, by its name."""


class LogManager:
    """The logs by partition. Iterating yields them all."""

    def __init__(
        self,
        files: Files,
        log_dirs: Sequence[str],
        settings: LogSettings = DEFAULT_SETTINGS,
        *,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """Open the directories. Raises as LogDirs."""
        self._files = files
        self.flush_times = Histogram(0.001)
        """How long flushes took, in milliseconds."""
        self._notices = LogNotices()
        self._settings = settings._replace(flush_times=self.flush_times, notices=self._notices)
        self._new_id = new_id
        self.dirs = LogDirs(files, log_dirs)
        self.presence = Presence(files)
        self._logs: dict[TopicPartition, Log] = {}
        self._futures: dict[TopicPartition, Log] = {}
        self._to_delete = PendingDeletions()  # renamed directories of logs
        self._renamed_in: set[str] = set()  # log directories with deletions that are not durable yet
        self._reserved: dict[TopicPartition, str] = {}

    # --- loading

    def load(self, config_for: ConfigFor, now_ms: int) -> None:
        """Open every log. A directory whose log cannot be opened goes offline; LogDirError where none is left."""
        for directory in list(self.dirs.live.values()):
            try:
                self._load_directory(directory, config_for, now_ms)
            except (OSError, KafkaError) as error:
                self.take_offline(directory.path, error)
        if not self.dirs.live:
            raise LogDirError(", ".join(self.dirs.configured), "all log dirs have failed")

    def _load_directory(self, directory: LogDirectory, config_for: ConfigFor, now_ms: int) -> None:
        directory.take_clean_shutdown_marker()
        recovery_points = directory.read_offsets(names.RECOVERY_POINT_CHECKPOINT)
        start_offsets = directory.read_offsets(names.LOG_START_OFFSET_CHECKPOINT)
        high_watermarks = directory.read_offsets(names.HIGH_WATERMARK_CHECKPOINT)
        cleaner_offsets = directory.read_offsets(names.CLEANER_OFFSET_CHECKPOINT)
        found = directory.partition_directories()
        if found and not directory.had_clean_shutdown:
            logger.info(
                "Recovering %d logs from %s since no clean shutdown file was found",
                len(found),
                directory.path,
            )
        for name in found:
            path = directory.file(name)
            partition = names.parse_dir_name(path)
            if name.endswith(names.DELETE_DIR_SUFFIX):
                self._to_delete.add(now_ms, [path])
                continue
            if name.endswith(names.STRAY_DIR_SUFFIX):
                logger.warning("Found stray log: %s", path)
                continue
            log = Log(
                self._files,
                path,
                config_for(partition.topic),
                now_ms=now_ms,
                checkpoints=LogCheckpoints(
                    start_offsets.get(partition, 0),
                    recovery_points.get(partition, 0),
                    cleaner_offsets.get(partition),
                    directory.had_clean_shutdown,
                ),
                settings=self._settings,
            )
            self._add_loaded(log)
            if not log.is_future:
                log.update_high_watermark(high_watermarks.get(partition, 0))
        self._warn_of_missing(directory, {**high_watermarks, **recovery_points})
        directory.is_loaded = True

    def _warn_of_missing(self, directory: LogDirectory, known: Mapping[TopicPartition, int]) -> None:
        """A directory that was taken away while no broker ran; or of a topic deleted shortly before a crash."""
        for partition, offset in known.items():
            log = self._logs.get(partition)
            if offset > 0 and (log is None or log.log_dir != directory.path) and partition not in self._futures:
                logger.warning(
                    "The checkpoints of %s have offset %d of %s, and it has no directory there: its records are gone, "
                    "unless it was deleted or moved shortly before a crash",
                    *(directory.path, offset, partition),
                )

    def _add_loaded(self, log: Log) -> None:
        logs, partition = self._futures if log.is_future else self._logs, log.partition
        other = logs.get(partition)
        if other is not None:
            log.close_handlers()
            raise DuplicateLogError(
                f"Duplicate log directories for {partition} are found in both {log.directory} and {other.directory}. "
                "Recover broker from this failure by manually deleting one of the two directories for this partition."
            )
        logs[partition] = log

    # --- which logs there are

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self._logs.values()))

    def _all(self) -> list[Log]:
        """All logs, including the copies on their way to another directory."""
        return [*self._logs.values(), *self._futures.values()]

    def in_use(self) -> tuple[list[LogDirectory], list[Log]]:
        """The directories in service, and all logs in them."""
        return list(self.dirs.live.values()), self._all()

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic: str, partition: int) -> Log | None:
        """The log of a partition; None where this broker has none."""
        return self._logs.get(TopicPartition(topic, partition))

    def set_producer_rules(self, *, producer_id_expiration_ms: int, verification_enabled: bool) -> None:
        """Change the settings of producer state for all logs, including later ones."""
        self._settings = self._settings._replace(
            producer_id_expiration_ms=producer_id_expiration_ms, verification_enabled=verification_enabled
        )
        for log in self:
            log.producers.producer_id_expiration_ms = producer_id_expiration_ms
            log.verification_enabled = verification_enabled

    def logs_of(self, topic: str) -> list[Log]:
        """The logs of a topic, whose `update_config` a changed configuration needs."""
        return [log for (name, _), log in self._logs.items() if name == topic]

    @property
    def has_compacted(self) -> bool:
        """Whether there was ever a log with compaction."""
        return self._notices.has_compacted

    def logs_in(self, log_dir: str) -> dict[TopicPartition, Log]:
        """The logs in one log directory."""
        return {partition: log for partition, log in self._logs.items() if log.log_dir == log_dir}

    def future_logs_in(self, log_dir: str) -> dict[TopicPartition, Log]:
        """Logs on their way to another directory (AlterReplicaLogDirs)."""
        return {partition: log for partition, log in self._futures.items() if log.log_dir == log_dir}

    def prefer_dir(self, topic: str, partition: int, log_dir: str) -> None:
        """Choose the directory for a log that does not exist yet (AlterReplicaLogDirs before creation)."""
        key = TopicPartition(topic, partition)
        if key not in self._logs:
            self._reserved[key] = absolute(self._files, log_dir)

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        *,
        is_new: bool = True,
    ) -> Log:
        """The log; if there is none, it is created in the directory with the fewest logs, of those not cordoned.

        KAFKA_STORAGE_ERROR for a log that is not new and not here while a directory is offline: it may be in that one.
        Raises INCONSISTENT_TOPIC_ID, LogDirError.
        """
        key = TopicPartition(topic, partition)
        log = self._logs.get(key)
        if log is None:
            if (reason := partition_invalid_reason(topic, partition)) is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            if not is_new and self.dirs.offline:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"Can not create log for {key} because log directories {', '.join(self.dirs.offline)} are offline",
                )
            log = self._create(key, config, now_ms)
            self._logs[log.partition] = log
        log.assign_topic_id(topic_id)
        return log

    def _create(self, partition: TopicPartition, config: LogConfig, now_ms: int) -> Log:
        log_dir = self._reserved.pop(partition, None)
        if log_dir not in self.dirs.live:
            log_dir = self._dir_that_has(partition) or self._emptiest_dir()
        return self._new_log(f"{log_dir}/{names.log_dir_name(partition)}", config, now_ms)

    def _new_log(self, path: str, config: LogConfig, now_ms: int) -> Log:
        log_dir = path.rpartition("/")[0]
        try:
            log = Log(self._files, path, config, now_ms=now_ms, settings=self._settings)
        except OSError as error:
            if is_disk_full(error):
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No space left in {log_dir} for {path}") from error
            raise LogDirError(log_dir, error) from error
        logger.info("Created log for partition %s in %s", log.partition, path)
        return log

    def _dir_that_has(self, partition: TopicPartition) -> str | None:
        """Where an earlier attempt to create it ran out of space: two directories of one name stop the start."""
        if len(self.dirs.live) == 1:
            return None
        name = names.log_dir_name(partition)
        for path in self.dirs.live:
            with failing_takes_offline(path):
                if self._files.stat(f"{path}/{name}") is not None:
                    return path
        return None

    def _emptiest_dir(self) -> str:
        if not self.dirs.live:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No log directories available")
        if len(self.dirs.live) == 1:
            return next(iter(self.dirs.live))  # with 10 000 partitions, counting for each of them takes long
        open_dirs = [path for path in self.dirs.live if path not in self.dirs.cordoned]
        if not open_dirs:
            return next(iter(self.dirs.live))  # as in Kafka: the replica was assigned to this broker all the same
        counts = Counter(log.log_dir for log in self._all())
        return min(open_dirs, key=lambda path: counts[path])

    def prepare_truncation(self, offsets: Mapping[TopicPartition, int]) -> Job:
        """A job for a thread, to be run before these logs are cut at these offsets: it writes their recovery points.

        Without it a power cut could leave a cut segment below the recovery point with the removed ones after it, and no
        recovery would find that hole. (Kafka writes them after the cut.)
        """
        for partition, offset in offsets.items():
            self._logs[partition].prepare_truncation(offset)
        affected = {self._logs[partition].log_dir for partition in offsets}
        return self._checkpoint(names.RECOVERY_POINT_CHECKPOINT, [self.dirs.live[path] for path in affected])

    def delete(self, topic: str, partition: int, now_ms: int) -> bool:
        """Delete a log: its directory is renamed now, removed after `file.delete.delay.ms`. False if there is none."""
        key = TopicPartition(topic, partition)
        log = self._logs.get(key)
        if log is None:
            if self.dirs.offline:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"Failed to delete log for {key} because it may be in one of the offline directories",
                )
            return False
        self._mark_deleted(key, log, now_ms)
        del self._logs[key]
        self.remove_future(topic, partition, now_ms)
        return True

    # --- moving a log to another directory

    def get_future(self, topic: str, partition: int) -> Log | None:
        """The log's copy on its way to another directory."""
        return self._futures.get(TopicPartition(topic, partition))

    def create_future(self, topic: str, partition: int, log_dir: str, now_ms: int) -> Log:
        """An empty log in another directory, to be filled from the current one and to replace it then.

        Raises KAFKA_STORAGE_ERROR while a directory is offline, as it may hold such a log already; LogDirError.
        """
        key = TopicPartition(topic, partition)
        if self.dirs.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Can not move {key} while a log directory is offline")
        source = self._logs[key]
        name = names.future_dir_name(key, self._new_id())
        if len(name) > names.MAX_NAME_LENGTH:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Can not move {key}: the directory of its copy, {name}, has too long a name",
            )
        path = f"{absolute(self._files, log_dir)}/{name}"
        future = self._new_log(path, source.config, now_ms)
        if source.topic_id is not None:
            future.assign_topic_id(source.topic_id)
        self._futures[key] = future
        return future

    def remove_future(self, topic: str, partition: int, now_ms: int) -> None:
        """Abandon a copy; its directory is removed after `file.delete.delay.ms`."""
        key = TopicPartition(topic, partition)
        future = self._futures.pop(key, None)
        if future is not None:
            self._mark_deleted(key, future, now_ms)

    def replace_with_future(self, topic: str, partition: int, now_ms: int) -> Log:
        """Make the copy the log, and delete the old one (LogManager.replaceCurrentWithFutureLog).

        The copy is renamed before the old log is deleted: a crash in between leaves both, and nothing is lost.
        """
        key = TopicPartition(topic, partition)
        source, future = self._logs[key], self._futures[key]
        future.rename_directory(names.log_dir_name(key))
        future.is_future = False
        future.update_high_watermark(source.high_watermark)
        self._futures.pop(key)
        self._logs[key] = future
        self._renamed_in.add(future.log_dir)
        self._mark_deleted(key, source, now_ms)
        return future

    def _mark_deleted(self, key: TopicPartition, log: Log, now_ms: int) -> None:
        log.rename_directory(names.delete_dir_name(key, self._new_id()))
        self._renamed_in.add(log.log_dir)
        log.close_handlers()
        self._to_delete.add(now_ms + log.config.file_delete_delay_ms, [log.directory])
        logger.info("Log for partition %s is renamed to %s and is scheduled for deletion", key, log.directory)

    def sync_deletions(self) -> Job:
        """A job for a thread, after which no power cut brings a deleted log back. It raises LogDirError.

        Run it before the deletion is acknowledged: a topic of the same name may be created then.
        """
        renamed_in, self._renamed_in = self._renamed_in, set()
        return deletions.sync_job(self._files, renamed_in)

    # --- what runs in the background

    def cleanup_logs(self, now_ms: int) -> Iterator[int]:
        """Run retention on every log with a delete policy.

        Yields the number of segments removed after each step, so that others may run in between.
        """
        for log in self:
            yield 0
            if log.config.delete or not log.config.compact:
                yield from self.delete_old_segments(log, now_ms)

    def delete_old_segments(self, log: Log, now_ms: int) -> Iterator[int]:
        """Run retention on one log, unless it is being cleaned: its segments have to stay until that is done.

        Segments added after the first step wait for the next run: a producer of old records cannot keep this one
        running.
        """
        end = log.log_end_offset
        while removed := self._delete_some(log, now_ms, end):
            yield removed

    def _delete_some(self, log: Log, now_ms: int, below: int) -> int:
        if log.is_closed or log.cleaning is not None:
            return 0
        try:
            return log.delete_old_segments(now_ms, below=below)
        except KafkaError as error:  # damaged data, or a full disk: on with the other logs
            logger.error("Cannot clean up log %s: %s", log, error)
            return 0

    def deletions_due(self, now_ms: int) -> list[Job]:
        """Jobs for a thread that remove what was marked `file.delete.delay.ms` ago. They raise LogDirError."""
        jobs: list[Job] = []
        deleting = self._notices.deleting
        for log in list(deleting):
            paths = [] if log.is_closed else log.deletions_due(now_ms)
            if paths:
                jobs.append(deletions.unlink_job(self._files, log.log_dir, paths))
            if log.is_closed or not log.has_deletions:
                del deleting[log]
        jobs += [deletions.remove_log_job(self._files, path) for path in self._to_delete.take_due(now_ms)]
        return jobs

    def flush_jobs(self, now_ms: int) -> Iterator[FlushJob]:
        """A job for each log that rolled a segment or is over its `flush.ms`, created when it is requested.

        Run each, then `complete` it, even if others failed.
        """
        for log in self._all():
            if log.is_closed or not log.has_unflushed:
                continue
            if log.unflushed.rolled or now_ms - log.last_flush_ms >= log.config.flush_ms:
                log.last_flush_ms = now_ms
                yield log.prepare_flush()

    def recovery_point_checkpoint(self) -> Job:
        """A job for a thread that writes every directory's recovery points. It raises LogDirError."""
        return self._checkpoint(names.RECOVERY_POINT_CHECKPOINT)

    def log_start_offset_checkpoint(self) -> Job:
        """The same for log start offsets, of the logs whose start is not their first segment's base offset."""
        return self._checkpoint(names.LOG_START_OFFSET_CHECKPOINT)

    def high_watermark_checkpoint(self) -> Job:
        """The same for high watermarks."""
        return self._checkpoint(names.HIGH_WATERMARK_CHECKPOINT)

    def cleaner_offset_checkpoint(self) -> Job:
        """The same for the offsets up to which logs are cleaned, in directories where they changed."""
        return self._checkpoint(names.CLEANER_OFFSET_CHECKPOINT)

    def _checkpoint(self, name: str, directories: Sequence[LogDirectory] | None = None) -> Job:
        return checkpoint_job(name, list(self.dirs.live.values()) if directories is None else directories, self._all())

    # --- failures and the end

    def take_offline(self, log_dir: str, cause: object) -> list[TopicPartition]:
        """A directory failed: close and forget its logs and release its lock; the partitions that were lost."""
        if log_dir not in self.dirs.live:
            return []
        self.presence.name_losses(log_dir, self._all())
        lost = []
        for logs in (self._logs, self._futures):
            for partition in [key for key, log in logs.items() if log.log_dir == log_dir]:
                logs.pop(partition).close_handlers()
                lost.append(partition)
        self._to_delete.forget(log_dir)
        self.dirs.take_offline(log_dir, cause)
        return lost

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Close every log, write the checkpoints, and the clean-shutdown marker where no log failed to close."""
        for directory in list(self.dirs.live.values()):
            try:
                self._shut_directory(directory, broker_epoch)
            except (LogDirError, OSError) as error:
                logger.error("Error while closing logs in %s: %s", directory.path, error)
                self.take_offline(directory.path, error)
        self.dirs.close()

    def abandon(self) -> None:
        """Close all files and release the locks, and write nothing, as the end of a killed process does."""
        for log in self._all():
            log.close_handlers()
        self.dirs.close()

    def _shut_directory(self, directory: LogDirectory, broker_epoch: int) -> None:
        logs = [log for log in self._all() if log.log_dir == directory.path]
        if not directory.is_loaded:
            # The start failed. Checkpoints and marker are of the run before, and include logs that were not opened now.
            for log in logs:
                log.close_handlers()
            return
        self.presence.check_all(directory, logs)
        is_clean = close_all(self._files, directory.path, logs)
        for name in OFFSET_OF:
            checkpoint_job(name, [directory], logs, is_last=True)()
        if is_clean:
            directory.write_clean_shutdown_marker(broker_epoch)
