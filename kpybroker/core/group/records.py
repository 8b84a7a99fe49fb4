"""The records of `__consumer_offsets`: values <-> key and value bytes, in Kafka's formats.

A key starts with its version: 0 and 1 an offset, 2 a classic group; the rest are of `core.consumer_group.records`,
`core.share_group.records` and `core.streams_group.records`. A value starts with its own version, chosen by
`inter.broker.protocol.version` as in GroupMetadataManager, but 4 for an offset with a topic id, as in Kafka 4; every
version is read. A null value is a tombstone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kpybroker.core.consumer_group.records import CONSUMER_RECORD_TYPES, ConsumerRecord
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.core.share_group.records import SHARE_RECORD_TYPES, SHARE_RECORDS, ShareRecord
from kpybroker.core.streams_group.records import STREAMS_RECORD_TYPES, STREAMS_RECORDS, StreamsRecord
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.constants import NO_TIMESTAMP, ZERO_UUID
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.group_metadata_key import GroupMetadataKey
from kpybroker.wire.messages.group_metadata_value import GroupMetadataValue
from kpybroker.wire.messages.offset_commit_key import OffsetCommitKey
from kpybroker.wire.messages.offset_commit_value import OffsetCommitValue

OFFSET_COMMIT_KEY_VERSION_MAX = 1
GROUP_METADATA_KEY_VERSION = 2
VALUE_VERSION_MAX = 4
OFFSET_WITH_TOPIC_ID_VERSION = 4

_VERSION = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member in the log: only the chosen protocol's metadata is kept."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A group's generation in the log."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[StoredMember, ...]

    @property
    def distinct_members(self) -> list[StoredMember]:
        """Of several members with one id, or one instance id, the last: only an odd log has such."""
        by_id = {member.member_id: member for member in self.members}
        by_instance = {member.group_instance_id: member for member in by_id.values()}
        return [
            member
            for member in by_id.values()
            if member.group_instance_id is None or by_instance[member.group_instance_id] is member
        ]


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """The committed offset of one partition in a group; `value` None is a tombstone."""

    group_id: str
    partition: PartitionKey
    value: OffsetAndMetadata | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The last generation of a group; `value` None is a tombstone."""

    group_id: str
    value: StoredGroup | None


Record = OffsetRecord | GroupRecord | ConsumerRecord | ShareRecord | StreamsRecord


@dataclass(frozen=True, slots=True)
class RecordVersions:
    """Value versions for `inter.broker.protocol.version`: 3 since 2.1-IV1 (offsets) and 2.3-IV0 (groups)."""

    offset_commit_value: int = 3
    group_metadata_value: int = 3


def encode_record(record: Record, versions: RecordVersions) -> tuple[bytes, bytes | None]:
    """Key and value bytes."""
    if isinstance(record, OffsetRecord):
        topic, index = record.partition
        offset_key = OffsetCommitKey(group=record.group_id, topic=topic, partition=index)
        key = _VERSION.pack(OFFSET_COMMIT_KEY_VERSION_MAX) + encode(offset_key, OFFSET_COMMIT_KEY_VERSION_MAX)
        return key, None if record.value is None else _encode_offset(record.value, versions)
    if isinstance(record, SHARE_RECORDS):
        from kpybroker.core.share_group.encoding import encode_share_record

        return encode_share_record(record)
    if isinstance(record, STREAMS_RECORDS):
        from kpybroker.core.streams_group.encoding import encode_streams_record

        return encode_streams_record(record)
    if not isinstance(record, GroupRecord):
        from kpybroker.core.consumer_group.encoding import encode_consumer_record

        return encode_consumer_record(record)
    group_key = GroupMetadataKey(group=record.group_id)
    key = _VERSION.pack(GROUP_METADATA_KEY_VERSION) + encode(group_key, GROUP_METADATA_KEY_VERSION)
    return key, None if record.value is None else _encode_group(record.value, versions)


def decode_record(key: bytes | memoryview, value: bytes | memoryview | None) -> Record | None:
    """None for a key version of a later Kafka, which is skipped as Kafka skips it. Raises ProtocolError."""
    version = _version(key)
    if 0 <= version <= OFFSET_COMMIT_KEY_VERSION_MAX:
        offset_key = decode(OffsetCommitKey, key[2:], version)
        partition = (offset_key.topic, offset_key.partition)
        return OffsetRecord(offset_key.group, partition, None if value is None else _decode_offset(value))
    if version == GROUP_METADATA_KEY_VERSION:
        group_key = decode(GroupMetadataKey, key[2:], version)
        return GroupRecord(group_key.group, None if value is None else _decode_group(value))
    if version in CONSUMER_RECORD_TYPES:
        from kpybroker.core.consumer_group.encoding import decode_consumer_record

        return decode_consumer_record(version, key[2:], value)
    if version in SHARE_RECORD_TYPES:
        from kpybroker.core.share_group.encoding import decode_share_record

        return decode_share_record(version, key[2:], value)
    if version in STREAMS_RECORD_TYPES:
        from kpybroker.core.streams_group.encoding import decode_streams_record

        return decode_streams_record(version, key[2:], value)
    return None


def _version(data: bytes | memoryview) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("a group record is too short for its version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _value_version(data: bytes | memoryview, what: str) -> int:
    version = _version(data)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise ProtocolError(f"Unknown {what} message version: {version}")
    return version


def _encode_offset(value: OffsetAndMetadata, versions: RecordVersions) -> bytes:
    # Only version 1 has an expire timestamp, and it has no leader epoch.
    has_expiry = value.expire_timestamp_ms is not None
    version = 1 if has_expiry else versions.offset_commit_value
    if value.topic_id != ZERO_UUID and not has_expiry:
        version = OFFSET_WITH_TOPIC_ID_VERSION
    message = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp_ms,
        expire_timestamp=NO_TIMESTAMP if value.expire_timestamp_ms is None else value.expire_timestamp_ms,
        topic_id=value.topic_id,
    )
    return _VERSION.pack(version) + encode(message, version)


def _decode_offset(data: bytes | memoryview) -> OffsetAndMetadata:
    message = decode(OffsetCommitValue, data[2:], _value_version(data, "offset"))
    return OffsetAndMetadata(
        offset=message.offset,
        leader_epoch=message.leader_epoch,
        metadata=message.metadata,
        commit_timestamp_ms=message.commit_timestamp,
        expire_timestamp_ms=None if message.expire_timestamp == NO_TIMESTAMP else message.expire_timestamp,
        topic_id=bytes(message.topic_id),
    )


def _encode_group(group: StoredGroup, versions: RecordVersions) -> bytes:
    members = [
        GroupMetadataValue.MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in group.members
    ]
    message = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_timestamp_ms,
        members=members,
    )
    version = versions.group_metadata_value
    return _VERSION.pack(version) + encode(message, version)


def _decode_group(data: bytes | memoryview) -> StoredGroup:
    message = decode(GroupMetadataValue, data[2:], _value_version(data, "group metadata"))
    members = tuple(
        StoredMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout,
            session_timeout_ms=member.session_timeout,
            subscription=bytes(member.subscription),
            assignment=bytes(member.assignment),
        )
        for member in message.members
    )
    return StoredGroup(
        protocol_type=message.protocol_type,
        generation_id=message.generation,
        protocol_name=message.protocol,
        leader=message.leader,
        state_timestamp_ms=message.current_state_timestamp,
        members=members,
    )
