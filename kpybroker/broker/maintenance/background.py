"""What runs beside the requests: retention, flushing, checkpoints, deletions, and the supervision of it all.

Every fsync runs in a thread; the loop only decides what is to be synced and notes that it was. Intervals are Kafka's
keys.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget, run_flush
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

log = logging.getLogger("kafka.server.KafkaServer")

RESTART_DELAY_S = 1.0
FIRST_LOOK_S = 1.0
DELETIONS_LOOK_S_MAX = 1.0

GC_THRESHOLDS = (5_000, 3, 1_000_000)
"""A young collection looks at 20,000 objects at most: the loop is held for 10 ms where ten times as many take 70. No
full one by itself, for the same reason."""
GC_INTERVAL_S = 60.0
GC_YOUNG_COLLECTIONS_MIN = 100


async def supervised(broker: Broker, name: str, function: Callable[[], Awaitable[None]]) -> None:
    """Run a background task for the broker's life: a failing directory goes offline, any other failure restarts it."""
    while True:
        try:
            await function()
            return
        except LogDirError as error:
            broker.log_dir_failed(error)
        except Exception:
            log.exception("[KafkaServer id=%d] Background task %s failed and is restarted", broker.node_id, name)
        await trio.sleep(RESTART_DELAY_S)


async def clean_logs(broker: Broker) -> None:
    """Retention, and removal of files whose `file.delete.delay.ms` has passed."""
    while True:
        await trio.sleep(broker.config.get_int("log.retention.check.interval.ms") / 1000)
        budget = YieldBudget()
        for removed in broker.logs.cleanup_logs(broker.clock.time_ms()):
            await budget.spend(SLICE_UNITS if removed else ELEMENT)
        for partition in broker.replicas:
            partition.notify_log_start()
            await budget.spend()


async def clean_compacted(broker: Broker) -> None:
    """Compaction, once there is a log to compact: until then nothing of it is loaded."""
    if not broker.config.get_bool("log.cleaner.enable"):
        return
    while True:
        if any(log.config.compact for log in broker.logs):
            return await broker.log_cleaner.run()
        await trio.sleep(min(broker.config.get_int("log.cleaner.backoff.ms") / 1000, FIRST_LOOK_S))


async def remove_deleted(broker: Broker) -> None:
    """`log.segment.delete.delay.ms`, and a topic's `file.delete.delay.ms`, which may be shorter."""
    while True:
        await trio.sleep(min(broker.config.get_int("log.segment.delete.delay.ms") / 1000, DELETIONS_LOOK_S_MAX))
        for job in broker.logs.deletions_due(broker.clock.time_ms()):
            with tolerate_storage_failures(broker):
                await trio.to_thread.run_sync(job)


async def flush_logs(broker: Broker) -> None:
    """`log.flush.interval.ms` and a topic's `flush.ms`."""
    while True:
        interval_ms = min(broker.config.get_int("log.flush.scheduler.interval.ms"), 3_600_000)
        await trio.sleep(interval_ms / 1000)
        for job in broker.logs.flush_jobs(broker.clock.time_ms()):
            with tolerate_storage_failures(broker):
                await run_flush(job)


async def checkpoint_recovery_points(broker: Broker) -> None:
    while True:
        await trio.sleep(broker.config.get_int("log.flush.offset.checkpoint.interval.ms") / 1000)
        await trio.to_thread.run_sync(broker.logs.recovery_point_checkpoint())


async def checkpoint_log_starts(broker: Broker) -> None:
    while True:
        await trio.sleep(broker.config.get_int("log.flush.start.offset.checkpoint.interval.ms") / 1000)
        await trio.to_thread.run_sync(broker.logs.log_start_offset_checkpoint())


async def checkpoint_high_watermarks(broker: Broker) -> None:
    while True:
        await trio.sleep(broker.config.get_int("replica.high.watermark.checkpoint.interval.ms") / 1000)
        await trio.to_thread.run_sync(broker.logs.high_watermark_checkpoint())


async def shrink_isrs(broker: Broker) -> None:
    """`replica.lag.time.max.ms`."""
    await broker.replicas.shrink_isrs()


async def collect_garbage(broker: Broker) -> None:
    """Full collections of cycles, away from requests, and only after much was made that stayed.

    One holds the loop for as long as it takes to look at every container there is, so what survives is not looked at
    again: reference counts free it, unless it becomes part of a cycle.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    while True:
        await trio.sleep(GC_INTERVAL_S)
        if gc.get_count()[2] >= GC_YOUNG_COLLECTIONS_MIN:
            gc.collect()
            gc.freeze()


@contextmanager
def tolerate_storage_failures(broker: Broker) -> Iterator[None]:
    """For one of several jobs: a failing directory goes offline, a full disk is noted, and the others are done."""
    try:
        yield
    except LogDirError as error:
        broker.log_dir_failed(error)
    except KafkaError as error:
        log.warning("[KafkaServer id=%d] %s", broker.node_id, error)


TASKS: dict[str, Callable[[Broker], Awaitable[None]]] = {
    "kafka-log-retention": clean_logs,
    "kafka-log-cleaner": clean_compacted,
    "kafka-delete-logs": remove_deleted,
    "kafka-log-flusher": flush_logs,
    "kafka-recovery-point-checkpoint": checkpoint_recovery_points,
    "kafka-log-start-offset-checkpoint": checkpoint_log_starts,
    "highwatermark-checkpoint": checkpoint_high_watermarks,
    "isr-expiration": shrink_isrs,
    "garbage-collection": collect_garbage,
}
