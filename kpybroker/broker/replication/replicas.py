"""The partitions this broker hosts, and the controller's orders about them: Kafka's `ReplicaManager`.

LeaderAndIsr makes a partition and StopReplica removes it; nothing else does. The controller's requests are carried out
one at a time under `state_change_lock` (Kafka's replicaStateChangeLock), whichever connection they arrive on. Other
tasks run between the partitions of one request, but each partition changes without a checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.replication.controller_requests import (
    PartitionError,
    PartitionState,
    StopOrder,
    TopicOrder,
    add_errors,
    deleted_elsewhere,
    stop_orders,
    topic_orders,
)
from kpybroker.broker.replication.follower_fetchers import FollowerFetchers
from kpybroker.broker.replication.log_dir_moves import LogDirMoves
from kpybroker.broker.replication.partition import Partition
from kpybroker.broker.replication.state_change_log import (
    TracedTransitions,
    leader_text,
    topic_id_text,
    traced_transitions,
)
from kpybroker.broker.replication.traffic import Traffic
from kpybroker.core import metadata_version as mv
from kpybroker.core.leader_and_isr import NO_LEADER
from kpybroker.core.replication.follower import FollowerLog, initial_state
from kpybroker.core.topic_names import partition_invalid_reason
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.isr_changes import IsrChanges
    from kpybroker.broker.replication.isr_writes import IsrWrites
    from kpybroker.core.replication.replica import IsrChange
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.server.ReplicaManager")
state_log = logging.getLogger("state.change.logger")


class ReplicaEvents(NamedTuple):
    """What the rest of the broker does when a replica changes. None of these may block."""

    elected: Callable[[Partition], None]
    """This broker begins to lead the partition."""
    resigned: Callable[[Partition], None]
    """This broker follows from now on, or the replica is offline or about to be deleted."""
    log_deleted: Callable[[], None]
    """A log was removed together with its replica."""
    segment_rolled: Callable[[Partition], None]
    """A follower's log has a new segment: the old one should reach the disk soon."""
    lacked_space: Callable[[], None]
    """A replica could not begin because its disk is full. The controller takes it for offline until it asks again."""


class Replicas:
    """All partitions hosted here. Iteration is over a copy; `len` counts offline ones as well."""

    def __init__(
        self, host: Host, metadata: MetadataCache, configs: ConfigRepository, peers: Peers, events: ReplicaEvents
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._configs = configs
        self._peers = peers
        self._events = events
        self._partitions: dict[tuple[str, int], Partition] = {}
        self.topic_names: dict[bytes, str] = {}
        """Of topics hosted here, by id."""
        self.traffic = Traffic()
        self.controller_epoch = 0
        self.state_change_lock = trio.Lock()
        self.flush_soon = events.segment_rolled
        self.fetchers = FollowerFetchers(host, peers, self)
        configs.on_broker_change(self.fetchers.resize)
        self.log_dir_moves = LogDirMoves(host, metadata, self.partition)
        self._isr_changes: IsrChanges | IsrWrites | None = None

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def leader_count(self) -> int:
        """How many partitions this broker leads."""
        return sum(partition.leader is not None for partition in self._partitions.values())

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition, or None if it is not hosted here."""
        return self._partitions.get((topic, index))

    def hosted(self, topic: str, index: int) -> Partition:
        """The partition. Raises the error of `not_hosted` for one that is not here."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self.not_hosted(topic, index)
        return partition

    def not_hosted(self, topic: str, index: int) -> KafkaError:
        """NOT_LEADER_OR_FOLLOWER if the cluster has the partition, so that the client looks for its leader again; else
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        is_known = self._metadata.contains(topic, index)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # --- what partitions ask of their host

    @property
    def lag_time_max_ms(self) -> int:
        """`replica.lag.time.max.ms`: how long a replica may be behind and stay in the ISR."""
        return self._host.config.get_int("replica.lag.time.max.ms")

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds."""
        return self._host.clock.time_ms()

    def is_alive(self, broker_id: int) -> bool:
        """Whether the metadata lists the broker as live."""
        return self._metadata.is_alive(broker_id)

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        """Ask the controller for a change, or write it to the tree below inter-broker protocol 2.7-IV2."""
        if self._isr_changes is None:
            self._isr_changes = self._start_isr_changes()
        self._isr_changes.submit(partition, change)

    def _start_isr_changes(self) -> IsrChanges | IsrWrites:
        """Imported here: a single broker never needs them."""
        host = self._host
        if mv.is_alter_partition_supported(mv.parse(host.config.get_str("inter.broker.protocol.version"))):
            from kpybroker.broker.replication.isr_changes import IsrChanges

            changes = IsrChanges(host, self._peers, self.traffic)
            host.spawn("alter-partition", changes.run)
            return changes
        from kpybroker.broker.replication.isr_writes import IsrWrites

        writes = IsrWrites(host, self.traffic)
        host.spawn("isr-writes", writes.run)
        host.spawn("isr-change-propagation", writes.notify_controller)
        return writes

    # --- LeaderAndIsr

    async def become_leader_or_follower(
        self, request: LeaderAndIsrRequest, version: int, correlation_id: int = 0
    ) -> LeaderAndIsrResponse:
        """Lead and follow as the controller says. The caller holds the lock and has checked the broker epoch."""
        if request.controller_epoch < self.controller_epoch:
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        response, budget = LeaderAndIsrResponse(), YieldBudget()
        traced = traced_transitions(self._host.node_id, request, correlation_id)
        for order in topic_orders(request):
            errors = []
            for state in order.states:
                code = await self._within(budget, self._take_state, request, correlation_id, order, state, traced)
                errors.append(
                    PartitionError(topic_name=order.name, partition_index=state.partition_index, error_code=code)
                )
            add_errors(response, order, errors, version)
            await budget.spend()
        self.fetchers.end_idle()
        return response

    async def _within(self, budget: YieldBudget, change: Callable[..., ErrorCode], *args: Any) -> ErrorCode:
        """Change one partition. A change that makes or deletes files uses up the budget by itself."""
        logs = len(self._host.logs)
        code = change(*args)
        await budget.spend(ELEMENT if len(self._host.logs) == logs else SLICE_UNITS)
        return code

    def _take_state(
        self,
        request: LeaderAndIsrRequest,
        correlation_id: int,
        order: TopicOrder,
        state: PartitionState,
        traced: TracedTransitions | None,
    ) -> ErrorCode:
        try:
            self._become(order, state, traced)
        except KafkaError as error:
            state_log.log(
                logging.INFO if error.code == ErrorCode.STALE_CONTROLLER_EPOCH else logging.ERROR,
                "[Broker id=%d] Ignoring LeaderAndIsr request from controller %d with correlation id %d epoch %d for "
                "partition %s-%d since %s",
                *(self._host.node_id, request.controller_id, correlation_id, request.controller_epoch),
                *(order.name, state.partition_index, error),
            )
            partition = self._partitions.get(TopicPartition(order.name, state.partition_index))
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR and (partition is None or not partition.is_offline):
                self._events.lacked_space()
            return error.code
        except LogDirError as error:
            self._host.log_dir_failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _become(self, order: TopicOrder, state: PartitionState, traced: TracedTransitions | None) -> None:
        topic_id = order.topic_id
        key = TopicPartition(order.name, state.partition_index)
        partition = self._partitions.get(key)
        if partition is None:
            if (reason := partition_invalid_reason(*key)) is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            partition = Partition(*key, ZERO_UUID, self._host.node_id, None, self)
            partition.traffic = self.traffic.host(order.name)
            self._partitions[key] = partition
        if self._only_adds_id(state, partition, topic_id):
            partition.online_log().assign_topic_id(topic_id)
            partition.topic_id = topic_id
            self.fetchers.set_topic_id(key, topic_id)
            return
        self._check(state, partition, topic_id)
        self.fetchers.leave((key,))
        if partition.log is None:
            partition.log = log = self._log(key, topic_id, is_new=state.is_new)
            del self._partitions[key]
            self._partitions[log.partition] = partition  # of equal keys one is kept
            self.log_dir_moves.resume(partition)
        if topic_id != ZERO_UUID:
            partition.log.assign_topic_id(topic_id)
            partition.topic_id = topic_id
            self.topic_names[topic_id] = order.name
        partition.controller_epoch = state.controller_epoch
        if traced is not None:
            traced.starting(order.name, state)
        if state.leader == self._host.node_id:
            self._lead(partition, state)
        else:
            self._follow(partition, state)
        if traced is not None:
            traced.completed(order.name, state)

    @staticmethod
    def _only_adds_id(state: PartitionState, partition: Partition, topic_id: bytes) -> bool:
        """A cluster that is upgraded to topic ids assigns them without a new leader epoch."""
        is_known = state.leader_epoch == partition.leader_epoch and partition.log is not None
        return is_known and partition.topic_id == ZERO_UUID != topic_id

    def _check(self, state: PartitionState, partition: Partition, topic_id: bytes) -> None:
        """The order must be about this very topic and newer than the last one. Raises KafkaError."""
        if partition.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if topic_id not in (ZERO_UUID, partition.topic_id) and partition.topic_id != ZERO_UUID:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        if state.leader_epoch == partition.leader_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"its associated leader epoch {state.leader_epoch} matches the current leader epoch",
            )
        if state.leader_epoch < partition.leader_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"its associated leader epoch {state.leader_epoch} is smaller than the current leader epoch "
                f"{partition.leader_epoch}",
            )
        if self._host.node_id not in state.replicas:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this broker is not one of its replicas")

    def _log(self, key: TopicPartition, topic_id: bytes, *, is_new: bool) -> Log:
        config = self._configs.topic_config(key.topic)
        return self._host.logs.get_or_create(*key, topic_id, config, self.now_ms(), is_new=is_new)

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        was_leader = partition.leader is not None
        previous = leader_text(partition.leader_id), partition.leader_epoch
        partition.lead(state.leader_epoch, state.partition_epoch, state.isr, state.replicas)
        log = partition.online_log()
        state_log.info(
            "[Broker id=%d] Leader %s-%d with topic id %s starts at leader epoch %d from offset %d with partition "
            "epoch %d, high watermark %d, ISR [%s], adding replicas [%s] and removing replicas [%s] . Previous leader "
            "%s and previous leader epoch was %d.",
            *(self._host.node_id, partition.topic, partition.index, topic_id_text(partition.topic_id)),
            *(partition.leader_epoch, log.log_end_offset, state.partition_epoch, log.high_watermark),
            *(",".join(map(str, ids)) for ids in (state.isr, state.adding_replicas, state.removing_replicas)),
            *previous,
        )
        if not was_leader:
            self._events.elected(partition)

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        log = partition.online_log()
        state_log.info(
            "[Broker id=%d] Follower %s-%d starts at leader epoch %d from offset %d with partition epoch %d and high "
            "watermark %d. Current leader is %d. Previous leader %s and previous leader epoch was %d.",
            *(self._host.node_id, partition.topic, partition.index, state.leader_epoch, log.log_end_offset),
            *(state.partition_epoch, log.high_watermark, state.leader),
            *(leader_text(partition.leader_id), partition.leader_epoch),
        )
        partition.follow(state.leader, state.leader_epoch, state.replicas)
        self._events.resigned(partition)
        if state.leader != NO_LEADER:
            self._fetch(partition)

    def _fetch(self, partition: Partition) -> None:
        log = partition.online_log()
        version = mv.parse(self._host.config.get_str("inter.broker.protocol.version"))
        state = initial_state(
            partition.topic,
            partition.index,
            partition.topic_id,
            partition.leader_epoch,
            FollowerLog(log.log_end_offset, log.high_watermark, log.latest_epoch),
            truncates_on_fetch=mv.truncates_on_fetch(version),
        )
        self.fetchers.follow(partition.leader_id, state)

    # --- truncating a follower's log

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Truncate a follower's log to `offset`. The caller holds `state_change_lock`. Raises LogDirError."""
        self._check_follows(partition)
        log = partition.online_log()
        if offset < log.high_watermark:
            logger.warning(
                "[ReplicaManager broker=%d] Truncating %s-%d to offset %d below high watermark %d",
                self._host.node_id,
                partition.topic,
                partition.index,
                offset,
                log.high_watermark,
            )
        if offset < log.log_end_offset:
            job = self._host.logs.prepare_truncation({TopicPartition(partition.topic, partition.index): offset})
            await trio.to_thread.run_sync(job)
        if partition.log is log:  # its directory may have failed in the thread
            self._check_follows(partition)
            log.truncate_to(offset, now_ms=self.now_ms())
            self.log_dir_moves.truncated(partition)
            partition.notify(0)

    def _check_follows(self, partition: Partition) -> None:
        assert self.state_change_lock.locked(), f"{partition.log} truncated without the lock"
        assert partition.leader is None, f"{partition.log} truncated while this broker leads"

    def restart_log(self, partition: Partition, offset: int) -> None:
        """Discard all of a follower's records; its log starts again at `offset`. Raises LogDirError.

        The caller holds `state_change_lock`.
        """
        self._check_follows(partition)
        partition.online_log().truncate_fully_and_start_at(offset, now_ms=self.now_ms())
        self.log_dir_moves.truncated(partition)
        partition.notify(0)

    # --- StopReplica

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop serving replicas and, where the order says so, delete their logs. The caller holds the lock."""
        if request.controller_epoch < self.controller_epoch:
            return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        errors, budget = [], YieldBudget()
        for order in stop_orders(request):
            code = await self._within(budget, self._stop, order)
            errors.append(
                StopReplicaResponse.StopReplicaPartitionError(
                    topic_name=order.topic, partition_index=order.partition, error_code=code
                )
            )
        await self._end_stops()
        return StopReplicaResponse(partition_errors=errors)

    async def delete_left_behind(self, request: UpdateMetadataRequest) -> None:
        """Delete replicas of topics that are being deleted which were taken from this broker while it had no session.

        No request said so, and with a Kafka broker they stay until someone deletes their directories: a topic that is
        made again under the name has no leader where such a replica is in its place. The caller holds the lock.
        """
        budget, some = YieldBudget(), False
        for topic_id, order in deleted_elsewhere(request, self._host.node_id):
            log = self._host.logs.get(order.topic, order.partition)
            if log is not None and log.topic_id == topic_id:
                logger.warning("Deleting %s: it was left behind, and its topic is being deleted", log.partition)
                await self._within(budget, self._stop, order)
                some = True
        if some:
            await self._end_stops()

    async def _end_stops(self) -> None:
        self.fetchers.end_idle()
        try:
            await trio.to_thread.run_sync(self._host.logs.sync_deletions())
        except LogDirError as error:
            self._host.log_dir_failed(error)

    def _stop(self, order: StopOrder) -> ErrorCode:
        key = TopicPartition(order.topic, order.partition)
        partition = self._partitions.get(key)
        if partition is not None and partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition is not None and 0 <= order.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        self.fetchers.leave((key,))
        try:
            if partition is not None and order.delete:
                self._events.resigned(partition)
                partition.take_offline()
                del self._partitions[key]
                self.traffic.drop(key.topic)
                self.topic_names.pop(partition.topic_id, None)
            if order.delete:
                self._host.logs.delete(*key, self.now_ms())
                self._events.log_deleted()
        except LogDirError as error:
            self._host.log_dir_failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    # --- in the background

    async def shrink_isrs(self) -> None:
        """Look for followers that lag, twice in every `replica.lag.time.max.ms` (Kafka's isr-expiration)."""
        while True:
            await self._host.clock.pause(self.lag_time_max_ms / 2000)
            budget = YieldBudget()
            for partition in self:
                partition.maybe_shrink_isr()
                await budget.spend()

    # --- failures

    def log_dir_failed(self, directory: str) -> None:
        """Every partition with its log in this directory stops serving until the broker restarts."""
        for key, partition in list(self._partitions.items()):
            if partition.log is not None and partition.log.log_dir == directory:
                self.fetchers.leave((TopicPartition(*key),))
                self._events.resigned(partition)
                partition.take_offline()
                partition.is_offline = True
        self.fetchers.end_idle()
