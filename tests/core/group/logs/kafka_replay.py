"""What Kafka 4.3.1 makes of records in `__consumer_offsets`: its replay, written again from its sources.

That of GroupMetadataManager and OffsetMetadataManager, on keys and values as their messages. Where Kafka
throws, and does not load the partition, `thrown` has the reason, and the rule of kpybroker is applied: the later record
counts. Two things Kafka has that no record says are left out: a "simple" group that has no offsets, and the empty
consumer group that a tombstone makes of a simple group.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from kpybroker.wire.codec import decode
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
from kpybroker.wire.messages.group_metadata_key import GroupMetadataKey
from kpybroker.wire.messages.group_metadata_value import GroupMetadataValue
from kpybroker.wire.messages.offset_commit_key import OffsetCommitKey
from kpybroker.wire.messages.offset_commit_value import OffsetCommitValue
from kpybroker.wire.schema import Message

MESSAGES: dict[int, tuple[type[Message], type[Message]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
GONE = "gone"
"""In place of a current assignment that has a tombstone: Kafka's epoch -1 with nothing assigned."""
_VERSION = struct.Struct(">h")


@dataclass
class KafkasMember:
    """What its two records say last."""

    metadata: Any = None
    current: Any = None


@dataclass
class KafkasGroup:
    """A consumer group."""

    epoch: int = 1
    metadata_hash: int = 0
    target: tuple[int, int] = (1, 0)
    members: dict[str, KafkasMember] = field(default_factory=dict)
    targets: dict[str, Any] = field(default_factory=dict)
    patterns: dict[str, Any] = field(default_factory=dict)
    has_partition_metadata: bool = False

    def member(self, member_id: str) -> KafkasMember:
        return self.members.setdefault(member_id, KafkasMember())


class KafkasGroups:
    """`classic` and `consumer` groups by id, and offsets, which belong to no kind, by group, topic and partition."""

    def __init__(self) -> None:
        self.classic: dict[str, Any] = {}
        self.consumer: dict[str, KafkasGroup] = {}
        self.offsets: dict[tuple[str, str, int], tuple[int, Any]] = {}
        self.pending: dict[int, dict[tuple[str, str, int], tuple[int, Any]]] = {}
        self.thrown: list[str] = []

    def marker(self, producer_id: int, committed: bool) -> None:
        for key, offset in self.pending.pop(producer_id, {}).items():
            if committed and (key not in self.offsets or self.offsets[key][0] < offset[0]):
                self.offsets[key] = offset

    def replay(self, offset: int, key: bytes, value: bytes | None, producer_id: int) -> None:
        record_type = _VERSION.unpack_from(key)[0] if len(key) >= 2 else -1
        if record_type not in MESSAGES:
            return  # an unknown type is passed over; the groups of types 10 to 23 are not served here
        key_class, value_class = MESSAGES[record_type]
        try:
            read: Any = decode(key_class, key[2:], record_type)
            said = None if value is None else _value(value_class, value)
        except ProtocolError:
            self.thrown.append(f"{value_class.__name__} cannot be read")
            return
        if record_type < 2:
            self._offset(offset, read, said, producer_id)
        elif record_type == 2:
            self._classic(read.group, said)
        elif said is not None:
            self._consumer(read, said)
        elif read.group_id in self.consumer:
            self._consumer_tombstone(read, self.consumer[read.group_id])
        elif read.group_id in self.classic:
            self.thrown.append("a tombstone of a consumer group in a classic one")

    def _offset(self, offset: int, key: Any, value: Any, producer_id: int) -> None:
        where = (key.group, key.topic, key.partition)
        if value is None:
            self.offsets.pop(where, None)
            for pending in self.pending.values():
                pending.pop(where, None)
        elif producer_id < 0:
            self.offsets[where] = (offset, value)
        else:
            self.pending.setdefault(producer_id, {})[where] = (offset, value)

    def _classic(self, group_id: str, value: Any) -> None:
        self.consumer.pop(group_id, None)
        self.classic.pop(group_id, None)
        if value is not None:
            self.classic[group_id] = value
            instances = [one.group_instance_id for one in value.members if one.group_instance_id is not None]
            if len(set(instances)) < len(instances):
                self.thrown.append("two members with one instance id")

    def _consumer(self, key: Any, value: Any) -> None:
        if self.classic.pop(key.group_id, None) is not None:
            self.thrown.append("a record of a consumer group in a classic one")
        group = self.consumer.setdefault(key.group_id, KafkasGroup())
        match key:
            case ConsumerGroupMetadataKey():
                group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupPartitionMetadataKey():
                group.has_partition_metadata = True
            case ConsumerGroupMemberMetadataKey():
                group.member(key.member_id).metadata = value
            case ConsumerGroupTargetAssignmentMetadataKey():
                group.target = (value.assignment_epoch, value.assignment_timestamp)
            case ConsumerGroupTargetAssignmentMemberKey():
                group.targets[key.member_id] = value
            case ConsumerGroupCurrentMemberAssignmentKey():
                group.member(key.member_id).current = value
            case ConsumerGroupRegularExpressionKey():
                group.patterns[key.regular_expression] = value

    def _consumer_tombstone(self, key: Any, group: KafkasGroup) -> None:
        match key:
            case ConsumerGroupMetadataKey():
                if group.members or group.targets or group.target[0] != -1:
                    self.thrown.append("the end of a group that is not empty")
                del self.consumer[key.group_id]
            case ConsumerGroupPartitionMetadataKey():
                group.has_partition_metadata = False
            case ConsumerGroupMemberMetadataKey():
                member = group.members.pop(key.member_id, None)
                target = group.targets.pop(key.member_id, None) if member is not None else None
                if member is not None and (target is not None or not _is_gone(member)):
                    self.thrown.append("the end of a member that has an assignment")
            case ConsumerGroupTargetAssignmentMetadataKey():
                if group.targets:
                    self.thrown.append("the end of a target that is not empty")
                group.target = (-1, 0)
            case ConsumerGroupTargetAssignmentMemberKey():
                group.targets.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey():
                if key.member_id in group.members:
                    group.members[key.member_id].current = GONE
            case ConsumerGroupRegularExpressionKey():
                group.patterns.pop(key.regular_expression, None)


def _is_gone(member: KafkasMember) -> bool:
    return member.current is GONE or (member.current is not None and member.current.member_epoch == -1)


def _value(value_class: type[Message], data: bytes) -> Message:
    version = _VERSION.unpack_from(data)[0] if len(data) >= 2 else -1
    low, high = value_class.VERSIONS
    if not low <= version <= high:
        raise ProtocolError(f"no version {version}")
    return decode(value_class, data[2:], version)
