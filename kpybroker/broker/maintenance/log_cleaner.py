"""Compaction: which log is cleaned next, and what happens with the result. Kafka's LogCleaner, with processes as
threads.

There are up to `log.cleaner.threads` workers. Each starts a process (`cleaner_process`) when there is a log to clean,
and ends it when there is none. The process reads segments and writes `.cleaned` ones. Every change to a log is made
here, on the loop, and only while the cleaning is not cancelled (`Log.cleaning`). Cancelling it kills the process.

No failure harms a log. Damage, or a process that dies again and again, makes a partition uncleanable until the broker
restarts; after a full disk the cleaning is retried; an I/O error takes the directory offline, as in Kafka. Files that a
killed process left are removed before the next cleaning of that log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.maintenance.cleaner_process import CleanerProcess
from kpybroker.broker.maintenance.time_retention import delete_by_read_timestamps
from kpybroker.core.log.cleaner_plan import LogToClean, log_to_clean
from kpybroker.storage.cleaning.cleaned import cleaning_job, remove_leftovers, swap_in
from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, Mapped
from kpybroker.storage.cleaning.process import IO_ERROR, NO_SPACE, Failed, encode_job
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.log.LogCleaner")

CRASHES_MAX = 3
LOG_COST = 20
"""Units of a `YieldBudget` that a look at what a log has to clean costs."""
IO_BYTES_MIN = 64 * 1024
MB = 1024 * 1024

RECONFIGURABLE = frozenset(
    {
        "log.cleaner.threads",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.backoff.ms",
    }
)
"""Keys that restart the cleaner when they change (LogCleaner.ReconfigurableConfigs)."""


class CleanerStats:
    """For the metrics: of the last cleaning, and of the last look for work, which was at `looked_at` of the clock."""

    buffer_utilization_percent = 0
    recopy_percent = 0
    clean_time_s = 0
    max_dirty_percent = 0
    looked_at = 0.0


class LogCleaner:
    """Life: `run` until `stop`. `partitions` are all that the broker hosts, each time it is iterated over."""

    def __init__(self, host: Host, configs: ConfigRepository, partitions: Iterable[Partition]) -> None:
        self._host = host
        self._partitions = partitions
        self._config = host.config
        self._workers: set[int] = set()
        self._busy: set[str] = set()  # directories of logs that a worker has taken
        self._forced: set[Log] = set()  # those that `clean_now` cleans
        self.uncleanable: set[Log] = set()
        """Those that are not cleaned any more, after a failure."""
        self.stats = CleanerStats()
        self._crashes: dict[Log, int] = {}
        self._not_before: dict[Log, float] = {}
        self._wake = trio.Event()
        self._scope: trio.CancelScope | None = None
        self._ended = trio.Event()
        configs.on_broker_change(self._on_config_change)

    # --- the loop

    async def run(self) -> None:
        """Until `stop`: clean what is dirty enough, then sleep for `log.cleaner.backoff.ms`."""
        logger.info("Starting the log cleaner")
        self._ended = trio.Event()
        try:
            with trio.CancelScope() as self._scope:
                async with trio.open_nursery() as nursery:
                    while True:
                        self._wake = trio.Event()
                        await self._start_workers(nursery)
                        await self._maintain()
                        with self._host.clock.pausing(self._backoff_s):
                            await self._wake.wait()
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Cancel everything; returns when the processes have ended."""
        logger.info("Shutting down the log cleaner.")
        if self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()

    @property
    def is_busy(self) -> bool:
        """Whether a log is being cleaned now."""
        return bool(self._workers)

    async def clean_now(self, log: Log) -> None:
        """Clean a log, however little of it is dirty; return when that is done, or has failed. `run` need not run."""
        while log.directory in self._busy:
            await self._wake.wait()
        self._busy.add(log.directory)
        self._forced.add(log)
        process = CleanerProcess()
        try:
            process = await self._clean(0, process, log)
        finally:
            self._forced.discard(log)
            await process.close()
            self._wake.set()

    def wake(self) -> None:
        """Look again now. A log was deleted: its checkpoint must not apply to another log of the same name."""
        self._wake.set()

    @property
    def _backoff_s(self) -> float:
        return self._config.get_int("log.cleaner.backoff.ms") / 1000

    @property
    def _threads(self) -> int:
        return self._config.get_int("log.cleaner.threads")

    def _on_config_change(self, changed: frozenset[str]) -> None:
        if changed & RECONFIGURABLE:
            logger.info("Restarting the log cleaner: %s changed", ", ".join(sorted(changed & RECONFIGURABLE)))
            for log in self._host.logs:
                log.abort_cleaning()
            self._wake.set()

    async def _start_workers(self, nursery: trio.Nursery) -> None:
        while len(self._workers) < self._threads:
            log = await self._grab()
            if log is None:
                return
            number = next(number for number in range(len(self._workers) + 1) if number not in self._workers)
            self._workers.add(number)
            nursery.start_soon(self._work, number, log)

    async def _maintain(self) -> None:
        """Retention of the compacted logs, and the checkpoints of logs that were truncated or deleted."""
        now_ms = self._host.clock.time_ms()
        budget = YieldBudget()
        for log in self._host.logs:
            if log.config.compact and log not in self.uncleanable:
                for removed in self._host.logs.delete_old_segments(log, now_ms):
                    await budget.spend(SLICE_UNITS if removed else ELEMENT)
        compacted = [log for log in self._host.logs if log.config.compact and log not in self.uncleanable]
        await delete_by_read_timestamps(self._host, compacted)
        for partition in self._partitions:
            partition.notify_log_start()
        self.uncleanable = {log for log in self.uncleanable if not log.is_closed}
        for by_log in (self._crashes, self._not_before):
            for log in [log for log in by_log if log.is_closed]:
                del by_log[log]
        await self._write_checkpoint()

    async def _write_checkpoint(self) -> None:
        try:
            await trio.to_thread.run_sync(self._host.logs.cleaner_offset_checkpoint())
        except LogDirError as error:
            self._host.log_dir_failed(error)

    # --- which log

    async def _grab(self) -> Log | None:
        """Take the dirtiest log that is worth cleaning and not being cleaned. Other tasks may run in between."""
        best: Log | None = None
        best_ratio = -1.0
        budget = YieldBudget()
        dirtiest = 0.0
        for log in self._host.logs:
            found = None if log.directory in self._busy else self._prospects(log)
            dirtiest = max(dirtiest, 0.0 if found is None else found.cleanable_ratio)
            if found is not None and found.cleanable_ratio > best_ratio:
                best, best_ratio = log, found.cleanable_ratio
            await budget.spend(LOG_COST)
        self.stats.max_dirty_percent = int(100 * dirtiest)
        self.stats.looked_at = self._host.clock.monotonic()
        if best is None or best.directory in self._busy:
            return None
        self._busy.add(best.directory)
        return best

    def _prospects(self, log: Log) -> LogToClean | None:
        """None where there is nothing to clean."""
        if not log.config.compact or log.is_closed or log in self.uncleanable:
            return None
        if self._host.clock.monotonic() < self._not_before.get(log, 0.0):
            return None
        try:
            target = log_to_clean(log, self._host.clock.time_ms())
        except KafkaError as error:
            self._mark_uncleanable(log, f"Failed to calculate log cleaning stats: {error}")
            return None
        except OSError as error:
            self._host.log_dir_failed(LogDirError(log.log_dir, error))
            return None
        if target.invalid_checkpoint is not None:
            if not log.config.delete:
                logger.warning("%s: %s", log.partition, target.invalid_checkpoint)
            log.cleaner_offset = target.first_dirty_offset
        is_wanted = target.is_cleanable or (log in self._forced and target.cleanable_bytes > 0)
        return target if is_wanted else None

    def _mark_uncleanable(self, log: Log, reason: str) -> None:
        logger.warning(
            "Unexpected exception thrown when cleaning log %s. Marking its partition (%s) as uncleanable: %s",
            log,
            log.partition,
            reason,
        )
        self.uncleanable.add(log)

    def _try_again_later(self, log: Log, reason: str) -> None:
        logger.warning("Cleaning of %s failed and is tried again: %s", log.partition, reason)
        self._not_before[log] = self._host.clock.monotonic() + self._backoff_s

    # --- one worker

    async def _work(self, number: int, log: Log) -> None:
        """Clean this log and then others, with one process, until nothing is left or there are enough workers."""
        process = CleanerProcess()
        found: Log | None = log
        try:
            while found is not None:
                process = await self._clean(number, process, found)
                found = await self._grab() if number < self._threads else None
        finally:
            await process.close()
            self._workers.discard(number)
            self._wake.set()

    async def _clean(self, number: int, process: CleanerProcess, log: Log) -> CleanerProcess:
        """Clean once, whatever the result; returns the process for the next log. The log's directory is in `_busy`."""
        directory = log.directory
        try:
            await process.start()
            await self._follow(number, process, log)
        except LogDirError as error:
            self._host.log_dir_failed(error)
        except Exception as error:
            logger.exception("Cleaner %d: %s", number, log.partition)
            self._mark_uncleanable(log, repr(error))
        finally:
            if log.cleaning == process.kill:
                log.cleaning = None
            if not process.is_idle:
                with trio.CancelScope(shield=True):
                    await process.close()
                    await trio.to_thread.run_sync(remove_leftovers, self._host.files, directory)
            self._busy.discard(directory)
        return process if process.is_idle else CleanerProcess()

    async def _follow(self, number: int, process: CleanerProcess, log: Log) -> None:
        """Send the job and act on what the process reports, until it is done or the cleaning is cancelled."""
        now_ms = self._host.clock.time_ms()
        target = self._prospects(log)
        if target is None:  # it was clean enough in the meantime
            return
        logger.info("Cleaner %d: Beginning cleaning of log %s", number, log.partition)
        started = self._host.clock.monotonic()
        log.cleaning = process.kill
        await process.send(self._job(log, target, now_ms))
        while True:
            event = await process.receive()
            if log.cleaning != process.kill:
                return
            match event:
                case Mapped(end_offset, bytes_read, utilization):
                    self.stats.buffer_utilization_percent = int(100 * utilization)
                    logger.info(
                        "Cleaner %d: Offset map for log %s complete up to %d: %.1f MB read, buffer utilization %.1f%%",
                        *(number, log.partition, end_offset, bytes_read / MB, 100 * utilization),
                    )
                case CleanedSegment():
                    await trio.to_thread.run_sync(swap_in(log, event, self._host.clock.time_ms()))
                case Cleaned():
                    await self._done(log, event)
                    self._report(number, log, target, event, self._host.clock.monotonic() - started)
                    return
                case Failed(kind, message, details):
                    return self._failed(log, kind, message, details)
                case None:
                    return self._crashed(log, await process.close())

    def _job(self, log: Log, target: LogToClean, now_ms: int) -> bytes:
        """The job as a line for the process. The workers share memory and rate."""
        config, threads = self._config, max(self._threads, 1)
        job = cleaning_job(
            log,
            target,
            now_ms=now_ms,
            map_bytes=min(config.get_int("log.cleaner.dedupe.buffer.size") // threads, INT32_MAX),
            map_load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
            io_bytes=max(config.get_int("log.cleaner.io.buffer.size") // threads // 2, IO_BYTES_MIN),
        )
        return encode_job(job, config.get_float("log.cleaner.io.max.bytes.per.second") / threads)

    async def _done(self, log: Log, cleaned: Cleaned) -> None:
        log.cleaning = None
        log.cleaner_offset = cleaned.end_offset
        self._crashes.pop(log, None)
        await self._write_checkpoint()

    def _failed(self, log: Log, kind: str, message: str, details: str) -> None:
        logger.info("%s: %s", log.partition, details)
        if kind == NO_SPACE:
            self._try_again_later(log, message)
        elif kind == IO_ERROR:
            raise LogDirError(
                log.log_dir,
                f"Failed to clean up log for {log.partition} in dir {log.log_dir} due to IOException: {message}",
            )
        else:
            self._mark_uncleanable(log, message)

    def _crashed(self, log: Log, exit_code: int | None) -> None:
        count = self._crashes[log] = self._crashes.get(log, 0) + 1
        reason = f"the cleaner's process ended with exit code {exit_code}"
        if count >= CRASHES_MAX:
            self._mark_uncleanable(log, f"{reason}, {count} times now")
        else:
            self._try_again_later(log, reason)

    def _report(self, number: int, log: Log, target: LogToClean, done: Cleaned, seconds: float) -> None:
        """Kafka's statistics of a cleaning."""
        size, kept = target.clean_bytes + target.cleanable_bytes, done.bytes_written
        self.stats.recopy_percent = int(100 * kept / max(done.bytes_read, 1))
        self.stats.clean_time_s = int(seconds)
        logger.info(
            f"Log cleaner thread {number} cleaned log {log.partition} (dirty section = [{target.first_dirty_offset}, "
            f"{done.end_offset}])\n"
            f"\t{done.bytes_read / MB:,.1f} MB of log processed in {seconds:,.1f} seconds "
            f"({done.bytes_read / MB / max(seconds, 1e-6):,.1f} MB/sec).\n"
            f"\tStart size: {size / MB:,.1f} MB ({done.messages_read:,} messages)\n"
            f"\tEnd size: {kept / MB:,.1f} MB ({done.messages_written:,} messages)"
        )
        if done.invalid_messages:
            logger.warning("\tFound %d invalid messages during compaction.", done.invalid_messages)
