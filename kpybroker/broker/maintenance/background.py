"""The periodic tasks of a broker: retention, flushes, checkpoints, deletions; and how they are supervised.

Every fsync runs in a thread; the loop only decides what is to be synced and records that it was. The intervals are
Kafka's keys.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, TURNS_OF, YieldBudget, run_flush
from kpybroker.broker.maintenance.undecided import undecided
from kpybroker.broker.requests.log_fields import CURRENT, write_counts
from kpybroker.core.tree import TreeClosed
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.maintenance.log_cleaner import LogCleaner
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.storage.disk.deletions import Job

logger = logging.getLogger("kafka.server.KafkaServer")

RESTART_DELAY_S = 1.0
FIRST_LOOK_S = 1.0
DELETIONS_LOOK_S_MAX = 1.0
PRESENCE_LOOK_S = 0.8
LINE_COUNTS_LOOK_S = 10.0


def start(host: Host, replicas: Replicas, log_cleaner: Callable[[], LogCleaner]) -> None:
    """Spawn every task. `log_cleaner` is called once there is a compacted log."""
    logs = host.logs
    host.spawn("kafka-log-retention", _clean_logs, host, replicas)
    host.spawn("PeriodicProducerExpirationCheck", _expire_producers, host)
    host.spawn("kafka-log-cleaner", _clean_compacted, host, log_cleaner)
    host.spawn("kafka-delete-logs", _remove_deleted, host)
    host.spawn("kafka-log-flusher", _flush_logs, host)
    host.spawn("log-dir-presence", _watch_files, host)
    host.spawn("log-line-counts", _write_line_counts)
    for name, key, job in (
        ("kafka-recovery-point-checkpoint", "log.flush.offset.checkpoint.interval.ms", logs.recovery_point_checkpoint),
        (
            "kafka-log-start-offset-checkpoint",
            "log.flush.start.offset.checkpoint.interval.ms",
            logs.log_start_offset_checkpoint,
        ),
        ("highwatermark-checkpoint", "replica.high.watermark.checkpoint.interval.ms", logs.high_watermark_checkpoint),
    ):
        host.spawn(name, _write_checkpoint, host, key, job)
    host.spawn("isr-expiration", replicas.shrink_isrs)


async def supervised(host: Host, name: str, function: Callable[[], Awaitable[None]]) -> None:
    """Run a background task until it returns. A failing directory goes offline; after any failure it is restarted."""
    TURNS_OF.set(None)
    CURRENT.set(None)  # a request may have started it, and what it logs is about others too
    while True:
        try:
            await function()
            return
        except LogDirError as error:
            host.log_dir_failed(error)
        except TreeClosed:
            return  # the broker stops, and what the task would have read is read by the next start
        except Exception:
            logger.exception("[KafkaServer id=%d] Background task %s failed and is restarted", host.node_id, name)
        await trio.sleep(RESTART_DELAY_S)


@contextmanager
def tolerate_storage_failures(host: Host) -> Iterator[None]:
    """Around one of several jobs: a failing directory goes offline, a full disk is logged, and the next job runs."""
    try:
        yield
    except LogDirError as error:
        host.log_dir_failed(error)
    except KafkaError as error:
        logger.warning("[KafkaServer id=%d] %s", host.node_id, error)


# --- the tasks


async def _clean_logs(host: Host, replicas: Replicas) -> None:
    """Retention, and removal of files whose `file.delete.delay.ms` is over."""
    while True:
        await host.clock.pause(host.config.get_int("log.retention.check.interval.ms") / 1000)
        budget = YieldBudget()
        for removed in host.logs.cleanup_logs(host.clock.time_ms()):
            await budget.spend(SLICE_UNITS if removed else ELEMENT)
        now_ms, waiting = host.clock.time_ms(), []
        for log in host.logs:
            await budget.spend()
            if log.config.delete and undecided(log, now_ms) is not None:
                waiting.append(log)
        if waiting:
            from kpybroker.broker.maintenance.time_retention import delete_by_read_timestamps

            await delete_by_read_timestamps(host, waiting)
        for partition in replicas:
            partition.notify_log_start()
            await budget.spend()


async def _expire_producers(host: Host) -> None:
    """Partitions forget the producers that wrote nothing for `producer.id.expiration.ms`."""
    while True:
        await host.clock.pause(host.config.get_int("producer.id.expiration.check.interval.ms") / 1000)
        budget = YieldBudget()
        now_ms = host.clock.time_ms()
        for log in host.logs:
            log.remove_expired_producers(now_ms)
            await budget.spend()


async def _clean_compacted(host: Host, log_cleaner: Callable[[], LogCleaner]) -> None:
    """Compaction, once there is a log to compact: until then none of its code is loaded."""
    if not host.config.get_bool("log.cleaner.enable"):
        return
    while True:
        if host.logs.has_compacted:
            return await log_cleaner().run()
        await host.clock.pause(min(host.config.get_int("log.cleaner.backoff.ms") / 1000, FIRST_LOOK_S))


async def _remove_deleted(host: Host) -> None:
    """`log.segment.delete.delay.ms`, and a topic's `file.delete.delay.ms`, which may be shorter."""
    while True:
        await host.clock.pause(min(host.config.get_int("log.segment.delete.delay.ms") / 1000, DELETIONS_LOOK_S_MAX))
        for job in host.logs.deletions_due(host.clock.time_ms()):
            with tolerate_storage_failures(host):
                await trio.to_thread.run_sync(job)


async def _flush_logs(host: Host) -> None:
    """`log.flush.interval.ms` and a topic's `flush.ms`."""
    while True:
        interval_ms = min(host.config.get_int("log.flush.scheduler.interval.ms"), 3_600_000)
        await host.clock.pause(interval_ms / 1000)
        for job in host.logs.flush_jobs(host.clock.time_ms()):
            with tolerate_storage_failures(host):
                await run_flush(job)


async def _watch_files(host: Host) -> None:
    """What is in use and was taken away must not be acknowledged any longer."""
    while True:
        await trio.sleep(PRESENCE_LOOK_S)
        budget = YieldBudget()
        for _ in host.logs.presence.look(host.logs):
            await budget.spend()


async def _write_line_counts() -> None:
    """How many lines about a client were left out of the log."""
    while True:
        await trio.sleep(LINE_COUNTS_LOOK_S)
        write_counts()


async def _write_checkpoint(host: Host, interval_key: str, checkpoint: Callable[[], Job]) -> None:
    while True:
        await trio.sleep(host.config.get_int(interval_key) / 1000)
        await trio.to_thread.run_sync(checkpoint())
