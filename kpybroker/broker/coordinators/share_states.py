"""The share coordinators of this broker: one shard for each partition of `__share_group_state` that it leads (KIP-932).

`partitions` loads them. Two tasks here, at Kafka's intervals, write snapshots of states that have had none for long and
delete what later snapshots have made redundant. States of deleted topics are forgotten when the metadata say so.

Not here: the rules (`core.share_coordinator`), the APIs and the creation of the topic (`handlers`), finding the
coordinator of a share partition (`share_persister`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.kind import CoordinatorKind
from kpybroker.broker.coordinators.partitions import CoordinatorPartitions
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.share_coordinator.machine import (
    Asked,
    Result,
    ShareCoordinatorConfig,
    ShareCoordinatorMachine,
    StateRequest,
)
from kpybroker.core.share_coordinator.records import decode_record, encode_record
from kpybroker.core.share_coordinator.values import WriteState, state_partition
from kpybroker.core.topic_names import SHARE_GROUP_STATE_TOPIC_NAME
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.coordinators.shard import PendingReply, Shard
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas

NOT_AVAILABLE = "Share coordinator is not available."

logger = logging.getLogger("kafka.coordinator.share.ShareCoordinatorService")


class WriteTimes:
    """Of WriteShareGroupState, since the start: `writes` counts share partitions whose state was written."""

    __slots__ = ("requests", "slowest_ms", "total_ms", "writes")

    def __init__(self) -> None:
        self.requests, self.writes = 0, 0
        self.total_ms, self.slowest_ms = 0.0, 0.0

    def count(self, writes: int, took_ms: float) -> None:
        """A request has its response."""
        self.requests += 1
        self.writes += writes
        self.total_ms += took_ms
        self.slowest_ms = max(self.slowest_ms, took_ms)

    def take_slowest_ms(self) -> float:
        """The longest since the last call."""
        slowest_ms, self.slowest_ms = self.slowest_ms, 0.0
        return slowest_ms


class ShareCoordinators:
    """All share partitions whose state this broker keeps. All methods run on the loop; none but the `async` ones has a
    checkpoint.
    """

    def __init__(self, host: Host, metadata: MetadataCache, replicas: Replicas) -> None:
        self._host = host
        self._metadata = metadata
        config = host.config
        self.config = ShareCoordinatorConfig(
            updates_per_snapshot=config.get_int("share.coordinator.snapshot.update.records.per.snapshot"),
            cold_snapshot_interval_ms=config.get_int("share.coordinator.cold.partition.snapshot.interval.ms"),
        )
        kind = CoordinatorKind(
            topic=SHARE_GROUP_STATE_TOPIC_NAME,
            partitions_key="share.coordinator.state.topic.num.partitions",
            load_buffer_key="share.coordinator.load.buffer.size",
            name=f"ShareCoordinator id={host.node_id}",
            manager_name=f"ShareCoordinator id={host.node_id}",
            contents="states of share partitions",
            logger=logger,
            manager_logger=logger,
            new_machine=lambda leader_epoch: ShareCoordinatorMachine(self.config),
            encode=encode_record,
            decode=decode_record,
            codec=Codec(config.get_int("share.coordinator.state.topic.compression.codec")),
            commit_timeout_s=config.get_int("share.coordinator.write.timeout.ms") / 1000,
            tasks={"share-state-prune": self._run_pruning, "share-state-snapshots": self._run_snapshots},
        )
        self.partitions = CoordinatorPartitions(host, metadata, replicas, kind)
        self.on_elected = self.partitions.on_elected
        self.on_resigned = self.partitions.on_resigned
        self.partition_for = self.partitions.partition_for
        self.stop = self.partitions.stop
        self.times = WriteTimes()
        self._pruned: dict[Partition, int] = {}
        self._topic_ids = metadata.snapshot.topic_ids
        metadata.on_topics_named(self._on_topics_named)

    # --- requests

    def ask(self, group_id: str, asked: Sequence[Asked], *, is_summary: bool = False) -> Steps[list[Result]]:
        """One result for each share partition that is asked about, in this order, when all of them are committed."""
        budget, began_s = YieldBudget(), self._host.clock.monotonic()
        begun: list[Result | PendingReply] = []
        for wanted in asked:
            begun.append(self._begin(group_id, wanted, is_summary))
            yield from budget.steps()
        results: list[Result] = []
        for one in begun:
            results.append(one if isinstance(one, Result) else (yield from one.wait()))
        if asked and isinstance(asked[0], WriteState):
            writes = sum(1 for one in results if one.error is ErrorCode.NONE)
            self.times.count(writes, 1000 * (self._host.clock.monotonic() - began_s))
        return results

    def _begin(self, group_id: str, asked: Asked, is_summary: bool) -> Result | PendingReply:
        name = self._metadata.topic_name(asked.topic_id)
        topic_partitions = 0 if name is None else self._metadata.partition_count(name) or 0
        request = StateRequest(group_id, asked, topic_partitions, is_summary)
        if not self.partitions.is_active:
            return request.result(ErrorCode.COORDINATOR_NOT_AVAILABLE, NOT_AVAILABLE)
        try:
            index = state_partition(request.key, self.partitions.partition_count)
            return self.partitions.shard_at(index).begin(request)
        except KafkaError as error:
            return request.failed(error.code)

    # --- events and time

    def _on_topics_named(self, names: Collection[str]) -> None:
        before, snapshot = self._topic_ids, self._metadata.snapshot
        self._topic_ids = snapshot.topic_ids
        had = (before.get(name) for name in names)
        gone = {topic_id for topic_id in had if topic_id is not None and topic_id not in snapshot.topic_names}
        if gone:
            for shard in list(self.partitions.shards.values()):
                shard.run(shard.machine.delete_topics(gone, shard.now()))

    async def _run_snapshots(self) -> None:
        while True:
            await self._host.clock.pause(self.config.cold_snapshot_interval_ms / 1000)
            await self.snapshot_cold()

    async def snapshot_cold(self) -> None:
        """Write the states that have had no snapshot for the interval, one partition of the topic after the other."""
        budget = YieldBudget()
        for shard in list(self.partitions.shards.values()):
            if not shard.is_closed:
                shard.run(shard.machine.snapshot_cold(shard.now()))
            await budget.spend(1 + len(shard.machine.states))

    async def _run_pruning(self) -> None:
        while True:
            await self._host.clock.pause(
                self._host.config.get_int("share.coordinator.state.topic.prune.interval.ms") / 1000
            )
            await self.prune()

    async def prune(self) -> None:
        """Delete what is redundant and committed, in each partition of the topic that is led here."""
        budget = YieldBudget()
        for shard in list(self.partitions.shards.values()):
            if not shard.is_closed:
                self._prune(shard)
            await budget.spend(1 + len(shard.machine.states))

    def pruned(self) -> list[tuple[Partition, int]]:
        """Up to where partitions that are led here were pruned by this broker."""
        led = {shard.partition for shard in self.partitions.shards.values()}
        self._pruned = {partition: offset for partition, offset in self._pruned.items() if partition in led}
        return list(self._pruned.items())

    def _prune(self, shard: Shard[ShareCoordinatorMachine]) -> None:
        offset, partition = shard.machine.redundant_offset, shard.partition
        try:
            if offset is None or offset <= partition.online_log().log_start_offset:
                return
            if offset > partition.high_watermark:
                return  # the next time it is committed
            logger.debug("Pruning records in %s-%d till offset %d.", partition.topic, partition.index, offset)
            partition.delete_records(offset)
            self._pruned[partition] = offset
        except KafkaError as error:
            logger.error(
                "Cannot prune %s-%d till offset %d: %s", partition.topic, partition.index, offset, error.code.name
            )
        except LogDirError as error:
            self._host.log_dir_failed(error)
