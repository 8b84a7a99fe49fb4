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

from kpybroker.broker.partition import Partition
from kpybroker.broker.turns import Turns
from kpybroker.storage.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

log = logging.getLogger("kafka.server.ReplicaManager")
state_log = logging.getLogger("state.change.logger")

ZERO_UUID = bytes(16)
DELETED_LEADER_EPOCH = -2  # EpochDuringDelete: the topic goes, whatever the epoch
NO_EPOCH = -1  # a controller too old to say

TopicPartition = tuple[str, int]
PartitionState = LeaderAndIsrRequest.LeaderAndIsrPartitionState
PartitionError = LeaderAndIsrResponse.LeaderAndIsrPartitionError
TopicError = LeaderAndIsrResponse.LeaderAndIsrTopicError


class Replicas:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitions: dict[TopicPartition, Partition] = {}
        self.controller_epoch = 0
        self.state_change_lock = trio.Lock()

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def leader_count(self) -> int:
        return sum(partition.leader is not None for partition in self._partitions.values())

    def partition(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    def hosted(self, topic: str, index: int) -> Partition:
        """The partition, or what Kafka answers for one that is not here.

        NOT_LEADER_OR_FOLLOWER when the cluster knows it, so that the client looks for its leader anew, else
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        partition = self._partitions.get((topic, index))
        if partition is not None:
            return partition
        if self._broker.metadata.contains(topic, index):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # --- LeaderAndIsr

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest, version: int) -> LeaderAndIsrResponse:
        """Take the controller's word on who leads what. The handler has the lock, and has checked the broker epoch."""
        if request.controller_epoch < self.controller_epoch:
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        response, turns = LeaderAndIsrResponse(), Turns()
        for state in request.ungrouped_partition_states:
            code = await self._in_turn(turns, self._take_partition_state, request, state, state.topic_name, ZERO_UUID)
            response.partition_errors.append(
                PartitionError(topic_name=state.topic_name, partition_index=state.partition_index, error_code=code)
            )
        for topic in request.topic_states:
            name, topic_id = topic.topic_name, topic.topic_id
            errors = []
            for state in topic.partition_states:
                code = await self._in_turn(turns, self._take_partition_state, request, state, name, topic_id)
                errors.append(PartitionError(topic_name=name, partition_index=state.partition_index, error_code=code))
            if version >= 5:
                response.topics.append(TopicError(topic_id=topic_id, partition_errors=errors))
            else:
                response.partition_errors += errors
            await turns.next()
        return response

    async def _in_turn(self, turns: Turns, change: Callable[..., ErrorCode], *args: Any) -> ErrorCode:
        """One partition's change; others run after some of them, and after each that made or deleted files."""
        logs = len(self._broker.logs)
        code = change(*args)
        await turns.next(is_long=len(self._broker.logs) != logs)
        return code

    def _take_partition_state(
        self, request: LeaderAndIsrRequest, state: PartitionState, name: str, topic_id: bytes
    ) -> ErrorCode:
        try:
            self._become(request, state, name, topic_id)
        except KafkaError as error:
            state_log.error(
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
        key = (name, state.partition_index)
        partition = self._partitions.get(key)
        if partition is None:
            partition = Partition(name, state.partition_index, topic_id, self._broker.node_id, None)
            self._partitions[key] = partition
        elif topic_id not in (ZERO_UUID, partition.topic_id) and partition.topic_id != ZERO_UUID:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        if state.leader_epoch < partition.leader_epoch:
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
        is_repeat = state.leader_epoch == partition.leader_epoch and partition.leader_id == state.leader
        if is_repeat and state.partition_epoch <= partition.partition_epoch:
            return
        if self._broker.node_id not in state.replicas:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.log is None:
            now_ms = self._broker.clock.time_ms()
            config = self._broker.configs.topic_config(name)
            partition.log = self._broker.logs.get_or_create(name, state.partition_index, topic_id, config, now_ms)
            partition.topic_id = topic_id
        partition.controller_epoch = request.controller_epoch
        partition.take_state(state.leader, state.leader_epoch, state.partition_epoch, state.isr, state.replicas)
        if state.leader == self._broker.node_id:
            self._lead(partition)
        else:
            self._follow(partition)

    def _lead(self, partition: Partition) -> None:
        was_leader = partition.leader is not None
        partition.make_leader()
        partition.notify(0)
        state_log.info(
            "[Broker id=%d] Leader %s-%d with topic id %s starts at leader epoch %d from offset %d",
            self._broker.node_id,
            partition.topic,
            partition.index,
            partition.topic_id.hex(),
            partition.leader_epoch,
            partition.online_log().log_end_offset,
        )
        if not was_leader:
            self._broker.on_elected(partition)

    def _follow(self, partition: Partition) -> None:
        partition.make_follower()
        self._broker.on_resigned(partition)

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
        turns = Turns()
        for name, index, epoch, delete in wanted:
            code = await self._in_turn(turns, self._stop, name, index, epoch, delete)
            errors.append(
                StopReplicaResponse.StopReplicaPartitionError(topic_name=name, partition_index=index, error_code=code)
            )
        try:
            await trio.to_thread.run_sync(self._broker.logs.sync_deletions())
        except LogDirError as error:
            self._broker.log_dir_failed(error)
        return StopReplicaResponse(partition_errors=errors)

    def _stop(self, name: str, index: int, leader_epoch: int, delete: bool) -> ErrorCode:
        partition = self._partitions.get((name, index))
        if partition is not None and 0 <= leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        try:
            if partition is not None:
                self._broker.on_resigned(partition)
                partition.take_offline()
                if delete:
                    del self._partitions[name, index]
            if delete:
                self._broker.logs.delete(name, index, self._broker.clock.time_ms())
                self._broker.log_deleted()
        except LogDirError as error:
            self._broker.log_dir_failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    # --- failures

    def log_dir_failed(self, directory: str) -> None:
        """Every partition with its log there stops serving."""
        for partition in self:
            if partition.log is not None and partition.log.log_dir == directory:
                self._broker.on_resigned(partition)
                partition.take_offline()
