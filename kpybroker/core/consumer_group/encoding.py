"""The records of consumer groups: values <-> key and value bytes, in Kafka 4.3's formats.

`core.modern_group.encoding` has the frame. Imported with the first such record: its messages are as many as all others
here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.values import ResolvedPattern
from kpybroker.core.modern_group.encoding import (
    OF_GROUP,
    OF_MEMBER,
    RecordType,
    RecordTypes,
    epoch_value,
    partitions_message,
    partitions_value,
    target_epoch_value,
)
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

CurrentValue = ConsumerGroupCurrentMemberAssignmentValue
MetadataValue = ConsumerGroupMemberMetadataValue
ClassicValue = MetadataValue.ClassicMemberMetadata
TargetValue = ConsumerGroupTargetAssignmentMemberValue


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
    return TargetValue(topic_partitions=partitions_message(TargetValue.TopicPartition, value))


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


# --- messages to values


def _member(value: MetadataValue) -> MemberMetadata:
    classic = value.classic_member_metadata
    if classic is not None and not classic.supported_protocols:
        classic = None  # the default of the tagged field; a classic member has protocols
    return MemberMetadata(
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


def _current(value: CurrentValue) -> CurrentAssignment:
    return CurrentAssignment(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _epochs(topics: Iterable[CurrentValue.TopicPartitions], member_epoch: int) -> dict[TopicId, dict[int, int]]:
    """Before Kafka 4.3 there were no epochs: then that of the member counts, and 0 for a static one that is away."""
    result = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        result[bytes(topic.topic_id)] = dict(zip(topic.partitions, epochs, strict=True))
    return result


def _pattern(value: ConsumerGroupRegularExpressionValue) -> ResolvedPattern:
    return ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)


_TYPES: Final[RecordTypes[ConsumerRecord]] = RecordTypes(
    RecordType(
        3,
        ConsumerGroupMetadataKey,
        ConsumerGroupMetadataValue,
        GroupEpochRecord,
        lambda value: ConsumerGroupMetadataValue(epoch=value.epoch, metadata_hash=value.metadata_hash),
        epoch_value,
    ),
    RecordType(
        4,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupPartitionMetadataValue,
        PartitionMetadataRecord,
        lambda value: ConsumerGroupPartitionMetadataValue(),
        lambda value: True,
    ),
    RecordType(5, ConsumerGroupMemberMetadataKey, MetadataValue, MemberRecord, _metadata_message, _member, OF_MEMBER),
    RecordType(
        6,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMetadataValue,
        TargetEpochRecord,
        lambda value: ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=value.epoch, assignment_timestamp=value.timestamp_ms
        ),
        target_epoch_value,
    ),
    RecordType(
        7,
        ConsumerGroupTargetAssignmentMemberKey,
        TargetValue,
        TargetRecord,
        _target_message,
        lambda value: partitions_value(value.topic_partitions),
        OF_MEMBER,
    ),
    RecordType(
        8,
        ConsumerGroupCurrentMemberAssignmentKey,
        CurrentValue,
        CurrentRecord,
        _current_message,
        _current,
        OF_MEMBER,
    ),
    RecordType(
        16,
        ConsumerGroupRegularExpressionKey,
        ConsumerGroupRegularExpressionValue,
        PatternRecord,
        lambda value: ConsumerGroupRegularExpressionValue(
            topics=sorted(value.topic_names), version=value.version, timestamp=value.timestamp_ms
        ),
        _pattern,
        (*OF_GROUP, ("regular_expression", "pattern")),
    ),
)
encode_consumer_record: Final = _TYPES.encode
decode_consumer_record: Final = _TYPES.decode
