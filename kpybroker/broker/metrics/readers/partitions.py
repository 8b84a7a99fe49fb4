"""Partitions: replication, logs, and kafka_exporter's view of them, in one walk over all that are here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.reading import Reading, Value, single
from kpybroker.metrics.tables import exporter as e
from kpybroker.metrics.tables import log as g
from kpybroker.metrics.tables import replication as r

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.core.replication.replica import LeaderState
    from kpybroker.storage.log.log import Log

PARTITION_COST: Final = 3
"""Units of a YieldBudget that a partition costs."""
REPLICA: Final = "Replica"

OF_PARTITION: Final = (
    *(r.P_UNDER_REPLICATED, r.P_UNDER_MIN_ISR, r.P_AT_MIN_ISR),
    *(r.P_REPLICAS, r.P_IN_SYNC, r.P_STABLE_LAG),
)
OF_LOG: Final = (g.SIZE, g.START_OFFSET, g.END_OFFSET, g.SEGMENTS)
SUMS: Final = (
    *(r.LEADER_COUNT, r.UNDER_REPLICATED, r.UNDER_MIN_ISR, r.AT_MIN_ISR),
    *(r.OFFLINE_REPLICAS, r.PRODUCER_IDS),
)
OF_EXPORTER: Final = (
    *(e.CURRENT_OFFSET, e.OLDEST_OFFSET, e.LEADER, e.REPLICAS, e.IN_SYNC, e.PREFERRED, e.UNDER_REPLICATED),
)


class _Columns:
    """Values by family. A tuple of each partition would be an object for the garbage collection to visit."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.rows: list[tuple[str, ...]] = []
        self._families = families
        self._columns: list[list[Value]] = [[] for _ in families]

    def append(self, tags: tuple[str, ...], values: Sequence[Value]) -> None:
        """One more row."""
        self.rows.append(tags)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def reading(self) -> Reading:
        return Reading(self.rows, list(zip(self._families, self._columns, strict=True)))


class PartitionsReader:
    """`kafka.cluster:type=Partition`, `kafka.log:type=Log`, the sums of `kafka.server:type=ReplicaManager`, and the
    exporter's."""

    families: Final = (*OF_PARTITION, *OF_LOG, *OF_EXPORTER, *SUMS, r.MAX_LAG)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """The partitions as they are when the walk reaches them."""
        of_partition, of_log, of_exporter = _Columns(OF_PARTITION), _Columns(OF_LOG), _Columns(OF_EXPORTER)
        leaders = under_replicated = under_min = at_min = offline = producers = 0
        for partition in self._broker.replicas:
            await budget.spend(PARTITION_COST)
            log, leader = partition.log, partition.leader
            offline += partition.is_offline
            tags = (partition.topic, str(partition.index))
            state = (0, 0, 0, 0, 0, 0)
            if log is not None:
                producers += len(log.producers.producers)
                of_log.append(tags, (log.size, log.log_start_offset, log.log_end_offset, len(log.segments_map)))
                if leader is not None:
                    state = _state(log, leader)
                    leaders += 1
                    under_replicated += state[0]
                    under_min += state[1]
                    at_min += state[2]
                    of_exporter.append((tags[1], tags[0]), _exported(partition, log, state))
            of_partition.append(tags, state)
        return [
            of_partition.reading(),
            of_log.reading(),
            of_exporter.reading(),
            single(*zip(SUMS, (leaders, under_replicated, under_min, at_min, offline, producers), strict=True)),
            single((r.MAX_LAG, self._broker.replicas.fetchers.max_lag), tags=(REPLICA,)),
        ]


class ReplicationReader:
    """What `kafka.server:type=ReplicaManager` has without a walk over partitions."""

    families: Final = (r.PARTITION_COUNT, r.ISR_SHRINKS, r.ISR_EXPANDS, r.FAILED_ISR_UPDATES)

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now."""
        traffic = self._replicas.traffic
        return [
            single(
                (r.PARTITION_COUNT, len(self._replicas)),
                (r.ISR_SHRINKS, traffic.isr_shrinks),
                (r.ISR_EXPANDS, traffic.isr_expands),
                (r.FAILED_ISR_UPDATES, traffic.failed_isr_updates),
            )
        ]


def _state(log: Log, leader: LeaderState) -> tuple[int, int, int, int, int, int]:
    """Values of OF_PARTITION."""
    replicas, in_sync = len(leader.followers) + 1, len(leader.isr)
    wanted = min(log.config.min_insync_replicas, replicas)
    lag = log.high_watermark - log.last_stable_offset
    return int(in_sync < replicas), int(in_sync < wanted), int(in_sync == wanted), replicas, in_sync, lag


def _exported(partition: Partition, log: Log, state: tuple[int, ...]) -> tuple[Value, ...]:
    """Values of OF_EXPORTER."""
    preferred = int(partition.replicas[:1] == (partition.broker_id,))
    return (
        *(log.high_watermark, log.log_start_offset, partition.broker_id),
        *(state[3], state[4], preferred, state[0]),
    )
