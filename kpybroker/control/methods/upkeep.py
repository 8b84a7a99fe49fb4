"""What brokers do in the background from time to time, done now: retention and compaction. By the brokers' clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.maintenance.time_retention import delete_by_read_timestamps
from kpybroker.control.errors import ControlError
from kpybroker.control.inside import partitions_of
from kpybroker.control.registry import JSON, methods

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.control.hosted import Hosted
    from kpybroker.storage.log.log import Log


async def apply_retention(hosted: Hosted, topic: str | None = None) -> JSON:
    """Delete the segments that retention allows to delete. Returns the log start of each partition that has one."""
    budget = YieldBudget()
    for broker, log in _logs(hosted, topic):
        now_ms = broker.clock.time_ms()
        log.remove_expired_producers(now_ms)
        if log.config.delete or not log.config.compact:
            for removed in broker.logs.delete_old_segments(log, now_ms):
                await budget.spend(SLICE_UNITS if removed else ELEMENT)
            await delete_by_read_timestamps(broker, [log])
        partition = broker.replicas.partition(*log.partition)
        if partition is not None:
            partition.notify_log_start()
    return {f"{log.partition}": log.log_start_offset for _, log in _logs(hosted, topic)}


async def compact(hosted: Hosted, topic: str | None = None) -> JSON:
    """Compact topics with `cleanup.policy=compact` up to their ends, however few of their records are superseded.

    `min.compaction.lag.ms` and open transactions still bound what is compacted, and tombstones stay for
    `delete.retention.ms`: advance the clock. Returns the offset up to which each partition is compacted."""
    logs = [(broker, log) for broker, log in _logs(hosted, topic) if log.config.compact]
    if not logs:
        what = "no topic" if topic is None else f"`{topic}` is not a topic that"
        raise ControlError(f"{what} has cleanup.policy=compact", "set it with the topic's config", status=409)
    for broker, log in logs:
        if log.active_segment.size:
            log.roll(broker.clock.time_ms())
        await broker.log_cleaner.clean_now(log)
    return {f"{log.partition}": log.cleaner_offset for _, log in logs}


def _logs(hosted: Hosted, topic: str | None) -> Iterator[tuple[Broker, Log]]:
    if topic is not None:
        partitions_of(hosted, topic)
    for broker in list(hosted.brokers.values()):
        for log in broker.logs:
            if topic in (None, log.partition.topic) and not log.is_closed:
                yield broker, log


METHODS = methods(apply_retention, compact)
