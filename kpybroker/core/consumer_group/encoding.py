"""The records of consumer groups: values <-> key and value bytes, in Kafka 4.3's formats.

A key starts with its type. A value starts with version 0, the only one; it is flexible, so later Kafkas add tagged
fields. A null value is a tombstone. Imported with the first such record: its messages are as many as all others here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.consumer_group.members import (
    ClassicMetadata,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    PartitionEpochs,
)
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpoch,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpoch,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.values import ResolvedPattern
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kpybroker.wire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kpybroker.wire.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kpybroker.wire.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kpybroker.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kpybroker.wire.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kpybroker.wire.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kpybroker.wire.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from kpybroker.wire.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kpybroker.wire.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kpybroker.wire.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kpybroker.wire.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kpybroker.wire.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kpybroker.wire.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kpybroker.wire.schema import Message

CurrentValue = ConsumerGroupCurrentMemberAssignmentValue
MetadataValue = ConsumerGroupMemberMetadataValue
ClassicValue = MetadataValue.ClassicMemberMetadata
TargetValue = ConsumerGroupTargetAssignmentMemberValue

VALUE_VERSION: Final = 0
_VERSION = struct.Struct(">h")


def encode_consumer_record(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    """Key and value bytes."""
    record_type = _TYPE_OF[type(record)]
    key: Message
    match record:
        case GroupEpochRecord(group_id):
            key = ConsumerGroupMetadataKey(group_id=group_id)
        case PartitionMetadataRecord(group_id):
            key = ConsumerGroupPartitionMetadataKey(group_id=group_id)
        case MemberRecord(group_id, member_id):
            key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
        case TargetEpochRecord(group_id):
            key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
        case TargetRecord(group_id, member_id):
            key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
        case CurrentRecord(group_id, member_id):
            key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        case PatternRecord(group_id, pattern):
            key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    data = _VERSION.pack(record_type) + encode(key, record_type)
    if record.value is None:
        return data, None
    return data, _VERSION.pack(VALUE_VERSION) + encode(_TO_MESSAGE[type(record)](record.value), VALUE_VERSION)


def decode_consumer_record(
    record_type: int, key: bytes | memoryview, value: bytes | memoryview | None
) -> ConsumerRecord | None:
    """The record of a key without its first two bytes; None if the type is not one of consumer groups.

    Raises ProtocolError.
    """
    if record_type not in _KINDS:
        return None
    key_class, value_class, new_record = _KINDS[record_type]
    message = None
    if value is not None:
        if len(value) < _VERSION.size:
            raise ProtocolError("the value of a group record is too short for its version")
        version = _VERSION.unpack_from(value)[0]
        if version != VALUE_VERSION:
            raise ProtocolError(f"Unknown version of {value_class.__name__}: {version}")
        message = decode(value_class, value[_VERSION.size :], version)
    return new_record(decode(key_class, key, record_type), message)


# --- values to messages


def _metadata_message(value: MemberMetadata) -> MetadataValue:
    classic = value.classic
    return MetadataValue(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=sorted(value.topic_names),
        subscribed_topic_regex=value.pattern,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicValue(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                MetadataValue.ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
            ],
        ),
    )


def _target_message(value: Partitions) -> TargetValue:
    return TargetValue(
        topic_partitions=[
            TargetValue.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in value.items()
        ]
    )


def _current_message(value: CurrentAssignment) -> CurrentValue:
    return CurrentValue(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=value.state,
        assigned_partitions=_with_epochs(value.assigned),
        partitions_pending_revocation=_with_epochs(value.pending_revocation),
    )


def _with_epochs(assigned: PartitionEpochs) -> list[CurrentValue.TopicPartitions]:
    topics = []
    for topic_id, epochs in assigned.items():
        partitions = sorted(epochs)
        at = [epochs[partition] for partition in partitions]
        topics.append(CurrentValue.TopicPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=at))
    return topics


_TO_MESSAGE: Final[dict[type[ConsumerRecord], Callable[[Any], Message]]] = {
    GroupEpochRecord: lambda value: ConsumerGroupMetadataValue(epoch=value.epoch, metadata_hash=value.metadata_hash),
    PartitionMetadataRecord: lambda value: ConsumerGroupPartitionMetadataValue(),
    MemberRecord: _metadata_message,
    TargetEpochRecord: lambda value: ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=value.epoch, assignment_timestamp=value.timestamp_ms
    ),
    TargetRecord: _target_message,
    CurrentRecord: _current_message,
    PatternRecord: lambda value: ConsumerGroupRegularExpressionValue(
        topics=sorted(value.topic_names), version=value.version, timestamp=value.timestamp_ms
    ),
}


# --- messages to records


def _epoch_record(key: Any, value: ConsumerGroupMetadataValue | None) -> ConsumerRecord:
    return GroupEpochRecord(key.group_id, None if value is None else GroupEpoch(value.epoch, value.metadata_hash))


def _partition_metadata_record(key: Any, value: Message | None) -> ConsumerRecord:
    return PartitionMetadataRecord(key.group_id, None if value is None else True)


def _member_record(key: Any, value: MetadataValue | None) -> ConsumerRecord:
    if value is None:
        return MemberRecord(key.group_id, key.member_id, None)
    classic = value.classic_member_metadata
    if classic is not None and not classic.supported_protocols:
        classic = None  # the default of the tagged field; a classic member has protocols
    metadata = MemberMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        pattern=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms, tuple((one.name, bytes(one.metadata)) for one in classic.supported_protocols)
        ),
    )
    return MemberRecord(key.group_id, key.member_id, metadata)


def _target_epoch_record(key: Any, value: ConsumerGroupTargetAssignmentMetadataValue | None) -> ConsumerRecord:
    return TargetEpochRecord(
        key.group_id, None if value is None else TargetEpoch(value.assignment_epoch, value.assignment_timestamp)
    )


def _target_record(key: Any, value: TargetValue | None) -> ConsumerRecord:
    target = (
        None if value is None else {bytes(one.topic_id): frozenset(one.partitions) for one in value.topic_partitions}
    )
    return TargetRecord(key.group_id, key.member_id, target)


def _current_record(key: Any, value: CurrentValue | None) -> ConsumerRecord:
    if value is None:
        return CurrentRecord(key.group_id, key.member_id, None)
    current = CurrentAssignment(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )
    return CurrentRecord(key.group_id, key.member_id, current)


def _epochs(topics: Iterable[CurrentValue.TopicPartitions], member_epoch: int) -> dict[TopicId, dict[int, int]]:
    """Before Kafka 4.3 there were no epochs: then that of the member counts, and 0 for a static one that is away."""
    result = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        result[bytes(topic.topic_id)] = dict(zip(topic.partitions, epochs, strict=True))
    return result


def _pattern_record(key: Any, value: ConsumerGroupRegularExpressionValue | None) -> ConsumerRecord:
    resolved = None if value is None else ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)
    return PatternRecord(key.group_id, key.regular_expression, resolved)


Kind = tuple[type[Message], type[Message], Callable[[Any, Any], ConsumerRecord]]

_KINDS: Final[dict[int, Kind]] = {
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, _epoch_record),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue, _partition_metadata_record),
    5: (ConsumerGroupMemberMetadataKey, MetadataValue, _member_record),
    6: (
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMetadataValue,
        _target_epoch_record,
    ),
    7: (ConsumerGroupTargetAssignmentMemberKey, TargetValue, _target_record),
    8: (ConsumerGroupCurrentMemberAssignmentKey, CurrentValue, _current_record),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, _pattern_record),
}
_TYPE_OF: Final[dict[type[ConsumerRecord], int]] = {
    GroupEpochRecord: 3,
    PartitionMetadataRecord: 4,
    MemberRecord: 5,
    TargetEpochRecord: 6,
    TargetRecord: 7,
    CurrentRecord: 8,
    PatternRecord: 16,
}
