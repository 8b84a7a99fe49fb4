"""What the brokers hold: topics, groups, committed offsets, transactions. Records are in `records`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from kpybroker.control.errors import ControlError, did_you_mean
from kpybroker.control.inside import any_broker, ask, check, loaded_coordinator, partitions_of
from kpybroker.control.levers.leadership import awake
from kpybroker.control.registry import JSON, methods
from kpybroker.core.group.subscription import subscribed_topics
from kpybroker.core.group.values import GroupState
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME, is_internal
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.control.hosted import Hosted
    from kpybroker.core.consumer_group.state import ConsumerGroup
    from kpybroker.core.consumer_group.values import DescribedConsumerMember
    from kpybroker.core.group.state import Group
    from kpybroker.core.streams_group.members import StreamsMember
    from kpybroker.core.streams_group.state import StreamsGroup

NO_OFFSET = -1
CONSUMER = "consumer"
"""The protocol type whose metadata and assignments are Kafka's own (ConsumerProtocol)."""
_VERSION_BYTES = 2


# --- topics


async def topics(hosted: Hosted, internal: bool = False) -> JSON:
    """Every topic with its settings and partitions; those of groups and transactions too with `internal`."""
    snapshot = any_broker(hosted).metadata.snapshot
    names = [name for name in sorted(snapshot.topics) if internal or not is_internal(name)]
    return [_topic(hosted, name) for name in names]


async def topic(hosted: Hosted, name: str) -> JSON:
    """One topic with its settings and partitions."""
    partitions_of(hosted, name)
    return _topic(hosted, name)


def _topic(hosted: Hosted, name: str) -> JSON:
    broker = any_broker(hosted)
    snapshot = broker.metadata.snapshot
    return {
        "name": name,
        "topic_id": _uuid_text(snapshot.topic_id(name)),
        "is_internal": is_internal(name),
        "config": dict(broker.configs.topic_overrides(name)),
        "partitions": [_partition(hosted, state) for _, state in sorted(snapshot.topics[name].items())],
    }


def _partition(hosted: Hosted, state: Any) -> JSON:
    return {
        "index": state.partition_index,
        "leader": state.leader if state.leader >= 0 else None,
        "leader_epoch": state.leader_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        **_offsets(_leader_replica(hosted, state)),
    }


def _leader_replica(hosted: Hosted, state: Any) -> Partition | None:
    broker = hosted.brokers.get(state.leader)
    return None if broker is None else broker.replicas.partition(state.topic_name, state.partition_index)


def _offsets(replica: Partition | None) -> JSON:
    log = None if replica is None else replica.log
    if log is None:
        return {
            "start_offset": None,
            "high_watermark": None,
            "last_stable_offset": None,
            "end_offset": None,
            "bytes": None,
        }
    return {
        "start_offset": log.log_start_offset,
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.last_stable_offset,
        "end_offset": log.log_end_offset,
        "bytes": log.size,
    }


def _uuid_text(topic_id: bytes) -> str:
    """As Kafka's Uuid.toString: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


# --- groups


async def groups(hosted: Hosted) -> JSON:
    """Every group, as `group` shows it."""
    from kpybroker.wire.messages.list_groups import ListGroupsRequest

    found = set()
    for broker in awake(hosted):
        response = await ask(broker, ApiKey.LIST_GROUPS, ListGroupsRequest())
        check(response.error_code, "listing groups")
        found |= {one.group_id for one in response.groups}
    known = [await group(hosted, group_id) for group_id in sorted(found)]
    return [one for one in known if one is not None]


async def group(hosted: Hosted, group: str) -> JSON:
    """One group: its state, its protocol, its members, what they subscribe to and are assigned. null: there is none.

    `type` is "classic", "consumer" (KIP-848) or "streams" (KIP-1071). `generation` and `leader` are what the members of
    a classic group last received; one of the others has its epoch there, no leader, and its assignor as the `protocol`.
    A member of a streams group is assigned what its active tasks read. null for a share group: see `share_group`."""
    from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest

    coordinator = await loaded_coordinator(hosted, GROUP_METADATA_TOPIC_NAME, group)
    if coordinator is None:
        return None
    known = _known(coordinator, group)
    if known is not None and known.consumer is not None:
        return await _consumer_group(coordinator, known.consumer)
    if known is not None and known.streams is not None:
        return await _streams_group(coordinator, known.streams)
    response = await ask(coordinator, ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group]))
    found = response.groups[0]
    if found.group_state == GroupState.DEAD.value:
        return None
    check(found.error_code, f"describing group {group}")
    kept = coordinator.groups.shard_for(group).machine.groups[group]
    return {
        "group_id": group,
        "type": "classic",
        "state": found.group_state,
        "coordinator": coordinator.node_id,
        "generation": kept.generation_id,
        "protocol_type": found.protocol_type,
        "protocol": kept.protocol_name or "",
        "leader": kept.leader_id,
        "members": [_member(one, kept, found.protocol_type == CONSUMER) for one in found.members],
    }


def _member(member: Any, group: Group, is_consumer: bool) -> JSON:
    known = group.members.get(member.member_id)
    metadata = known.protocols[0][1] if known is not None and known.protocols else member.member_metadata
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host.lstrip("/"),
        "subscription": _subscription(metadata) if is_consumer else [],
        "assignment": _assignment(member.member_assignment) if is_consumer else {},
    }


def _known(coordinator: Broker, group: str) -> Group | None:
    """None where there is no such group, or the coordinator still loads it."""
    try:
        return coordinator.groups.shard_for(group).machine.groups.get(group)
    except KafkaError:
        return None


async def _consumer_group(coordinator: Broker, kept: ConsumerGroup) -> JSON:
    """A group of the new protocol, as the coordinator describes it, whether or not `group.version` is finalized."""
    from kpybroker.core.consumer_group.values import DescribeConsumerGroup

    found = await coordinator.groups.ask(DescribeConsumerGroup(kept.group_id))
    check(found.error, f"describing group {kept.group_id}", found.message)
    return {
        "group_id": kept.group_id,
        "type": CONSUMER,
        "state": found.state,
        "coordinator": coordinator.node_id,
        "generation": found.group_epoch,
        "protocol_type": CONSUMER,
        "protocol": found.assignor,
        "leader": None,
        "members": [_consumer_member(one, kept, found.topic_names) for one in found.members],
    }


def _consumer_member(described: DescribedConsumerMember, kept: ConsumerGroup, names: Mapping[bytes, str]) -> JSON:
    member, metadata = described.member, described.member.metadata
    resolved = kept.patterns.get(metadata.pattern or "")
    matched = frozenset() if resolved is None else resolved.topic_names
    return {
        "member_id": member.member_id,
        "instance_id": metadata.instance_id,
        "client_id": metadata.client_id,
        "client_host": metadata.client_host.lstrip("/"),
        "subscription": sorted(metadata.topic_names | matched),
        "assignment": {names[topic_id]: sorted(parts) for topic_id, parts in described.assignment.items()},
    }


async def _streams_group(coordinator: Broker, kept: StreamsGroup) -> JSON:
    """As the coordinator describes it, whether or not `streams.version` is finalized."""
    from kpybroker.core.streams_group.sticky_assignor import STICKY_ASSIGNOR
    from kpybroker.core.streams_group.values import STREAMS_GROUP_TYPE, DescribeStreamsGroup

    found = await coordinator.groups.ask(DescribeStreamsGroup(kept.group_id))
    check(found.error, f"describing group {kept.group_id}", found.message)
    return {
        "group_id": kept.group_id,
        "type": STREAMS_GROUP_TYPE,
        "state": found.state,
        "coordinator": coordinator.node_id,
        "generation": found.group_epoch,
        "protocol_type": STREAMS_GROUP_TYPE,
        "protocol": STICKY_ASSIGNOR,
        "leader": None,
        "members": [_streams_member(one, kept) for one in found.members],
    }


def _streams_member(member: StreamsMember, kept: StreamsGroup) -> JSON:
    from kpybroker.core.streams_group.endpoints import source_partitions

    configured = None if kept.configured is None else kept.configured.subtopologies
    read = {name for one in (configured or {}).values() for name in one.subtopology.all_source_topics}
    active = {subtopology_id: frozenset(epochs) for subtopology_id, epochs in member.current.assigned.active.items()}
    return {
        "member_id": member.member_id,
        "instance_id": member.metadata.instance_id,
        "client_id": member.metadata.client_id,
        "client_host": member.metadata.client_host.lstrip("/"),
        "subscription": sorted(read),
        "assignment": {topic: list(parts) for topic, parts in source_partitions(kept, active).items()},
    }


def _subscription(data: bytes) -> JSON:
    """Topics; none where the bytes are not a subscription."""
    return sorted(subscribed_topics(data) or ())


def _assignment(data: bytes) -> JSON:
    """Partitions by topic; none where the bytes are not an assignment. All versions begin with version 0."""
    from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment

    try:
        found = decode(ConsumerProtocolAssignment, data[_VERSION_BYTES:], 0, max_elements=len(data))
    except ProtocolError:
        return {}
    return {one.topic: sorted(one.partitions) for one in found.assigned_partitions}


async def committed(hosted: Hosted, group: str) -> JSON:
    """The committed offsets of a group with their metadata, and how many records are not consumed yet (lag)."""
    from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest

    coordinator = await loaded_coordinator(hosted, GROUP_METADATA_TOPIC_NAME, group)
    if coordinator is None:
        return []
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
    response = await ask(coordinator, ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=[wanted]))
    found = response.groups[0]
    check(found.error_code, f"reading the offsets of group {group}")
    return [_commit(hosted, one.name, at) for one in found.topics for at in one.partitions]


def _commit(hosted: Hosted, topic: str, at: Any) -> JSON:
    state = any_broker(hosted).metadata.partition(topic, at.partition_index)
    replica = None if state is None else _leader_replica(hosted, state)
    log = None if replica is None else replica.log
    return {
        "topic": topic,
        "partition": at.partition_index,
        "offset": at.committed_offset,
        "leader_epoch": at.committed_leader_epoch,
        "metadata": at.metadata or "",
        "lag": None if log is None or at.committed_offset < 0 else max(log.high_watermark - at.committed_offset, 0),
    }


# --- transactions


async def transactions(hosted: Hosted) -> JSON:
    """Every transactional id: its state, its producer, and the partitions of a transaction that is open."""
    from kpybroker.wire.messages.list_transactions import ListTransactionsRequest

    found = []
    for broker in awake(hosted):
        response = await ask(broker, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
        if response.error_code == ErrorCode.NONE:
            found += [one.transactional_id for one in response.transaction_states]
    return [await transaction(hosted, transactional_id) for transactional_id in sorted(set(found))]


async def transaction(hosted: Hosted, transactional_id: str) -> JSON:
    """One transactional id, as in `transactions`."""
    from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest

    coordinator = await loaded_coordinator(hosted, TRANSACTION_STATE_TOPIC_NAME, transactional_id)
    if coordinator is None:
        raise ControlError(f"there is no transactional id `{transactional_id}`", did_you_mean("", ()), status=404)
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    found = (await ask(coordinator, ApiKey.DESCRIBE_TRANSACTIONS, request)).transaction_states[0]
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise ControlError(f"there is no transactional id `{transactional_id}`", "see `transactions`", status=404)
    check(found.error_code, f"describing transaction {transactional_id}")
    return {
        "transactional_id": transactional_id,
        "coordinator": coordinator.node_id,
        "state": found.transaction_state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.transaction_timeout_ms,
        "started_ms": found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
        "partitions": [[one.topic, index] for one in found.topics for index in sorted(one.partitions)],
    }


METHODS = methods(topics, topic, groups, group, committed, transactions, transaction)
