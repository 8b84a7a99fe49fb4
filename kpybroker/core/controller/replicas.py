"""Replica transitions: Kafka's ``ZkReplicaStateMachine``.

New: the broker may create the replica. Online: the broker receives the replica's role. Offline: the broker stops the
replica, which leaves the ISR. The deletion states follow a StopReplica(delete) and its response; NonExistent removes
the replica from the assignment in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpybroker.core.controller import states
from kpybroker.core.controller.context import ControllerContext
from kpybroker.core.controller.effects import (
    PAUSE,
    TRACE,
    Log,
    Procedure,
    Settings,
    StateChangeFailed,
    guarded,
    split_legal,
    state_change,
    state_change_failed,
)
from kpybroker.core.controller.model import (
    REPLICA_TRANSITIONS,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    ReplicaState,
)
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.core.leader_and_isr import NO_LEADER, LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.yield_budget import WorkBudget

_WRITTEN_BY_ANOTHER = (
    "Leader and isr path written by another controller. This probably means the current controller with epoch {epoch} "
    "went through a soft failure and another controller was elected with epoch {other}. Aborting state change by this "
    "controller"
)


class ReplicaStateMachine:
    """Moves replicas between states: updates ISRs in the tree, the context, and notifies brokers."""

    __slots__ = ("_budget", "_context", "_settings")

    def __init__(self, context: ControllerContext, settings: Settings) -> None:
        self._context = context
        self._settings = settings
        self._budget = WorkBudget()

    def startup(
        self, partitions: Iterable[TopicPartition], batch: BrokerRequestBatch
    ) -> Procedure[list[PartitionAndReplica]]:
        """Send live replicas their roles, with what `batch` has; the dead are returned, and leave ISRs by `change`."""
        context = self._context
        online, offline = [], []
        for replica in context.replicas_for_partitions(partitions):
            if self._budget.is_spent():
                yield PAUSE
            if context.is_replica_online(replica.replica, replica.topic_partition):
                context.replica_states[replica] = ReplicaState.ONLINE
                online.append(replica)
            else:
                # If its topic is being deleted, the deletion must wait: the replica counts as failed.
                context.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
                offline.append(replica)
        yield from self._guarded(online, ReplicaState.ONLINE, batch)
        return offline

    def change(self, replicas: Sequence[PartitionAndReplica], target: ReplicaState) -> Procedure[None]:
        """Move replicas to `target`; an illegal transition is logged and skipped, a failure is logged."""
        yield from self._guarded(replicas, target, BrokerRequestBatch(self._context, self._settings))

    def _guarded(
        self, replicas: Sequence[PartitionAndReplica], target: ReplicaState, batch: BrokerRequestBatch
    ) -> Procedure[None]:
        prefix = f"[ReplicaStateMachine controllerId={self._settings.broker_id}]"
        yield from guarded(
            self._change_all(replicas, target, batch), f"{prefix} Error while moving some replicas to {target} state"
        )

    def _change_all(
        self, replicas: Sequence[PartitionAndReplica], target: ReplicaState, batch: BrokerRequestBatch
    ) -> Procedure[None]:
        by_broker: dict[int, list[PartitionAndReplica]] = {}
        for replica in replicas:
            by_broker.setdefault(replica.replica, []).append(replica)
        for broker_id, group in by_broker.items():
            yield from self._change(broker_id, group, target, batch)
        yield from batch.send()

    def _change(
        self, broker_id: int, replicas: list[PartitionAndReplica], target: ReplicaState, batch: BrokerRequestBatch
    ) -> Procedure[None]:
        context, allowed = self._context, REPLICA_TRANSITIONS.allowed(target)
        valid, illegal = yield from split_legal(
            replicas, context.replica_states, target, REPLICA_TRANSITIONS, self._budget
        )
        for replica in illegal:
            yield self._failed(
                replica,
                target,
                f"Replica {replica} should be in the {allowed} states before moving to {target} state. "
                f"Instead it is in {context.replica_states[replica]} state",
            )
        if target is ReplicaState.NEW:
            yield from self._to_new(valid, batch)
        elif target is ReplicaState.ONLINE:
            yield from self._to_online(valid, batch)
        elif target is ReplicaState.OFFLINE:
            yield from self._to_offline(broker_id, valid, batch)
        elif target is ReplicaState.NON_EXISTENT:
            yield from self._to_non_existent(valid)
        else:
            for replica in valid:
                if self._budget.is_spent():
                    yield PAUSE
                if context.is_traced:
                    yield self._changed(replica, target)
                context.replica_states[replica] = target
                if target is ReplicaState.DELETION_STARTED:
                    batch.add_stop_replica(broker_id, replica.topic_partition, delete=True)

    def _to_new(self, replicas: list[PartitionAndReplica], batch: BrokerRequestBatch) -> Procedure[None]:
        context = self._context
        for replica in replicas:
            if self._budget.is_spent():
                yield PAUSE
            partition, broker_id = replica
            leadership = context.partition_leadership_info.get(partition)
            if leadership is not None and leadership.leader_and_isr.leader == broker_id:
                yield self._failed(
                    replica,
                    ReplicaState.OFFLINE,
                    f"Replica {broker_id} for partition {partition} cannot be moved to NewReplica state as it is "
                    "being requested to become leader",
                )
                continue
            if leadership is not None:
                batch.add_leader_and_isr(
                    (broker_id,), partition, leadership, context.assignment(partition), is_new=True
                )
            if context.is_traced:
                yield self._changed(replica, ReplicaState.NEW)
            context.replica_states[replica] = ReplicaState.NEW

    def _to_online(self, replicas: list[PartitionAndReplica], batch: BrokerRequestBatch) -> Procedure[None]:
        context = self._context
        for replica in replicas:
            if self._budget.is_spent():
                yield PAUSE
            partition, broker_id = replica
            leadership = context.partition_leadership_info.get(partition)
            if context.replica_states[replica] is ReplicaState.NEW:
                assert broker_id in context.replicas(partition), f"{replica} is not part of the assignment"
            elif leadership is not None:
                batch.add_leader_and_isr(
                    (broker_id,), partition, leadership, context.assignment(partition), is_new=False
                )
            if context.is_traced:
                yield self._changed(replica, ReplicaState.ONLINE)
            context.replica_states[replica] = ReplicaState.ONLINE

    def _to_non_existent(self, replicas: list[PartitionAndReplica]) -> Procedure[None]:
        context = self._context
        for replica in replicas:
            partition = replica.topic_partition
            context.update_assignment(partition, context.assignment(partition).without(replica.replica))
            if context.is_traced:
                yield self._changed(replica, ReplicaState.NON_EXISTENT)
            context.replica_states.pop(replica, None)

    # --- going offline

    def _to_offline(
        self, broker_id: int, replicas: list[PartitionAndReplica], batch: BrokerRequestBatch
    ) -> Procedure[None]:
        context = self._context
        led: list[TopicPartition] = []
        leaderless: list[TopicPartition] = []
        for replica in replicas:
            partition = replica.topic_partition
            batch.add_stop_replica(broker_id, partition, delete=False)
            (led if partition in context.partition_leadership_info else leaderless).append(partition)
        updated = yield from self._remove_from_isr(broker_id, led)
        for partition, leadership in updated.items():
            yield state_change(
                self._settings,
                context.epoch,
                f"Partition {partition} state changed to {leadership} after removing replica {broker_id} from the ISR "
                f"as part of transition to {ReplicaState.OFFLINE}",
            )
            if not context.is_topic_queued_for_deletion(partition.topic):
                recipients = [other for other in context.replicas(partition) if other != broker_id]
                batch.add_leader_and_isr(recipients, partition, leadership, context.assignment(partition), is_new=False)
            yield from self._offline(PartitionAndReplica(partition, broker_id))
        for partition in leaderless:
            batch.add_update_metadata(context.live_brokers, (partition,))
            yield from self._offline(PartitionAndReplica(partition, broker_id))

    def _offline(self, replica: PartitionAndReplica) -> Procedure[None]:
        if self._context.is_traced:
            yield self._changed(replica, ReplicaState.OFFLINE)
        self._context.replica_states[replica] = ReplicaState.OFFLINE

    def _remove_from_isr(
        self, broker_id: int, partitions: list[TopicPartition]
    ) -> Procedure[dict[TopicPartition, LeaderIsrAndControllerEpoch]]:
        """Remove the broker from ISRs with other members; retried on version conflicts."""
        results: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        remaining = partitions
        while remaining:
            finished, remaining = yield from self._remove_from_isr_once(broker_id, remaining)
            for partition, result in finished.items():
                if isinstance(result, LeaderAndIsr):
                    leadership = LeaderIsrAndControllerEpoch(result, self._context.epoch)
                    self._context.set_leadership(partition, leadership)
                    results[partition] = leadership
                else:
                    replica = PartitionAndReplica(partition, broker_id)
                    yield self._failed(replica, ReplicaState.OFFLINE, str(result) or repr(result))
        return results

    def _remove_from_isr_once(
        self, broker_id: int, partitions: list[TopicPartition]
    ) -> Procedure[tuple[dict[TopicPartition, LeaderAndIsr | Exception], list[TopicPartition]]]:
        context = self._context
        finished: dict[TopicPartition, LeaderAndIsr | Exception] = {}
        wanted: dict[TopicPartition, LeaderAndIsr] = {}
        read = yield from states.read(partitions)
        for partition, found in read.items():
            if found is None:
                if not context.is_topic_queued_for_deletion(partition.topic):
                    finished[partition] = StateChangeFailed(
                        f"Failed to change state of replica {broker_id} for partition {partition} since the leader "
                        "and isr path in zookeeper is empty"
                    )
            elif isinstance(found, Exception):
                finished[partition] = found
            elif found.controller_epoch > context.epoch:
                finished[partition] = StateChangeFailed(
                    _WRITTEN_BY_ANOTHER.format(epoch=context.epoch, other=found.controller_epoch)
                )
            elif broker_id in found.leader_and_isr.isr:
                wanted[partition] = _without(found.leader_and_isr, broker_id)
            else:
                finished[partition] = found.leader_and_isr
        updated, retry = yield from states.update(wanted, context.epoch, context.epoch_zk_version)
        return finished | updated, retry

    def _changed(self, replica: PartitionAndReplica, target: ReplicaState) -> Log:
        """To be yielded before the change; at TRACE."""
        return state_change(
            self._settings,
            self._context.epoch,
            f"Changed state of replica {replica.replica} for partition {replica.topic_partition} from "
            f"{self._context.replica_states[replica]} to {target}",
            TRACE,
        )

    def _failed(self, replica: PartitionAndReplica, target: ReplicaState, reason: str) -> Log:
        context = self._context
        return state_change_failed(
            self._settings,
            context.epoch,
            f"initiated state change of replica {replica.replica} for partition {replica.topic_partition} from "
            f"{context.replica_states.get(replica)} to {target} failed: {reason}",
        )


def _without(current: LeaderAndIsr, broker_id: int) -> LeaderAndIsr:
    leader = NO_LEADER if current.leader == broker_id else current.leader
    if len(current.isr) == 1:
        # The last member stays: it is the only one known to have every record.
        return current.new_leader_and_isr(leader, current.isr)
    return current.new_leader_and_isr(leader, tuple(other for other in current.isr if other != broker_id))
