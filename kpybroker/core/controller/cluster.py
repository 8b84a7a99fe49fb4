"""Procedures about brokers and topics that appear, change or disappear, only on the active controller."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.core.controller import reassignment
from kpybroker.core.controller.effects import (
    ERROR,
    PAUSE,
    AddBroker,
    Ask,
    Procedure,
    RemoveBroker,
    checked,
    checked_deletes,
    children,
    error,
    get,
    get_many,
    info,
    state_change,
    warning,
)
from kpybroker.core.controller.events import (
    Event,
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kpybroker.core.controller.features import procedures as features
from kpybroker.core.controller.model import PartitionAndReplica, PartitionState, ReplicaAssignment, ReplicaState
from kpybroker.core.controller.partitions import Strategy
from kpybroker.core.controller.parts import (
    Parts,
    refresh_leadership,
    replicas_become_offline,
    send_update_metadata,
)
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataResponse
from kpybroker.wire.yield_budget import ELEMENT, WorkBudget
from kpybroker.wire.znodes import BrokerRegistration

# --- brokers


def read_brokers() -> Procedure[dict[int, tuple[BrokerRegistration, int]]]:
    """Registered brokers with their epochs (the registration's czxid), watching for the next change."""
    names = yield from children(znodes.BROKER_IDS, watch=True)
    ids = sorted(int(name) for name in names)
    found = yield from get_many([znodes.broker_path(i) for i in ids], watch=True)
    brokers = {}
    for broker_id, node in zip(ids, found, strict=True):
        if node is None:
            continue
        try:
            brokers[broker_id] = (znodes.decode_broker(broker_id, node.data), node.stat.czxid)
        except znodes.ZnodeError as failure:
            yield error(f"Broker {broker_id} is skipped: {failure}")
    return brokers


def broker_change(parts: Parts) -> Procedure[None]:
    """Brokers have registered, left, or bounced: registered again before the controller saw them leave."""
    context = parts.context
    current = yield from features.compatible((yield from read_brokers()))
    live = context.live_brokers.keys()
    new = sorted(current.keys() - live)
    dead = sorted(live - current.keys())
    bounced = sorted(i for i in current.keys() & live if current[i][1] > context.live_broker_epochs[i])
    yield info(
        f"[Controller id={parts.settings.broker_id}] Newly added brokers: {_list(new)}, deleted brokers: "
        f"{_list(dead)}, bounced brokers: {_list(bounced)}, all live brokers: {_list(sorted(current))}"
    )
    for broker_id in bounced + dead:
        yield RemoveBroker(broker_id)
    for broker_id in new + bounced:
        yield AddBroker(broker_id, current[broker_id][0])
    if new:
        context.add_live_brokers({i: current[i] for i in new})
        yield from _on_broker_startup(parts, new)
    if bounced:
        context.remove_live_brokers(bounced)
        yield from _on_broker_failure(parts, bounced)
        context.add_live_brokers({i: current[i] for i in bounced})
        yield from _on_broker_startup(parts, bounced)
    if dead:
        context.remove_live_brokers(dead)
        yield from _on_broker_failure(parts, dead)


def _on_broker_startup(parts: Parts, new: list[int]) -> Procedure[None]:
    context = parts.context
    for broker_id in new:
        context.replicas_on_offline_dirs.pop(broker_id, None)
    # Earlier brokers need the new brokers' addresses only; the new ones need everything.
    yield from send_update_metadata(parts, context.live_brokers.keys() - set(new))
    yield from send_update_metadata(parts, new, context.partitions_with_leaders())
    replicas = context.replicas_on_brokers(new)
    yield from parts.replicas.change(replicas, ReplicaState.ONLINE)
    yield from parts.partitions.trigger_online()
    yield from reassignment.resume_for_brokers(parts, new)
    topics = {replica.topic_partition.topic for replica in replicas}
    yield from parts.deletion.resume_for_topics(topics)


def _on_broker_failure(parts: Parts, dead: list[int]) -> Procedure[None]:
    context = parts.context
    for broker_id in dead:
        context.replicas_on_offline_dirs.pop(broker_id, None)
    context.shutting_down_broker_ids.difference_update(dead)
    yield from replicas_become_offline(parts, context.replicas_on_brokers(dead))


def broker_modifications(parts: Parts, broker_id: int) -> Procedure[None]:
    """A broker has rewritten its registration with other endpoints or features."""
    node = yield from get(znodes.broker_path(broker_id), watch=True)
    known = parts.context.live_brokers.get(broker_id)
    if node is None or known is None:
        return
    broker = znodes.decode_broker(broker_id, node.data)
    if broker.endpoints != known.endpoints or broker.features != known.features:
        parts.context.live_brokers[broker_id] = broker
        yield from send_update_metadata(parts)


# --- topics


def read_topics() -> Procedure[set[str]]:
    """Names of all topics, watching `/brokers/topics` for the next change."""
    names = yield from children(znodes.TOPICS, watch=True)
    return set(names)


def load_assignments(parts: Parts, topics: Iterable[str]) -> Procedure[set[TopicPartition]]:
    """Read topic znodes into the context, watching each, and give an id to those without one (KIP-516)."""
    context = parts.context
    names = sorted(topics)
    nodes = yield from get_many([znodes.topic_path(topic) for topic in names], watch=True)
    partitions: set[TopicPartition] = set()
    without_id: list[tuple[str, znodes.TopicAssignment]] = []
    budget = WorkBudget()
    for topic, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        if budget.is_spent():
            yield PAUSE
        try:
            decoded = znodes.decode_topic(topic, node.data)
        except znodes.ZnodeError as failure:
            # One bad znode must not leave the cluster without a controller: the topic has no partitions.
            yield error(f"[Controller id={parts.settings.broker_id}] {failure}")
            continue
        if decoded.topic_id is not None:
            context.add_topic_id(topic, decoded.topic_id)
        elif mv.uses_topic_id(parts.settings.metadata_version):
            without_id.append((topic, decoded))
        if budget.is_spent(ELEMENT * len(decoded.partitions)):
            yield PAUSE
        for partition, assignment in _assignments(topic, decoded).items():
            context.update_assignment(partition, assignment)
            partitions.add(partition)
            if assignment.is_being_reassigned:
                context.partitions_being_reassigned.add(partition)
    yield from _assign_topic_ids(parts, without_id)
    return partitions


def _assign_topic_ids(parts: Parts, topics: list[tuple[str, znodes.TopicAssignment]]) -> Procedure[None]:
    ops = []
    for topic, assignment in topics:
        topic_id: bytes = yield Ask.RANDOM_UUID
        parts.context.add_topic_id(topic, topic_id)
        data = znodes.encode_topic(znodes.TopicAssignment(topic_id, assignment.partitions))
        ops.append(t.SetData(znodes.topic_path(topic), data))
    results = yield from checked(ops, parts.context.epoch_zk_version)
    for result in results:
        if isinstance(result, t.TreeError):
            raise result


def topic_change(parts: Parts) -> Procedure[None]:
    """Children of `/brokers/topics` changed: elect leaders for new topics, forget deleted ones."""
    context = parts.context
    topics = yield from read_topics()
    new = topics - context.all_topics
    deleted = context.all_topics - topics
    context.all_topics = topics
    for topic in deleted:
        context.remove_topic(topic)
    partitions = yield from load_assignments(parts, new)
    yield info(
        f"[Controller id={parts.settings.broker_id}] New topics: [{_list(sorted(new))}], "
        f"deleted topics: [{_list(sorted(deleted))}]"
    )
    yield from on_new_partitions(parts, partitions)


def on_new_partitions(parts: Parts, partitions: Collection[TopicPartition]) -> Procedure[None]:
    """Create the partitions' states and elect their first leaders (KafkaController.onNewPartitionCreation)."""
    context = parts.context
    ordered = sorted(partitions)
    yield from parts.partitions.change(ordered, PartitionState.NEW)
    replicas = context.replicas_for_partitions(ordered)
    yield from parts.replicas.change(replicas, ReplicaState.NEW)
    yield from parts.partitions.change(ordered, PartitionState.ONLINE, Strategy.OFFLINE)
    yield from parts.replicas.change(replicas, ReplicaState.ONLINE)


def partition_modifications(parts: Parts, topic: str) -> Procedure[None]:
    """A topic znode was rewritten: create the partitions that were added."""
    context = parts.context
    node = yield from get(znodes.topic_path(topic), watch=True)
    if node is None or topic not in context.all_topics:
        return
    yield PAUSE
    decoded = znodes.decode_topic(topic, node.data)
    yield PAUSE
    found = _assignments(topic, decoded)
    added = {partition: a for partition, a in found.items() if not context.replicas(partition)}
    if not added:
        return
    if context.is_topic_queued_for_deletion(topic):
        yield warning(
            f"[Controller id={parts.settings.broker_id}] Skipping adding partitions "
            f"{_list(sorted(p.partition for p in added))} for topic {topic} since it is currently being "
            "deleted"
        )
        yield from _restore_assignment(parts, topic)
        return
    yield PAUSE
    for partition, assignment in added.items():
        context.update_assignment(partition, assignment)
    yield PAUSE
    yield from on_new_partitions(parts, added.keys())


def _restore_assignment(parts: Parts, topic: str) -> Procedure[None]:
    """Write back the known assignment, so that a deletion in progress has no new partitions."""
    context = parts.context
    partitions = {
        index: znodes.PartitionAssignment(a.replicas, a.adding_replicas, a.removing_replicas)
        for index, a in context.partition_assignments.get(topic, {}).items()
    }
    data = znodes.encode_topic(znodes.TopicAssignment(context.topic_ids.get(topic), partitions))
    (result,) = yield from checked([t.SetData(znodes.topic_path(topic), data)], context.epoch_zk_version)
    if isinstance(result, t.TreeError):
        raise result


def _assignments(topic: str, decoded: znodes.TopicAssignment) -> dict[TopicPartition, ReplicaAssignment]:
    return {
        TopicPartition(topic, index): ReplicaAssignment(found.replicas, found.adding_replicas, found.removing_replicas)
        for index, found in decoded.partitions.items()
    }


def topic_deletion(parts: Parts) -> Procedure[None]:
    """Children of `/admin/delete_topics` changed: queue the topics, or clear the queue if deletion is disabled."""
    context = parts.context
    queued = set((yield from children(znodes.DELETE_TOPICS, watch=True)))
    unknown = queued - context.all_topics
    if unknown:
        yield warning(
            f"[Controller id={parts.settings.broker_id}] Ignoring request to delete non-existing topics "
            f"{_list(sorted(unknown))}"
        )
        yield from parts.deletion.delete_queue_entries(unknown)
    topics = queued - unknown
    if not parts.settings.delete_topic_enable:
        yield info(f"Removing {_list(sorted(topics))} since delete topic is disabled")
        yield from parts.deletion.delete_queue_entries(topics)
        return
    if topics:
        reassigned = {partition.topic for partition in context.partitions_being_reassigned}
        context.topics_to_be_deleted |= topics
        yield from parts.deletion.mark_ineligible(topics & reassigned, "topic reassignment in progress")
        yield from parts.deletion.enqueue(topics)


# --- notifications and responses


def isr_change_notification(parts: Parts) -> Procedure[None]:
    """A broker that predates AlterPartition (inter-broker protocol < 2.7) has changed ISRs in the tree."""
    names = yield from children(znodes.ISR_CHANGE_NOTIFICATION, watch=True)
    paths = [f"{znodes.ISR_CHANGE_NOTIFICATION}/{name}" for name in names]
    nodes = yield from get_many(paths)
    partitions = [
        TopicPartition(topic, partition)
        for node in nodes
        if node is not None
        for topic, partition in znodes.decode_partitions(node.data)
    ]
    if partitions:
        yield from refresh_leadership(parts, partitions)
        yield from send_update_metadata(parts, None, partitions)
    yield from checked_deletes(paths, parts.context.epoch_zk_version)


def log_dir_event_notification(parts: Parts) -> Procedure[None]:
    """A broker has lost a log directory; its LeaderAndIsr response will name the replicas."""
    names = yield from children(znodes.LOG_DIR_EVENT_NOTIFICATION, watch=True)
    paths = [f"{znodes.LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in names]
    nodes = yield from get_many(paths)
    broker_ids = {znodes.decode_log_dir_event(node.data) for node in nodes if node is not None}
    replicas = parts.context.replicas_on_brokers(broker_ids)
    yield from parts.replicas.change(replicas, ReplicaState.ONLINE)
    yield from checked_deletes(paths, parts.context.epoch_zk_version)


def leader_and_isr_response_received(parts: Parts, event: LeaderAndIsrResponseReceived) -> Procedure[None]:
    """Note which replicas are in an offline log directory (KAFKA_STORAGE_ERROR), or had no space and have it now."""
    context = parts.context
    response, broker_id = event.response, event.broker_id
    if response.error_code != ErrorCode.NONE:
        message = f"Received error {response.error_code} in LeaderAndIsr response from broker {broker_id}"
        yield state_change(parts.settings, context.epoch, message, ERROR)
        return
    previous = context.replicas_on_offline_dirs.get(broker_id, set())
    current = set(previous)
    budget = WorkBudget()
    for partition, code in _codes(context.topic_names, response):
        if code == ErrorCode.KAFKA_STORAGE_ERROR:
            current.add(partition)
        elif code == ErrorCode.NONE:
            current.discard(partition)
        if budget.is_spent():
            yield PAUSE
    context.replicas_on_offline_dirs[broker_id] = current
    newly_offline = sorted(current - previous)
    if newly_offline:
        message = f"Mark replicas {_list(newly_offline)} on broker {broker_id} as offline"
        yield state_change(parts.settings, context.epoch, message)
        yield from replicas_become_offline(parts, [PartitionAndReplica(p, broker_id) for p in newly_offline])
    if returned := previous - current:
        # As after a start: what has waited for these replicas goes on. A broker of Kafka would have had to start.
        yield from parts.partitions.trigger_online()
        yield from reassignment.resume_for_brokers(parts, (broker_id,))
        yield from parts.deletion.resume_for_topics({partition.topic for partition in returned})


def _codes(topic_names: Mapping[bytes, str], response: LeaderAndIsrResponse) -> Iterator[tuple[TopicPartition, int]]:
    for item in response.partition_errors:
        yield TopicPartition(item.topic_name, item.partition_index), item.error_code
    for topic in response.topics:
        name = topic_names.get(topic.topic_id)
        if name is not None:
            for item in topic.partition_errors:
                yield TopicPartition(name, item.partition_index), item.error_code


def update_metadata_response_received(parts: Parts, event: UpdateMetadataResponseReceived) -> Procedure[None]:
    """Log an error that a broker returned for UpdateMetadata; nothing is retried."""
    if event.error_code != ErrorCode.NONE:
        message = f"Received error {event.error_code} in UpdateMetadata response from broker {event.broker_id}"
        yield state_change(parts.settings, parts.context.epoch, message, ERROR)


def stop_replica_response_received(parts: Parts, event: TopicDeletionStopReplicaResponseReceived) -> Procedure[None]:
    """Record which replicas of a deleted topic are gone and which could not be deleted."""
    failed: list[PartitionAndReplica] = []
    deleted: list[PartitionAndReplica] = []
    for partition, code in event.partition_errors.items():
        replica = PartitionAndReplica(partition, event.broker_id)
        refused = event.error_code != ErrorCode.NONE or code != ErrorCode.NONE
        (failed if refused else deleted).append(replica)
    yield from parts.deletion.fail_replicas(failed)
    if deleted:
        yield from parts.deletion.complete_replicas(deleted)


def _list(items: Iterable[object]) -> str:
    return ",".join(map(str, items))


def event_for_response(parts: Parts, broker_id: int, request: object, response: object) -> Event | None:
    """The event for a broker's response; None where the controller has nothing to do."""
    if isinstance(response, LeaderAndIsrResponse):
        return LeaderAndIsrResponseReceived(response, broker_id)
    if isinstance(response, UpdateMetadataResponse):
        return UpdateMetadataResponseReceived(response.error_code, broker_id)
    assert isinstance(request, StopReplicaRequest)
    assert isinstance(response, StopReplicaResponse)
    to_delete = _to_delete(request)
    errors = {}
    for item in response.partition_errors:
        partition = TopicPartition(item.topic_name, item.partition_index)
        if partition in to_delete and partition.topic in parts.context.topics_with_deletion_started:
            errors[partition] = item.error_code
    if not errors:
        return None
    return TopicDeletionStopReplicaResponseReceived(broker_id, response.error_code, errors)


def _to_delete(request: StopReplicaRequest) -> set[TopicPartition]:
    partitions = {
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition
    }
    if request.delete_partitions:
        partitions |= {TopicPartition(p.topic_name, p.partition_index) for p in request.ungrouped_partitions}
        partitions |= {
            TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
        }
    return partitions
