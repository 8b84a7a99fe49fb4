"""Compaction: which log, by whom, and what becomes of the result. Kafka's LogCleaner with its threads as processes.

Up to `log.cleaner.threads` workers, each with a process of its own (`storage.cleaning.process`) that it starts when
there is a log to clean and lets go when there is none. The process reads segments and writes `.cleaned` ones; every
change to a log is made here, on the loop, and only while the cleaning has not been called off (`Log.cleaning`). A
cleaning that is called off ends with its process.

What goes wrong harms no log. Damage, or a process that dies again and again, makes a partition uncleanable until the
broker starts anew; a full disk is tried again; an I/O error takes the directory offline, as in Kafka. What a stopped
process left is removed before the next cleaning of that log.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from subprocess import PIPE
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.core.log.cleaner_plan import LogToClean, log_to_clean
from kpybroker.storage.cleaning.cleaned import cleaning_job, remove_leftovers, swap_in
from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, Mapped
from kpybroker.storage.cleaning.process import IO_ERROR, NO_SPACE, Event, Failed, decode_event, encode_job
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.primitives import INT32_MAX

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.log.LogCleaner")

COMMAND = (sys.executable, "-m", "kpybroker.storage.cleaning.process")
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
"""Keys that start the cleaner anew when they change (LogCleaner.ReconfigurableConfigs)."""


class LogCleaner:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._config = broker.config
        self._workers: set[int] = set()
        self._busy: set[str] = set()  # directories of logs that a worker has taken
        self._uncleanable: set[Log] = set()
        self._crashes: dict[Log, int] = {}
        self._not_before: dict[Log, float] = {}
        self._wake = trio.Event()
        self._scope: trio.CancelScope | None = None
        self._ended = trio.Event()
        broker.configs.on_broker_change(self._on_config_change)

    # --- the loop

    async def run(self) -> None:
        """For the broker's life: clean what is dirty enough, then rest for `log.cleaner.backoff.ms`."""
        logger.info("Starting the log cleaner")
        self._ended = trio.Event()
        try:
            with trio.CancelScope() as self._scope:
                async with trio.open_nursery() as nursery:
                    while True:
                        self._wake = trio.Event()
                        await self._start_workers(nursery)
                        await self._maintain()
                        with trio.move_on_after(self._backoff_s):
                            await self._wake.wait()
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Call everything off; the processes are gone afterwards."""
        logger.info("Shutting down the log cleaner.")
        if self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()

    def wake(self) -> None:
        """Look again now: a log is gone, whose checkpoint must not stay for another one of its name."""
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
            for log in self._broker.logs:
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
        """Retention of the compacted logs, and the checkpoints of logs that were cut or deleted."""
        now_ms = self._broker.clock.time_ms()
        budget = YieldBudget()
        for log in self._broker.logs:
            if log.config.compact and log not in self._uncleanable:
                for removed in self._broker.logs.delete_old_segments(log, now_ms):
                    await budget.spend(SLICE_UNITS if removed else ELEMENT)
        for partition in self._broker.replicas:
            partition.notify_log_start()
        self._uncleanable = {log for log in self._uncleanable if not log.is_closed}
        for notes in (self._crashes, self._not_before):
            for log in [log for log in notes if log.is_closed]:
                del notes[log]
        await self._write_checkpoint()

    async def _write_checkpoint(self) -> None:
        try:
            await trio.to_thread.run_sync(self._broker.logs.cleaner_offset_checkpoint())
        except LogDirError as error:
            self._broker.log_dir_failed(error)

    # --- which log

    async def _grab(self) -> Log | None:
        """The filthiest log that is worth cleaning and nobody cleans, now taken. Others may run in between."""
        best: Log | None = None
        best_ratio = -1.0
        budget = YieldBudget()
        for log in self._broker.logs:
            found = None if log.directory in self._busy else self._prospects(log)
            if found is not None and found.cleanable_ratio > best_ratio:
                best, best_ratio = log, found.cleanable_ratio
            await budget.spend(LOG_COST)
        if best is None or best.directory in self._busy:
            return None
        self._busy.add(best.directory)
        return best

    def _prospects(self, log: Log) -> LogToClean | None:
        """None where there is nothing to clean."""
        if not log.config.compact or log.is_closed or log in self._uncleanable:
            return None
        if self._broker.clock.monotonic() < self._not_before.get(log, 0.0):
            return None
        try:
            target = log_to_clean(log, self._broker.clock.time_ms())
        except KafkaError as error:
            self._mark_uncleanable(log, f"Failed to calculate log cleaning stats: {error}")
            return None
        except OSError as error:
            self._broker.log_dir_failed(LogDirError(log.log_dir, error))
            return None
        if target.invalid_checkpoint is not None:
            if not log.config.delete:
                logger.warning("%s: %s", log.partition, target.invalid_checkpoint)
            log.cleaner_offset = target.first_dirty_offset
        return target if target.is_cleanable else None

    def _mark_uncleanable(self, log: Log, reason: str) -> None:
        logger.warning(
            "Unexpected exception thrown when cleaning log %s. Marking its partition (%s) as uncleanable: %s",
            log,
            log.partition,
            reason,
        )
        self._uncleanable.add(log)

    def _try_again_later(self, log: Log, reason: str) -> None:
        logger.warning("Cleaning of %s failed and is tried again: %s", log.partition, reason)
        self._not_before[log] = self._broker.clock.monotonic() + self._backoff_s

    # --- one worker

    async def _work(self, number: int, log: Log) -> None:
        """Clean this log and then others, with one process, until nothing is left or there are workers enough."""
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
        """One cleaning, whatever comes of it; the process for the next one. The log's directory was taken for it."""
        directory = log.directory
        try:
            await process.start()
            await self._follow(number, process, log)
        except LogDirError as error:
            self._broker.log_dir_failed(error)
        except Exception as error:
            logger.exception("Cleaner %d: %s", number, log.partition)
            self._mark_uncleanable(log, repr(error))
        finally:
            if log.cleaning == process.kill:
                log.cleaning = None
            if not process.is_idle:
                with trio.CancelScope(shield=True):
                    await process.close()
                    await trio.to_thread.run_sync(remove_leftovers, self._broker.files, directory)
            self._busy.discard(directory)
        return process if process.is_idle else CleanerProcess()

    async def _follow(self, number: int, process: CleanerProcess, log: Log) -> None:
        """Hand the job over and act on what the process says, until it is done or the cleaning was called off."""
        now_ms = self._broker.clock.time_ms()
        target = self._prospects(log)
        if target is None:  # no more
            return
        logger.info("Cleaner %d: Beginning cleaning of log %s", number, log.partition)
        started = self._broker.clock.monotonic()
        log.cleaning = process.kill
        await process.send(self._job(log, target, now_ms))
        while True:
            event = await process.receive()
            if log.cleaning != process.kill:
                return
            match event:
                case Mapped(end_offset, bytes_read, utilization):
                    logger.info(
                        "Cleaner %d: Offset map for log %s complete up to %d: %.1f MB read, buffer utilization %.1f%%",
                        *(number, log.partition, end_offset, bytes_read / MB, 100 * utilization),
                    )
                case CleanedSegment():
                    await trio.to_thread.run_sync(swap_in(log, event, self._broker.clock.time_ms()))
                case Cleaned():
                    await self._done(log, event)
                    self._report(number, log, target, event, self._broker.clock.monotonic() - started)
                    return
                case Failed(kind, message, details):
                    return self._failed(log, kind, message, details)
                case None:
                    return self._crashed(log, await process.close())

    def _job(self, log: Log, target: LogToClean, now_ms: int) -> bytes:
        """A line for the process. Memory and rate are shared among the threads."""
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


class CleanerProcess:
    """A process that cleans one log after the other. Started by the first job, ended by `close`."""

    def __init__(self) -> None:
        self._process: trio.Process | None = None
        self._received = bytearray()
        self._is_killed = False
        self._is_working = False

    @property
    def is_idle(self) -> bool:
        """Whether it may be given another job."""
        return not (self._is_killed or self._is_working)

    async def start(self) -> None:
        if self._process is None:
            self._process = await trio.lowlevel.open_process(COMMAND, stdin=PIPE, stdout=PIPE, start_new_session=True)

    async def send(self, line: bytes) -> None:
        """What becomes of it, `receive` tells, also where the process is gone."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self._is_working = True
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await process.stdin.send_all(line)

    async def receive(self) -> Event | None:
        """The next event; None when the process has ended."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        while (end := self._received.find(b"\n")) < 0:
            chunk = await process.stdout.receive_some()
            if not chunk:
                return None
            self._received += chunk
        event = decode_event(bytes(self._received[:end]))
        del self._received[: end + 1]
        if isinstance(event, Cleaned | Failed):
            self._is_working = False
        return event

    def kill(self) -> None:
        """Its work is not wanted any more."""
        self._is_killed = True
        if self._process is not None:
            self._process.kill()

    async def close(self) -> int | None:
        """Until it has ended; its exit code."""
        process = self._process
        if process is None:
            return None
        self.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()
        return process.returncode
