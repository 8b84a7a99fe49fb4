"""The records of share groups: values <-> key and value bytes, in Kafka 4.3's formats.

A key starts with its type. A value starts with version 0, the only one. A null value is a tombstone. Imported with the
first such record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.consumer_group.records import GroupEpoch, TargetEpoch
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
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
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
from kpybroker.wire.schema import Message

VALUE_VERSION: Final = 0
STABLE: Final = 0
"""The only state of a member."""
_VERSION = struct.Struct(">h")

CurrentValue = ShareGroupCurrentMemberAssignmentValue
StatesValue = ShareGroupStatePartitionMetadataValue
TargetValue = ShareGroupTargetAssignmentMemberValue


def encode_share_record(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Key and value bytes."""
    record_type, key_class, to_message = _ENCODERS[type(record)]
    fields = {"group_id": record.group_id}
    if isinstance(record, ShareMemberRecord | ShareTargetRecord | ShareCurrentRecord):
        fields["member_id"] = record.member_id
    key = _VERSION.pack(record_type) + encode(key_class(**fields), record_type)
    if record.value is None:
        return key, None
    return key, _VERSION.pack(VALUE_VERSION) + encode(to_message(record.value), VALUE_VERSION)


def decode_share_record(
    record_type: int, key: bytes | memoryview, value: bytes | memoryview | None
) -> ShareRecord | None:
    """The record of a key without its first two bytes; None if the type is not one of share groups.

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


def _member_message(value: ShareMemberMetadata) -> ShareGroupMemberMetadataValue:
    return ShareGroupMemberMetadataValue(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=sorted(value.topic_names),
    )


def _target_message(value: Partitions) -> TargetValue:
    return TargetValue(
        topic_partitions=[
            TargetValue.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in value.items()
        ]
    )


def _current_message(value: ShareAssignment) -> CurrentValue:
    return CurrentValue(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=STABLE,
        assigned_partitions=[
            CurrentValue.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in value.assigned.items()
        ],
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


_ENCODERS: Final[Mapping[type[ShareRecord], tuple[int, type[Message], Callable[[Any], Message]]]] = {
    ShareMemberRecord: (10, ShareGroupMemberMetadataKey, _member_message),
    ShareGroupEpochRecord: (
        11,
        ShareGroupMetadataKey,
        lambda value: ShareGroupMetadataValue(epoch=value.epoch, metadata_hash=value.metadata_hash),
    ),
    ShareTargetEpochRecord: (
        12,
        ShareGroupTargetAssignmentMetadataKey,
        lambda value: ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=value.epoch, assignment_timestamp=value.timestamp_ms
        ),
    ),
    ShareTargetRecord: (13, ShareGroupTargetAssignmentMemberKey, _target_message),
    ShareCurrentRecord: (14, ShareGroupCurrentMemberAssignmentKey, _current_message),
    StatePartitionsRecord: (15, ShareGroupStatePartitionMetadataKey, _states_message),
}


# --- messages to records


def _member_record(key: Any, value: ShareGroupMemberMetadataValue | None) -> ShareRecord:
    if value is None:
        return ShareMemberRecord(key.group_id, key.member_id, None)
    metadata = ShareMemberMetadata(
        value.rack_id, value.client_id, value.client_host, frozenset(value.subscribed_topic_names)
    )
    return ShareMemberRecord(key.group_id, key.member_id, metadata)


def _epoch_record(key: Any, value: ShareGroupMetadataValue | None) -> ShareRecord:
    return ShareGroupEpochRecord(key.group_id, None if value is None else GroupEpoch(value.epoch, value.metadata_hash))


def _target_epoch_record(key: Any, value: ShareGroupTargetAssignmentMetadataValue | None) -> ShareRecord:
    return ShareTargetEpochRecord(
        key.group_id, None if value is None else TargetEpoch(value.assignment_epoch, value.assignment_timestamp)
    )


def _target_record(key: Any, value: TargetValue | None) -> ShareRecord:
    return ShareTargetRecord(
        key.group_id, key.member_id, None if value is None else _partitions(value.topic_partitions)
    )


def _current_record(key: Any, value: CurrentValue | None) -> ShareRecord:
    if value is None:
        return ShareCurrentRecord(key.group_id, key.member_id, None)
    assigned = _partitions(value.assigned_partitions)
    current = ShareAssignment(value.member_epoch, value.previous_member_epoch, assigned)
    return ShareCurrentRecord(key.group_id, key.member_id, current)


def _partitions(topics: Iterable[Any]) -> Partitions:
    return {bytes(topic.topic_id): frozenset(topic.partitions) for topic in topics}


def _states_record(key: Any, value: StatesValue | None) -> ShareRecord:
    if value is None:
        return StatePartitionsRecord(key.group_id, None)
    states = StatePartitions(
        _topic_states(value.initializing_topics),
        _topic_states(value.initialized_topics),
        {bytes(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
    )
    return StatePartitionsRecord(key.group_id, states)


def _topic_states(topics: Iterable[StatesValue.TopicPartitionsInfo]) -> dict[TopicId, NamedPartitions]:
    return {bytes(topic.topic_id): NamedPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics}


Kind = tuple[type[Message], type[Message], Callable[[Any, Any], ShareRecord]]

_KINDS: Final[dict[int, Kind]] = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue, _member_record),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue, _epoch_record),
    12: (
        ShareGroupTargetAssignmentMetadataKey,
        ShareGroupTargetAssignmentMetadataValue,
        _target_epoch_record,
    ),
    13: (ShareGroupTargetAssignmentMemberKey, TargetValue, _target_record),
    14: (ShareGroupCurrentMemberAssignmentKey, CurrentValue, _current_record),
    15: (ShareGroupStatePartitionMetadataKey, StatesValue, _states_record),
}
