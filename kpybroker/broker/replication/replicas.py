"""The partitions this broker hosts, and the controller's orders about them: Kafka's `ReplicaManager`.

A partition appears by LeaderAndIsr and goes by StopReplica, never otherwise. The controller's requests are carried out
one at a time, whoever sent them, under `state_change_lock` (Kafka's replicaStateChangeLock); between the partitions of
one request others have their turn, and each partition changes in one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.replication.follower_fetchers import Fetchers
from kpybroker.broker.replication.log_dir_moves import LogDirMoves
from kpybroker.broker.replication.partition import NO_LEADER, Partition
from kpybroker.core import metadata_version as mv
from kpybroker.core.replication.follower import initial_state
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.names import TopicPartition
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.isr_changes import IsrChanges
    from kpybroker.broker.replication.isr_writes import IsrWrites
    from kpybroker.core.replication.replica import IsrChange
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.server.ReplicaManager")
state_log = logging.getLogger("state.change.logger")

ZERO_UUID = bytes(16)
DELETED_LEADER_EPOCH = -2  # EpochDuringDelete: the topic goes, whatever the epoch
NO_EPOCH = -1  # a controller too old to say

PartitionState = LeaderAndIsrRequest.LeaderAndIsrPartitionState
PartitionError = LeaderAndIsrResponse.LeaderAndIsrPartitionError
TopicError = LeaderAndIsrResponse.LeaderAndIsrTopicError


class Replicas:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitions: dict[tuple[str, int], Partition] = {}
        self.topic_names: dict[bytes, str] = {}
        """Of topics hosted here, by id."""
        self.controller_epoch = 0
        self.state_change_lock = trio.Lock()
        self.fetchers = Fetchers(broker)
        self.log_dir_moves = LogDirMoves(broker)
        self._isr_changes: IsrChanges | IsrWrites | None = None

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def leader_count(self) -> int:
        return sum(partition.leader is not None for partition in self._partitions.values())

    def partition(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    # --- what partitions ask of their host

    @property
    def lag_time_max_ms(self) -> int:
        return self._broker.config.get_int("replica.lag.time.max.ms")

    def now_ms(self) -> int:
        return self._broker.clock.time_ms()

    def is_alive(self, broker_id: int) -> bool:
        return self._broker.metadata.is_alive(broker_id)

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        if self._isr_changes is None:
            self._isr_changes = self._start_isr_changes()
        self._isr_changes.submit(partition, change)

    def _start_isr_changes(self) -> IsrChanges | IsrWrites:
        """Imported here: a broker alone has none."""
        broker = self._broker
        if mv.is_alter_partition_supported(mv.parse(broker.config.get_str("inter.broker.protocol.version"))):
            from kpybroker.broker.replication.isr_changes import IsrChanges

            asking = IsrChanges(broker)
            broker.spawn("alter-partition", asking.run)
            return asking
        from kpybroker.broker.replication.isr_writes import IsrWrites

        writing = IsrWrites(broker)
        broker.spawn("isr-writes", writing.run)
        broker.spawn("isr-change-propagation", writing.tell_controller)
        return writing

    def hosted(self, topic: str, index: int) -> Partition:
        """The partition, or what Kafka answers for one that is not here.

        NOT_LEADER_OR_FOLLOWER when the cluster knows it, so that the client looks for its leader anew, else
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self.not_hosted(topic, index)
        return partition

    def not_hosted(self, topic: str, index: int) -> KafkaError:
        is_known = self._broker.metadata.contains(topic, index)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # --- LeaderAndIsr

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest, version: int) -> LeaderAndIsrResponse:
        """Take the controller's word on who leads what. The handler has the lock, and has checked the broker epoch."""
        if request.controller_epoch < self.controller_epoch:
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        response, budget = LeaderAndIsrResponse(), YieldBudget()
        for state in request.ungrouped_partition_states:
            code = await self._in_turn(budget, self._take_partition_state, request, state, state.topic_name, ZERO_UUID)
            response.partition_errors.append(
                PartitionError(topic_name=state.topic_name, partition_index=state.partition_index, error_code=code)
            )
        for topic in request.topic_states:
            name, topic_id = topic.topic_name, topic.topic_id
            errors = []
            for state in topic.partition_states:
                code = await self._in_turn(budget, self._take_partition_state, request, state, name, topic_id)
                errors.append(PartitionError(topic_name=name, partition_index=state.partition_index, error_code=code))
            if version >= 5:
                response.topics.append(TopicError(topic_id=topic_id, partition_errors=errors))
            else:
                response.partition_errors += errors
            await budget.spend()
        self.fetchers.end_idle()
        return response

    async def _in_turn(self, budget: YieldBudget, change: Callable[..., ErrorCode], *args: Any) -> ErrorCode:
        """One partition's change; others run after some of them, and after each that made or deleted files."""
        logs = len(self._broker.logs)
        code = change(*args)
        await budget.spend(ELEMENT if len(self._broker.logs) == logs else SLICE_UNITS)
        return code

    def _take_partition_state(
        self, request: LeaderAndIsrRequest, state: PartitionState, name: str, topic_id: bytes
    ) -> ErrorCode:
        try:
            self._become(request, state, name, topic_id)
        except KafkaError as error:
            state_log.log(
                logging.INFO if error.code == ErrorCode.STALE_CONTROLLER_EPOCH else logging.ERROR,
                "[Broker id=%d] Cannot take the state of partition %s-%d from controller %d epoch %d: %s",
                self._broker.node_id,
                name,
                state.partition_index,
                request.controller_id,
                request.controller_epoch,
                error,
            )
            return error.code
        except LogDirError as error:
            self._broker.log_dir_failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _become(self, request: LeaderAndIsrRequest, state: PartitionState, name: str, topic_id: bytes) -> None:
        key = TopicPartition(name, state.partition_index)
        partition = self._partitions.get(key)
        if partition is None:
            partition = Partition(*key, ZERO_UUID, self._broker.node_id, None, self)
            self._partitions[key] = partition
        if self._is_id_alone(state, partition, topic_id):
            partition.online_log().assign_topic_id(topic_id)
            partition.topic_id = topic_id
            self.fetchers.set_topic_id(key, topic_id)
            return
        self._check(state, partition, topic_id)
        self.fetchers.leave((key,))
        if partition.log is None:
            partition.log = self._log(key, topic_id, is_new=state.is_new)
            self.log_dir_moves.resume(partition)
        if topic_id != ZERO_UUID:
            partition.log.assign_topic_id(topic_id)
            partition.topic_id = topic_id
            self.topic_names[topic_id] = name
        partition.controller_epoch = state.controller_epoch
        if state.leader == self._broker.node_id:
            self._lead(partition, state)
        else:
            self._follow(partition, state)

    @staticmethod
    def _is_id_alone(state: PartitionState, partition: Partition, topic_id: bytes) -> bool:
        """The upgrade to topic ids comes without a new epoch."""
        is_known = state.leader_epoch == partition.leader_epoch and partition.log is not None
        return is_known and partition.topic_id == ZERO_UUID != topic_id

    def _check(self, state: PartitionState, partition: Partition, topic_id: bytes) -> None:
        """What the controller says must be about this very topic, and news."""
        if partition.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if topic_id not in (ZERO_UUID, partition.topic_id) and partition.topic_id != ZERO_UUID:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        if state.leader_epoch == partition.leader_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"its leader epoch {state.leader_epoch} matches the current leader epoch",
            )
        if state.leader_epoch < partition.leader_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"its leader epoch {state.leader_epoch} is smaller than the current one {partition.leader_epoch}",
            )
        if self._broker.node_id not in state.replicas:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this broker is not one of its replicas")

    def _log(self, key: TopicPartition, topic_id: bytes, *, is_new: bool) -> Log:
        config = self._broker.configs.topic_config(key.topic)
        return self._broker.logs.get_or_create(*key, topic_id, config, self.now_ms(), is_new=is_new)

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        was_leader = partition.leader is not None
        partition.lead(state.leader_epoch, state.partition_epoch, state.isr, state.replicas)
        log = partition.online_log()
        state_log.info(
            "[Broker id=%d] Leader %s-%d with topic id %s starts at leader epoch %d from offset %d with partition "
            "epoch %d, high watermark %d, ISR %s",
            self._broker.node_id,
            partition.topic,
            partition.index,
            partition.topic_id.hex(),
            partition.leader_epoch,
            log.log_end_offset,
            state.partition_epoch,
            log.high_watermark,
            state.isr,
        )
        if not was_leader:
            self._broker.on_elected(partition)

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        log = partition.online_log()
        state_log.info(
            "[Broker id=%d] Follower %s-%d starts at leader epoch %d from offset %d with partition epoch %d and high "
            "watermark %d. Current leader is %d. Previous leader %d and previous leader epoch was %d.",
            self._broker.node_id,
            partition.topic,
            partition.index,
            state.leader_epoch,
            log.log_end_offset,
            state.partition_epoch,
            log.high_watermark,
            state.leader,
            partition.leader_id,
            partition.leader_epoch,
        )
        partition.follow(state.leader, state.leader_epoch, state.replicas)
        self._broker.on_resigned(partition)
        if state.leader != NO_LEADER:
            self._fetch(partition)

    def _fetch(self, partition: Partition) -> None:
        log = partition.online_log()
        version = mv.parse(self._broker.config.get_str("inter.broker.protocol.version"))
        state = initial_state(
            partition.topic,
            partition.index,
            partition.topic_id,
            partition.leader_epoch,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            latest_epoch=log.latest_epoch,
            truncates_on_fetch=mv.truncates_on_fetch(version),
        )
        self.fetchers.follow(partition.leader_id, state)

    # --- the log of a follower is cut

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Cut a follower's log; the caller holds `state_change_lock`. Raises LogDirError."""
        log = partition.online_log()
        if offset < log.high_watermark:
            logger.warning(
                "[ReplicaManager broker=%d] Truncating %s-%d to offset %d below high watermark %d",
                self._broker.node_id,
                partition.topic,
                partition.index,
                offset,
                log.high_watermark,
            )
        if offset < log.log_end_offset:
            job = self._broker.logs.prepare_truncation({TopicPartition(partition.topic, partition.index): offset})
            await trio.to_thread.run_sync(job)
        if partition.log is log:  # its directory may have failed meanwhile
            log.truncate_to(offset, now_ms=self.now_ms())
            self.log_dir_moves.truncated(partition)
            partition.notify(0)

    def restart_log(self, partition: Partition, offset: int) -> None:
        """Give up a follower's records and begin anew at an offset. Raises LogDirError."""
        partition.online_log().truncate_fully_and_start_at(offset, now_ms=self.now_ms())
        self.log_dir_moves.truncated(partition)
        partition.notify(0)

    # --- StopReplica

    async def stop_replicas(self, request: StopReplicaRequest, version: int) -> StopReplicaResponse:
        """Stop serving replicas and, where asked, delete their logs. The handler has the lock."""
        if request.controller_epoch < self.controller_epoch:
            return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        wanted = [
            (state.topic_name, state.partition_index, NO_EPOCH, request.delete_partitions)
            for state in request.ungrouped_partitions
        ]
        for topic_v1 in request.topics:
            wanted += [
                (topic_v1.name, index, NO_EPOCH, request.delete_partitions) for index in topic_v1.partition_indexes
            ]
        for topic in request.topic_states:
            wanted += [
                (topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition)
                for state in topic.partition_states
            ]
        errors = []
        budget = YieldBudget()
        for name, index, epoch, delete in wanted:
            code = await self._in_turn(budget, self._stop, name, index, epoch, delete)
            errors.append(
                StopReplicaResponse.StopReplicaPartitionError(topic_name=name, partition_index=index, error_code=code)
            )
        self.fetchers.end_idle()
        try:
            await trio.to_thread.run_sync(self._broker.logs.sync_deletions())
        except LogDirError as error:
            self._broker.log_dir_failed(error)
        return StopReplicaResponse(partition_errors=errors)

    def _stop(self, name: str, index: int, leader_epoch: int, delete: bool) -> ErrorCode:
        key = TopicPartition(name, index)
        partition = self._partitions.get(key)
        if partition is not None and partition.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition is not None and 0 <= leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        self.fetchers.leave((key,))
        try:
            if partition is not None and delete:
                self._broker.on_resigned(partition)
                partition.take_offline()
                del self._partitions[key]
                self.topic_names.pop(partition.topic_id, None)
            if delete:
                self._broker.logs.delete(name, index, self.now_ms())
                self._broker.log_deleted()
        except LogDirError as error:
            self._broker.log_dir_failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    # --- in the background

    async def shrink_isrs(self) -> None:
        """Look for followers that fell behind, twice in `replica.lag.time.max.ms` (Kafka's isr-expiration)."""
        while True:
            await trio.sleep(self.lag_time_max_ms / 2000)
            budget = YieldBudget()
            for partition in self:
                partition.maybe_shrink_isr()
                await budget.spend()

    # --- failures

    def log_dir_failed(self, directory: str) -> None:
        """Every partition with its log there stops serving, until the broker starts again."""
        for key, partition in list(self._partitions.items()):
            if partition.log is not None and partition.log.log_dir == directory:
                self.fetchers.leave((TopicPartition(*key),))
                self._broker.on_resigned(partition)
                partition.take_offline()
                partition.is_offline = True
        self.fetchers.end_idle()
