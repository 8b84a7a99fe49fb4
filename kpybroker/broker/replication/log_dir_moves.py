"""Moving replicas between log directories while they serve: Kafka's `ReplicaAlterLogDirsManager` (KIP-113).

One task copies the current log into a *future* log in the other directory, a slice at a time. When the future log has
everything, and on disk, it replaces the current one without a checkpoint, so that no append falls between. What the
current log loses by truncation the future one loses too. A move continues after a restart, from where it was.

`replica.alter.log.dirs.io.max.bytes.per.second` limits all moves together. A thread reads, because the pages may be
cold. Partitions alternate, slice by slice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import read_in_thread, run_flush
from kpybroker.config.values import LONG_MAX
from kpybroker.core.rate import Rate
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.append import UnexpectedAppendOffsetError
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.server.ReplicaAlterLogDirsThread")

COPY_STEP_BYTES = 1024 * 1024
THROTTLED_S = 0.1
NAME_BYTES_MAX = 255
FUTURE_NAME_EXTRA_BYTES = len(".-future") + 32
RATE_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"


class LogDirMoves:
    """The replicas that are being moved; the task that copies them starts with the first."""

    def __init__(self, host: Host, metadata: MetadataCache, hosted: Callable[[str, int], Partition | None]) -> None:
        self._host = host
        self._metadata = metadata
        self._hosted = hosted
        self._moving: dict[TopicPartition, Partition] = {}
        self._has_work = trio.Event()
        self._is_running = False
        config = host.config
        self._rate = Rate(
            config.get_int("alter.log.dirs.replication.quota.window.num"),
            config.get_int("alter.log.dirs.replication.quota.window.size.seconds") * 1000,
        )

    # --- starting a move

    def move(self, topic: str, index: int, log_dir: str) -> None:
        """AlterReplicaLogDirs for one replica. Raises KafkaError, LogDirError."""
        logs, now_ms = self._host.logs, self._host.clock.time_ms()
        key = TopicPartition(topic, index)
        if len(f"{topic}-{index}") + FUTURE_NAME_EXTRA_BYTES > NAME_BYTES_MAX:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        if not logs.dirs.is_live(log_dir):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {log_dir} is offline")
        if logs.dirs.is_cordoned(log_dir):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {log_dir} is cordoned")
        partition = self._hosted(topic, index)
        if partition is not None and partition.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {topic}-{index} is offline")
        future = logs.get_future(topic, index)
        if future is not None and future.log_dir != log_dir:
            self._moving.pop(key, None)
            logs.remove_future(topic, index, now_ms)
        if partition is None or partition.log is None:
            logs.prefer_dir(topic, index, log_dir)
            exists = self._metadata.partition(topic, index) is not None
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.log.log_dir == log_dir or (future is not None and future.log_dir == log_dir):
            return
        logs.create_future(topic, index, log_dir, now_ms)
        self.resume(partition)

    def resume(self, partition: Partition) -> None:
        """Copy into the partition's future log, if it has one."""
        if self._host.logs.get_future(partition.topic, partition.index) is None:
            return
        self._moving[TopicPartition(partition.topic, partition.index)] = partition
        self._has_work.set()
        if not self._is_running:
            self._is_running = True
            self._host.spawn("ReplicaAlterLogDirsThread", self._run)

    def truncated(self, partition: Partition) -> None:
        """The current log was truncated: truncate the future one as well. Raises LogDirError."""
        future = self._host.logs.get_future(partition.topic, partition.index)
        if future is None or partition.log is None:
            return
        now_ms, log = self._host.clock.time_ms(), partition.log
        if log.log_start_offset > future.log_end_offset or future.log_start_offset > log.log_end_offset:
            future.truncate_fully_and_start_at(log.log_start_offset, now_ms=now_ms)
        else:
            future.truncate_to(log.log_end_offset, now_ms=now_ms)

    # --- copying

    async def _run(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            while self._moving:
                key, partition = next(iter(self._moving.items()))
                try:
                    is_done = await self._step(partition)
                except LogDirError as error:
                    self._host.log_dir_failed(error)
                    is_done = True
                except (KafkaError, UnexpectedAppendOffsetError) as error:
                    logger.error("Cannot move %s: %s", key, error)
                    is_done = True
                if is_done and self._moving.get(key) is partition:
                    del self._moving[key]
                elif not is_done:
                    self._moving[key] = self._moving.pop(key, partition)  # to the end of the queue
                await trio.lowlevel.checkpoint()

    async def _step(self, partition: Partition) -> bool:
        """Copy one slice, or finish. Returns whether the move is over."""
        logs = self._host.logs
        log, future = partition.log, logs.get_future(partition.topic, partition.index)
        if log is None or future is None:
            return True
        if self._is_throttled():
            await trio.sleep(THROTTLED_S)
            return False
        if future.log_end_offset < log.log_start_offset:
            future.truncate_fully_and_start_at(log.log_start_offset, now_ms=self._host.clock.time_ms())
        if future.log_end_offset < log.log_end_offset:
            await self._copy(partition, log, future)
            return False
        if future.has_unflushed:
            await run_flush(future.prepare_flush())
            if future.log_end_offset < log.log_end_offset:
                return False
        if logs.get_future(partition.topic, partition.index) is future and partition.log is log:
            self._finish(partition, log, future)
            await trio.to_thread.run_sync(logs.sync_deletions())
        return True

    async def _copy(self, partition: Partition, log: Log, future: Log) -> None:
        start, truncations = future.log_end_offset, future.truncations
        found = log.read(start, COPY_STEP_BYTES, max_offset=log.log_end_offset)
        if found.slice is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"nothing to read at {start} below {log.log_end_offset}")
        records = await read_in_thread(log.log_dir, found.slice)
        is_same = self._host.logs.get_future(partition.topic, partition.index) is future
        if is_same and future.log_end_offset == start and future.truncations == truncations:
            now_ms = self._host.clock.time_ms()
            info = future.append_copied(records, now_ms=now_ms)
            future.update_high_watermark(min(log.high_watermark, future.log_end_offset))
            self._rate.record(info.size, now_ms)

    def _finish(self, partition: Partition, log: Log, future: Log) -> None:
        """Both logs are equal: replace the current one by the future one, without a checkpoint."""
        latest = log.epochs.latest_entry
        if latest is not None and latest.epoch != future.latest_epoch:
            future.assign_epoch(latest.epoch, latest.start_offset)  # of a leader that has not appended yet
        high_watermark = future.update_high_watermark(log.high_watermark)
        assert high_watermark >= log.high_watermark, f"{future} replaces {log}: the high watermark falls"
        if log.log_start_offset > future.log_start_offset:
            future.increment_log_start_offset(log.log_start_offset)
        partition.log = self._host.logs.replace_with_future(
            partition.topic, partition.index, self._host.clock.time_ms()
        )
        partition.notify(0)
        logger.info("Moved %s-%d to %s", partition.topic, partition.index, future.directory)

    def _is_throttled(self) -> bool:
        config = self._host.config
        limit = config.dynamic_broker.get(RATE_KEY, config.dynamic_default.get(RATE_KEY))
        bound = LONG_MAX if limit is None else int(limit)
        return self._rate.measure(self._host.clock.time_ms()) > bound
