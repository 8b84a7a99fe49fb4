"""Moving replicas (KIP-455): by AlterPartitionReassignments, or by the tools' older way, `/admin/reassign_partitions`.

The steps are those of ``KafkaController.onPartitionReassignment``. First the topic's znode records which replicas are
added and removed, so that any controller can continue; the new replicas are started and catch up. When the target is
within the ISR, the leader moves to the target, removed replicas leave the ISR and are deleted, and last the znode drops
the origin. A reassignment may be replaced or cancelled (reassigned to its origin) at any time before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.core.controller import states
from kpybroker.core.controller.effects import (
    Enqueue,
    Procedure,
    StateChangeFailed,
    checked,
    code_of,
    exists_with_watch,
    get,
    guarded,
    info,
    state_change,
    warning,
)
from kpybroker.core.controller.events import (
    ApiError,
    ApiPartitionReassignment,
    ListPartitionReassignments,
    Signal,
)
from kpybroker.core.controller.model import (
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
)
from kpybroker.core.controller.partitions import Strategy
from kpybroker.core.controller.parts import Parts, send_update_metadata
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.core.leader_and_isr import LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

MESSAGE_MAX = 10_000
"""Characters of an error that lists replicas: a request may name any number of them."""

Results = dict[TopicPartition, ApiError]

NONE = ApiError(ErrorCode.NONE)
NO_REASSIGNMENT = ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
NO_PARTITION = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


# --- requests


def alter(parts: Parts, event: ApiPartitionReassignment) -> Procedure[Results]:
    """Begin, replace or (replicas None) cancel, with a result each. The request replaces one in the tree."""
    if not parts.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    results: Results = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for partition, replicas in event.reassignments.items():
        refusal = None if replicas is None else _refusal(parts, partition, replicas)
        if replicas is not None and not refusal and not event.allows_replication_factor_change:
            refusal = _change_of_factor(parts.context.assignment(partition), replicas)
        assignment = None if refusal else _new_assignment(parts, partition, replicas)
        if assignment is not None:
            wanted[partition] = assignment
        else:
            results[partition] = refusal or NO_REASSIGNMENT
    yield from _remove_from_tree(parts, lambda partition, _: partition in wanted)
    results |= yield from _begin(parts, wanted)
    return results


def list_reassignments(
    parts: Parts, event: ListPartitionReassignments
) -> Procedure[dict[TopicPartition, ReplicaAssignment]]:
    """Reassignments in progress, of the given partitions or of all."""
    if not parts.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    context = parts.context
    moving = context.partitions_being_reassigned
    wanted = moving if event.partitions is None else moving.intersection(event.partitions)
    found = {partition: context.assignment(partition) for partition in sorted(wanted)}
    return {partition: assignment for partition, assignment in found.items() if assignment.is_being_reassigned}
    yield  # makes it a generator, though it has no effects


def _refusal(parts: Parts, partition: TopicPartition, replicas: Sequence[int]) -> ApiError | None:
    """KafkaController.validateReplicas."""
    context = parts.context
    message = ""
    if not replicas:
        message = "Empty replica list specified in partition reassignment."
    elif len(set(replicas)) != len(replicas):
        message = f"Duplicate replica ids in partition reassignment replica list: {_as_scala(replicas)}"
    elif min(replicas) < 0:
        message = f"Invalid broker id in replica list: {_as_scala(replicas)}"
    else:
        adding = context.assignment(partition).reassign_to(tuple(replicas)).adding_replicas
        if not context.live_broker_ids.issuperset(adding):
            live = ", ".join(map(str, sorted(context.live_broker_ids)))
            message = (
                f"Replica assignment has brokers that are not alive. Replica list: {_as_scala(adding)}, "
                f"live broker list: Set({live})"
            )
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message[:MESSAGE_MAX]) if message else None


def _change_of_factor(current: ReplicaAssignment, replicas: Sequence[int]) -> ApiError | None:
    """Kafka 4's ``validatePartitionReplicationFactorUnchanged`` (KIP-860): in a move, what it leads to counts.

    A partition that does not exist has no replicas, and is refused later."""
    factor = len(current.target_replicas)
    if factor in (0, len(replicas)):
        return None
    message = f"The replication factor is changed from {factor} to {len(replicas)}"
    return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _new_assignment(
    parts: Parts, partition: TopicPartition, replicas: Sequence[int] | None
) -> ReplicaAssignment | None:
    """The assignment to begin; None where there is nothing to cancel."""
    current = parts.context.assignment(partition)
    if replicas is not None:
        return current.reassign_to(tuple(replicas))
    return current.reassign_to(current.origin_replicas) if current.is_being_reassigned else None


# --- /admin/reassign_partitions


def zk_reassignment(parts: Parts) -> Procedure[set[TopicPartition]]:
    """Begin what the znode lists, if it exists, and remove from it what is not possible."""
    if not (yield from exists_with_watch(znodes.REASSIGN_PARTITIONS)):
        return set()
    listed = yield from _read_from_tree(parts)
    results: Results = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for partition, replicas in listed.items():
        assignment = _new_assignment(parts, partition, replicas)
        if assignment is not None:
            wanted[partition] = assignment
    results |= yield from _begin(parts, wanted)
    failed = {partition: result for partition, result in results.items() if result != NONE}
    if failed:
        yield warning(f"{_ident(parts)} Failed reassignment through zk with the following errors: {failed}")
        yield from _remove_from_tree(parts, lambda partition, _: partition in failed)
    return results.keys() - failed.keys()


def _read_from_tree(parts: Parts) -> Procedure[dict[TopicPartition, tuple[int, ...]]]:
    node = yield from get(znodes.REASSIGN_PARTITIONS)
    if node is None:
        return {}
    try:
        listed = znodes.decode_reassignment(node.data)
    except znodes.ZnodeError as failure:
        yield warning(f"{_ident(parts)} Ignoring partition reassignment due to invalid json: {failure}")
        return {}
    return {TopicPartition(*partition): tuple(replicas) for partition, replicas in listed.items()}


def _remove_from_tree(
    parts: Parts, should_remove: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> Procedure[None]:
    """Rewrite the znode without some partitions; an empty one is deleted, and watched for again."""
    node = yield from get(znodes.REASSIGN_PARTITIONS)
    if node is None:
        return
    listed = yield from _read_from_tree(parts)
    remaining: dict[tuple[str, int], Sequence[int]] = {
        p: replicas for p, replicas in listed.items() if not should_remove(p, replicas)
    }
    version = parts.context.epoch_zk_version
    if remaining:
        op: t.SetData | t.Delete = t.SetData(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment(remaining))
    else:
        yield info(
            f"{_ident(parts)} No more partitions need to be reassigned. Deleting zk path {znodes.REASSIGN_PARTITIONS}"
        )
        op = t.Delete(znodes.REASSIGN_PARTITIONS)
    (result,) = yield from checked([op], version)
    if isinstance(result, t.TreeError) and not isinstance(result, t.NoNode):
        raise result
    if not remaining:
        # Watches the path again, and finds what was written since it was read.
        yield Enqueue(Signal.ZK_PARTITION_REASSIGNMENT)


# --- continuing


def resume_all(parts: Parts) -> Procedure[None]:
    """Continue all after a failover; the list in the tree replaces reassignments in progress."""
    begun = yield from zk_reassignment(parts)
    yield from _resume(parts, parts.context.partitions_being_reassigned - begun)


def resume_for_brokers(parts: Parts, broker_ids: Iterable[int]) -> Procedure[None]:
    """Continue reassignments to brokers that have just registered."""
    arrived = set(broker_ids)
    context = parts.context
    moving = context.partitions_being_reassigned
    yield from _resume(parts, {p for p in moving if arrived.intersection(context.assignment(p).target_replicas)})


def _resume(parts: Parts, partitions: set[TopicPartition]) -> Procedure[None]:
    for partition in sorted(partitions):
        yield from _guarded(parts, partition, parts.context.assignment(partition))


def isr_changed(parts: Parts, partition: TopicPartition) -> Procedure[None]:
    """The ISR of a partition has changed: complete its reassignment if the target is in it now."""
    if partition not in parts.context.partitions_being_reassigned:
        return
    assignment = parts.context.assignment(partition)
    if (yield from _is_complete(partition, assignment)):
        yield info(
            f"{_ident(parts)} Target replicas {_list(assignment.target_replicas)} have all caught up with the leader "
            f"for reassigning partition {partition}"
        )
        yield from _reassign(parts, partition, assignment)
    else:
        yield from _watch_isr(parts, partition)


def _begin(parts: Parts, wanted: Mapping[TopicPartition, ReplicaAssignment]) -> Procedure[Results]:
    results: Results = {}
    for partition, assignment in wanted.items():
        deleting = parts.context.is_topic_queued_for_deletion(partition.topic)
        if deleting or not parts.context.replicas(partition):
            results[partition] = NO_PARTITION
        else:
            results[partition] = yield from _guarded(parts, partition, assignment)
    return results


def _guarded(parts: Parts, partition: TopicPartition, assignment: ReplicaAssignment) -> Procedure[ApiError]:
    """One partition's failure never stops the others."""
    failure = yield from guarded(
        _reassign(parts, partition, assignment),
        f"{_ident(parts)} Error completing reassignment of partition {partition}",
    )
    return NONE if failure is None else ApiError(code_of(failure))


# --- one partition


def _reassign(parts: Parts, partition: TopicPartition, assignment: ReplicaAssignment) -> Procedure[None]:
    """KafkaController.onPartitionReassignment; the step names (A1 to B8, U1 to U3) are Kafka's."""
    yield from parts.deletion.mark_ineligible((partition.topic,), "topic reassignment in progress")
    yield from _update_current(parts, partition, assignment)
    adding = [PartitionAndReplica(partition, replica) for replica in assignment.adding_replicas]
    if not (yield from _is_complete(partition, assignment)):
        # A1, A2: send the new replicas to all replicas, and start them.
        yield from _send_with_new_leader_epoch(parts, partition, assignment)
        yield from parts.replicas.change(adding, ReplicaState.NEW)
        return
    # B1, B2: from here on the leader adds only target replicas to the ISR.
    yield from parts.replicas.change(adding, ReplicaState.ONLINE)
    completed = ReplicaAssignment(assignment.target_replicas)
    parts.context.update_assignment(partition, completed)
    # B3 to B5: the leader moves to the target; removed replicas leave the ISR and are deleted.
    yield from _move_leader(parts, partition, completed)
    yield from _stop_removed(parts, partition, assignment.removing_replicas)
    # B6: after the deletion, because only the znode lists the removed replicas.
    yield from _write_assignment(parts, partition, completed)
    # B7, B8
    yield from _remove_from_tree(parts, lambda p, replicas: p == partition and replicas == completed.replicas)
    parts.context.partitions_being_reassigned.discard(partition)
    yield from send_update_metadata(parts, None, (partition,))
    yield from parts.deletion.resume_for_topics((partition.topic,))


def _update_current(parts: Parts, partition: TopicPartition, assignment: ReplicaAssignment) -> Procedure[None]:
    """U1 to U3: write the assignment, and stop replicas that a replaced or cancelled reassignment added."""
    context = parts.context
    current = context.assignment(partition)
    if current != assignment:
        yield from _write_assignment(parts, partition, assignment)
        context.update_assignment(partition, assignment)
        unneeded = tuple(replica for replica in current.replicas if replica not in assignment.replicas)
        yield from _stop_removed(parts, partition, unneeded)
    yield from _watch_isr(parts, partition)
    context.partitions_being_reassigned.add(partition)


def _watch_isr(parts: Parts, partition: TopicPartition) -> Procedure[None]:
    """Before AlterPartition (inter-broker protocol < 2.7-IV2) leaders write their ISR themselves."""
    if not mv.is_alter_partition_supported(parts.settings.metadata_version):
        yield from exists_with_watch(znodes.partition_state_path(*partition))


def _is_complete(partition: TopicPartition, assignment: ReplicaAssignment) -> Procedure[bool]:
    if not assignment.is_being_reassigned:
        return True
    found = (yield from states.read((partition,)))[partition]
    return isinstance(found, LeaderIsrAndControllerEpoch) and set(found.leader_and_isr.isr).issuperset(
        assignment.target_replicas
    )


def _move_leader(parts: Parts, partition: TopicPartition, completed: ReplicaAssignment) -> Procedure[None]:
    leader = parts.context.leader(partition)
    if leader in completed.replicas and parts.context.is_replica_online(leader, partition):
        yield from _send_with_new_leader_epoch(parts, partition, completed)
    else:
        yield info(
            f"{_ident(parts)} Leader {leader} for partition {partition} being reassigned is dead or not in the new "
            f"list of replicas {_list(completed.replicas)}. Re-electing leader"
        )
        yield from parts.partitions.change((partition,), PartitionState.ONLINE, Strategy.REASSIGN)


def _stop_removed(parts: Parts, partition: TopicPartition, removed: Iterable[int]) -> Procedure[None]:
    """Delete replicas without waiting, as in Kafka: a broker that is down finds a stray replica when it starts."""
    replicas = [PartitionAndReplica(partition, replica) for replica in removed]
    for state in (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.NON_EXISTENT,
    ):
        yield from parts.replicas.change(replicas, state)


def _write_assignment(parts: Parts, partition: TopicPartition, assignment: ReplicaAssignment) -> Procedure[None]:
    context = parts.context
    topic = partition.topic
    assignments = {**context.partition_assignments.get(topic, {}), partition.partition: assignment}
    partitions = {
        index: znodes.PartitionAssignment(a.replicas, a.adding_replicas, a.removing_replicas)
        for index, a in assignments.items()
    }
    data = znodes.encode_topic(znodes.TopicAssignment(context.topic_ids.get(topic), partitions))
    (result,) = yield from checked([t.SetData(znodes.topic_path(topic), data)], context.epoch_zk_version)
    if isinstance(result, t.TreeError):
        raise result
    yield info(f"{_ident(parts)} Successfully updated assignment of partition {partition} to {assignment}")


def _send_with_new_leader_epoch(
    parts: Parts, partition: TopicPartition, assignment: ReplicaAssignment
) -> Procedure[None]:
    """Raise the leader epoch and notify replicas; only added ones are new, and may choose a log directory."""
    context = parts.context
    leadership = yield from _raise_leader_epoch(parts, partition)
    batch = BrokerRequestBatch(context, parts.settings)
    batch.add_leader_and_isr(assignment.origin_replicas, partition, leadership, assignment, is_new=False)
    batch.add_leader_and_isr(assignment.adding_replicas, partition, leadership, assignment, is_new=True)
    yield from batch.send()
    yield state_change(
        parts.settings,
        context.epoch,
        f"Sent LeaderAndIsr request {leadership} with new replica assignment {assignment} to leader "
        f"{leadership.leader_and_isr.leader} for partition being reassigned {partition}",
    )


def _raise_leader_epoch(parts: Parts, partition: TopicPartition) -> Procedure[LeaderIsrAndControllerEpoch]:
    context = parts.context
    while True:
        found = (yield from states.read((partition,)))[partition]
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise StateChangeFailed(
                f"Cannot update leader epoch for partition {partition} as leaderAndIsr path is empty."
            )
        if found.controller_epoch > context.epoch:
            raise StateChangeFailed(
                f"Leader and isr path written by another controller, with epoch {found.controller_epoch}, while this "
                f"one has epoch {context.epoch}. Aborting state change by this controller"
            )
        wanted = {partition: found.leader_and_isr.new_epoch()}
        updated, _ = yield from states.update(wanted, context.epoch, context.epoch_zk_version)
        result = updated.get(partition)
        if isinstance(result, LeaderAndIsr):
            leadership = LeaderIsrAndControllerEpoch(result, context.epoch)
            context.partition_leadership_info[partition] = leadership
            return leadership
        if result is not None:
            raise result


def _ident(parts: Parts) -> str:
    return f"[Controller id={parts.settings.broker_id}]"


def _list(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))


def _as_scala(replicas: Iterable[int]) -> str:
    return f"ArrayBuffer({', '.join(map(str, replicas))})"
