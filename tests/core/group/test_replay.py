"""Any log is loaded, never with an error; its groups are those of Kafka 4.3.1, and members can go on in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings

from kpybroker.core.consumer_group.members import GONE, NEW_ASSIGNMENT, NEW_METADATA, Member
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import StoredGroup, decode_record
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.offsets.store import CommittedOffset
from kpybroker.wire.errors import ProtocolError
from tests.core.group.harness import LogEntry
from tests.core.group.kafka_replay import GONE as KAFKA_GONE
from tests.core.group.kafka_replay import KafkasGroup, KafkasGroups, KafkasMember
from tests.core.group.mixed_logs import MIXED_LOGS


def loaded(log: Iterable[LogEntry]) -> GroupMachine:
    """As a coordinator loads it: what cannot be read is passed over."""
    machine = GroupMachine(GroupConfig())
    for offset, entry in enumerate(log):
        if len(entry) == 2:
            machine.replay_marker(*entry)
            continue
        key, value, producer_id = entry
        try:
            record = decode_record(key, value)
        except ProtocolError:
            continue
        if record is not None:
            machine.replay(record, offset, producer_id)
    return machine


def loaded_by_kafka(log: Iterable[LogEntry]) -> KafkasGroups:
    groups = KafkasGroups()
    for offset, entry in enumerate(log):
        if len(entry) == 2:
            groups.marker(*entry)
        else:
            groups.replay(offset, *entry)
    return groups


# --- ours and Kafka's in the same words


def our_offset(offset: CommittedOffset) -> object:
    value = offset.value
    expires = -1 if value.expire_timestamp_ms is None else value.expire_timestamp_ms
    return (
        offset.record_offset,
        (value.offset, value.leader_epoch, value.metadata, value.commit_timestamp_ms, expires, value.topic_id),
    )


def kafkas_offset(offset: tuple[int, Any]) -> object:
    at, value = offset
    said = (value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp)
    return at, (*said, bytes(value.topic_id))


def our_generation(stored: StoredGroup) -> object:
    members = [
        (one.member_id, one.group_instance_id, one.client_id, one.client_host, one.rebalance_timeout_ms)
        + (one.session_timeout_ms, one.subscription, one.assignment)
        for one in stored.members
    ]
    said = (stored.protocol_type, stored.generation_id, stored.protocol_name, stored.leader)
    return *said, stored.state_timestamp_ms, members


def kafkas_generation(value: Any) -> object:
    members = [
        (
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.session_timeout if one.rebalance_timeout == -1 else one.rebalance_timeout,
            one.session_timeout,
            bytes(one.subscription),
            bytes(one.assignment),
        )
        for one in value.members
    ]
    return value.protocol_type, value.generation, value.protocol, value.leader, value.current_state_timestamp, members


def our_member(member: Member) -> object:
    said = member.metadata
    metadata = None
    if said != NEW_METADATA:
        classic = None if said.classic is None else (said.classic.session_timeout_ms, said.classic.protocols)
        metadata = (said.instance_id, said.rack_id, said.client_id, said.client_host, said.topic_names, said.pattern)
        metadata += (said.rebalance_timeout_ms, said.server_assignor, classic)
    current = member.current
    if current in (GONE, NEW_ASSIGNMENT):
        return metadata, None if current == NEW_ASSIGNMENT else KAFKA_GONE
    said_current = (current.member_epoch, current.previous_member_epoch, int(current.state))
    return metadata, (*said_current, current.assigned, current.pending_revocation)


def kafkas_member(member: KafkasMember) -> object:
    said, metadata = member.metadata, None
    if said is not None:
        classic = said.classic_member_metadata
        if classic is not None:
            protocols = tuple((one.name, bytes(one.metadata)) for one in classic.supported_protocols)
            classic = (classic.session_timeout_ms, protocols) if protocols else None
        metadata = (said.instance_id, said.rack_id, said.client_id, said.client_host)
        metadata += (frozenset(said.subscribed_topic_names), said.subscribed_topic_regex)
        metadata += (said.rebalance_timeout_ms, said.server_assignor, classic)
    current = member.current
    if current is None or current is KAFKA_GONE:
        return metadata, current
    state = current.state if current.state in (0, 1, 2) else 127
    parts = (current.assigned_partitions, current.partitions_pending_revocation)
    epochs = (_epochs(part, max(current.member_epoch, 0)) for part in parts)
    return metadata, (current.member_epoch, current.previous_member_epoch, state, *epochs)


def _epochs(topics: Any, default: int) -> object:
    found = {}
    for topic in topics:
        given = topic.assignment_epochs
        if given is None or len(given) != len(topic.partitions):
            given = [default] * len(topic.partitions)
        found[bytes(topic.topic_id)] = dict(zip(topic.partitions, given, strict=True))
    return found


def our_group(group: ConsumerGroup) -> object:
    return (
        (group.epoch, group.metadata_hash, (group.target_epoch.epoch, group.target_epoch.timestamp_ms)),
        {member_id: our_member(member) for member_id, member in group.members.items()},
        group.targets,
        {text: (one.topic_names, one.version, one.timestamp_ms) for text, one in group.patterns.items()},
        group.has_partition_metadata,
    )


def kafkas_group(group: KafkasGroup) -> object:
    return (
        (group.epoch, group.metadata_hash, group.target),
        {member_id: kafkas_member(member) for member_id, member in group.members.items()},
        {
            member_id: {bytes(one.topic_id): frozenset(one.partitions) for one in target.topic_partitions}
            for member_id, target in group.targets.items()
        },
        {text: (frozenset(one.topics), one.version, one.timestamp) for text, one in group.patterns.items()},
        group.has_partition_metadata,
    )


def ours(machine: GroupMachine) -> object:
    groups = machine.groups
    return (
        {name: our_generation(one.stored) for name, one in groups.items() if one.stored is not None},
        {name: our_group(one.consumer) for name, one in groups.items() if one.consumer is not None},
        {
            (name, *partition): our_offset(offset)
            for name, one in groups.items()
            for partition, offset in one.offsets.committed.items()
        },
        {
            (producer_id, name, *partition): our_offset(offset)
            for name, one in groups.items()
            for producer_id, offsets in one.offsets.pending.items()
            for partition, offset in offsets.items()
        },
    )


def kafkas(groups: KafkasGroups) -> object:
    return (
        {name: kafkas_generation(value) for name, value in groups.classic.items()},
        {name: kafkas_group(group) for name, group in groups.consumer.items()},
        {where: kafkas_offset(offset) for where, offset in groups.offsets.items()},
        {
            (producer_id, *where): kafkas_offset(offset)
            for producer_id, offsets in groups.pending.items()
            for where, offset in offsets.items()
        },
    )


@given(MIXED_LOGS)
@settings(max_examples=300, derandomize=True)
def test_any_log_is_loaded_to_what_kafka_makes_of_it(log: list[LogEntry]) -> None:
    """Where Kafka throws, and serves none of the partition's groups, the later record counts."""
    assert ours(loaded(log)) == kafkas(loaded_by_kafka(log))
