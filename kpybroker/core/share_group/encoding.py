"""The records of share groups: values <-> key and value bytes, in Kafka 4.3's formats.

`core.modern_group.encoding` has the frame. Imported with the first such record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.modern_group.encoding import (
    OF_MEMBER,
    RecordType,
    RecordTypes,
    epoch_value,
    partitions_message,
    partitions_value,
    target_epoch_value,
)
from kpybroker.core.share_group.members import ShareAssignment, ShareMemberMetadata
from kpybroker.core.share_group.records import (
    NamedPartitions,
    ShareCurrentRecord,
    ShareGroupEpochRecord,
    ShareMemberRecord,
    ShareRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitions,
    StatePartitionsRecord,
    TopicStates,
)
from kpybroker.wire.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kpybroker.wire.messages.share_group_current_member_assignment_value import ShareGroupCurrentMemberAssignmentValue
from kpybroker.wire.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kpybroker.wire.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kpybroker.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from kpybroker.wire.messages.share_group_metadata_value import ShareGroupMetadataValue
from kpybroker.wire.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kpybroker.wire.messages.share_group_state_partition_metadata_value import ShareGroupStatePartitionMetadataValue
from kpybroker.wire.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kpybroker.wire.messages.share_group_target_assignment_member_value import ShareGroupTargetAssignmentMemberValue
from kpybroker.wire.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kpybroker.wire.messages.share_group_target_assignment_metadata_value import ShareGroupTargetAssignmentMetadataValue

STABLE: Final = 0
"""The only state of a member."""

CurrentValue = ShareGroupCurrentMemberAssignmentValue
StatesValue = ShareGroupStatePartitionMetadataValue
TargetValue = ShareGroupTargetAssignmentMemberValue


# --- values to messages


def _member_message(value: ShareMemberMetadata) -> ShareGroupMemberMetadataValue:
    return ShareGroupMemberMetadataValue(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=sorted(value.topic_names),
    )


def _target_message(value: Partitions) -> TargetValue:
    return TargetValue(topic_partitions=partitions_message(TargetValue.TopicPartition, value))


def _current_message(value: ShareAssignment) -> CurrentValue:
    return CurrentValue(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=STABLE,
        assigned_partitions=partitions_message(CurrentValue.TopicPartitions, value.assigned),
    )


def _states_message(value: StatePartitions) -> StatesValue:
    return StatesValue(
        initializing_topics=_infos(value.initializing),
        initialized_topics=_infos(value.initialized),
        deleting_topics=[
            StatesValue.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in value.deleting.items()
        ],
    )


def _infos(topics: TopicStates) -> list[StatesValue.TopicPartitionsInfo]:
    return [
        StatesValue.TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions))
        for topic_id, topic in topics.items()
    ]


# --- messages to values


def _member(value: ShareGroupMemberMetadataValue) -> ShareMemberMetadata:
    names = frozenset(value.subscribed_topic_names)
    return ShareMemberMetadata(value.rack_id, value.client_id, value.client_host, names)


def _current(value: CurrentValue) -> ShareAssignment:
    assigned = partitions_value(value.assigned_partitions)
    return ShareAssignment(value.member_epoch, value.previous_member_epoch, assigned)


def _states(value: StatesValue) -> StatePartitions:
    return StatePartitions(
        _topic_states(value.initializing_topics),
        _topic_states(value.initialized_topics),
        {bytes(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
    )


def _topic_states(topics: Iterable[StatesValue.TopicPartitionsInfo]) -> dict[TopicId, NamedPartitions]:
    return {bytes(topic.topic_id): NamedPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics}


_TYPES: Final[RecordTypes[ShareRecord]] = RecordTypes(
    RecordType(
        10,
        ShareGroupMemberMetadataKey,
        ShareGroupMemberMetadataValue,
        ShareMemberRecord,
        _member_message,
        _member,
        OF_MEMBER,
    ),
    RecordType(
        11,
        ShareGroupMetadataKey,
        ShareGroupMetadataValue,
        ShareGroupEpochRecord,
        lambda value: ShareGroupMetadataValue(epoch=value.epoch, metadata_hash=value.metadata_hash),
        epoch_value,
    ),
    RecordType(
        12,
        ShareGroupTargetAssignmentMetadataKey,
        ShareGroupTargetAssignmentMetadataValue,
        ShareTargetEpochRecord,
        lambda value: ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=value.epoch, assignment_timestamp=value.timestamp_ms
        ),
        target_epoch_value,
    ),
    RecordType(
        13,
        ShareGroupTargetAssignmentMemberKey,
        TargetValue,
        ShareTargetRecord,
        _target_message,
        lambda value: partitions_value(value.topic_partitions),
        OF_MEMBER,
    ),
    RecordType(
        14,
        ShareGroupCurrentMemberAssignmentKey,
        CurrentValue,
        ShareCurrentRecord,
        _current_message,
        _current,
        OF_MEMBER,
    ),
    RecordType(15, ShareGroupStatePartitionMetadataKey, StatesValue, StatePartitionsRecord, _states_message, _states),
)
encode_share_record: Final = _TYPES.encode
decode_share_record: Final = _TYPES.decode
