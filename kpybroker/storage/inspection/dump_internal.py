"""The records of internal topics as plain values, for `kpybroker log dump`.

Every version of every key and value that Kafka 3.9 has, and of consumer, share and streams groups those of 4.3, is read
by its generated message; names of fields are Kafka's. A key or value that cannot be read is shown as it is, with the
reason: a dump never fails for what it finds. What a classic group with the consumer protocol stores of its members
(subscription, assignment) is decoded too, as by DumpLogSegments.

Not here: what the coordinators make of these records (`core.group.records`).
"""

from __future__ import annotations

import base64
import struct
from typing import Any, Final

from kpybroker.core.topic_names import (
    GROUP_METADATA_TOPIC_NAME,
    SHARE_GROUP_STATE_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
)
from kpybroker.storage.disk.checkpoints import uuid_to_text
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
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.messages.group_metadata_key import GroupMetadataKey
from kpybroker.wire.messages.group_metadata_value import GroupMetadataValue
from kpybroker.wire.messages.offset_commit_key import OffsetCommitKey
from kpybroker.wire.messages.offset_commit_value import OffsetCommitValue
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
from kpybroker.wire.messages.share_snapshot_key import ShareSnapshotKey
from kpybroker.wire.messages.share_snapshot_value import ShareSnapshotValue
from kpybroker.wire.messages.share_update_key import ShareUpdateKey
from kpybroker.wire.messages.share_update_value import ShareUpdateValue
from kpybroker.wire.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey
from kpybroker.wire.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kpybroker.wire.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kpybroker.wire.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from kpybroker.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kpybroker.wire.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kpybroker.wire.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from kpybroker.wire.messages.streams_group_target_assignment_member_value import StreamsGroupTargetAssignmentMemberValue
from kpybroker.wire.messages.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey
from kpybroker.wire.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kpybroker.wire.messages.streams_group_topology_key import StreamsGroupTopologyKey
from kpybroker.wire.messages.streams_group_topology_value import StreamsGroupTopologyValue
from kpybroker.wire.messages.transaction_log_key import TransactionLogKey
from kpybroker.wire.messages.transaction_log_value import TransactionLogValue
from kpybroker.wire.schema import Field, Message, default_value, struct_fields

Json = dict[str, Any]
Kinds = dict[int, tuple[type[Message], type[Message]]]

_OFFSET_COMMIT = (OffsetCommitKey, OffsetCommitValue)

_KINDS: Final[dict[str, Kinds]] = {
    GROUP_METADATA_TOPIC_NAME: {
        0: _OFFSET_COMMIT,
        1: _OFFSET_COMMIT,
        2: (GroupMetadataKey, GroupMetadataValue),
        3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
        11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
        12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
        13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
        14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
        15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
        16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
        17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
        19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
        20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
        21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
        22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
        23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
    },
    TRANSACTION_STATE_TOPIC_NAME: {0: (TransactionLogKey, TransactionLogValue)},
    SHARE_GROUP_STATE_TOPIC_NAME: {
        0: (ShareSnapshotKey, ShareSnapshotValue),
        1: (ShareUpdateKey, ShareUpdateValue),
    },
}
"""The messages of key and value, by topic and version of the key."""

_TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_EMBEDDED: Final[dict[str, type[Message]]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}
_VERSION = struct.Struct(">h")


def decode_internal(topic: str, key: bytes | None, value: bytes | None) -> tuple[Json | None, Json | None]:
    """Key and value of a record: `type`, `version` and `data`; None for null, `error` and `base64` for unreadable."""
    kinds = _KINDS[topic]
    version = _version(key)
    if key is None or version is None:
        return _raw(key, "the key is too short for its version"), _raw(value, "its key cannot be read")
    if version not in kinds:
        return _raw(key, f"no key of {topic} has version {version}"), _raw(value, "its key cannot be read")
    key_class, value_class = kinds[version]
    return _decode(key_class, key), None if value is None else _decode(value_class, value)


def _version(data: bytes | None) -> int | None:
    return None if data is None or len(data) < _VERSION.size else _VERSION.unpack_from(data)[0]


def _raw(data: bytes | None, error: str) -> Json | None:
    return None if data is None else {"error": error, "base64": base64.b64encode(data).decode()}


def _decode(message_class: type[Message], data: bytes) -> Json | None:
    version = _version(data)
    low, high = message_class.VERSIONS
    if version is None or not low <= version <= high:
        return _raw(data, f"no {message_class.__name__} has version {version}")
    try:
        message = decode(message_class, data[_VERSION.size :], version, max_elements=len(data))
    except ProtocolError as error:
        return _raw(data, str(error))
    decoded: Json = {"type": message_class.__name__, "version": version, "data": to_plain(message, version)}
    if isinstance(message, GroupMetadataValue) and message.protocol_type == "consumer":
        for member in decoded["data"]["members"]:
            for name, embedded in _EMBEDDED.items():
                member[name] = _embedded(embedded, base64.b64decode(member[name]))
    if isinstance(message, TransactionLogValue) and 0 <= message.transaction_status < len(_TRANSACTION_STATES):
        decoded["state"] = _TRANSACTION_STATES[message.transaction_status]
    return decoded


def _embedded(message_class: type[Message], data: bytes) -> Json | str:
    """A member's subscription or assignment. Later versions are read as the last known one; other bytes stay bytes."""
    version = _version(data)
    if version is not None and version >= 0:
        known = min(version, message_class.VERSIONS[1])
        try:
            message = decode(message_class, data[_VERSION.size :], known, max_elements=len(data))
            return {"version": version, **to_plain(message, known)}
        except ProtocolError:
            pass
    return base64.b64encode(data).decode()


def to_plain(message: Message, version: int) -> Json:
    """A message's fields of a version by Kafka's names; bytes in base64, uuids as Kafka writes them. As in Kafka's own
    JSON, tagged fields at their default are left out.
    """
    return _struct(type(message), message, version)


def _struct(message_class: type[Message], value: Message, version: int) -> Json:
    nested = None if type(value) is message_class else type(value)
    return {
        _camel(field.name): _field(message_class, field, getattr(value, field.name), version)
        for field in struct_fields(message_class, nested)
        if field.present(version) and not _is_left_out(field, getattr(value, field.name), version)
    }


def _is_left_out(field: Field, value: Any, version: int) -> bool:
    """A tagged field at its default is not in the bytes, and DumpLogSegments does not show it."""
    is_default = value == default_value(field) or (value is None and not field.is_nullable(version))
    return field.is_tagged(version) and is_default


def _field(message_class: type[Message], field: Field, value: Any, version: int) -> Any:
    if field.array and value is not None:
        return [_single(message_class, field, element, version) for element in value]
    return _single(message_class, field, value, version)


def _single(message_class: type[Message], field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        return _struct(message_class, value, version)
    if field.type_name == "uuid":
        return uuid_to_text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
