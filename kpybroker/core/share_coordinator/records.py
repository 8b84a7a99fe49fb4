"""The records of `__share_group_state`: values <-> key and value bytes, in Kafka 4.3's formats.

A key starts with its type: 0 is a snapshot, which is all of the state, and 1 an update, which is put over it. A value
starts with version 0, the only one. A snapshot with a null value is a tombstone; updates have none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from kpybroker.core.share_coordinator.batches import Batches
from kpybroker.core.share_coordinator.values import SharePartitionKey, StateBatch
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.share_snapshot_key import ShareSnapshotKey
from kpybroker.wire.messages.share_snapshot_value import ShareSnapshotValue
from kpybroker.wire.messages.share_update_key import ShareUpdateKey
from kpybroker.wire.messages.share_update_value import ShareUpdateValue

SNAPSHOT_TYPE = 0
UPDATE_TYPE = 1
VALUE_VERSION = 0

_VERSION = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class ShareState:
    """All of a share partition's state, as Kafka's ``ShareGroupOffset``.

    `create_timestamp_ms` is when it was created, `write_timestamp_ms` when it was last written as a snapshot.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Batches
    create_timestamp_ms: int
    write_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ShareSnapshot:
    """The state of a share partition; None is a tombstone."""

    key: SharePartitionKey
    state: ShareState | None


@dataclass(frozen=True, slots=True)
class ShareUpdate:
    """A change of a share partition's state; a start offset of -1 is none."""

    key: SharePartitionKey
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Batches


ShareRecord = ShareSnapshot | ShareUpdate


def encode_record(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Key and value bytes."""
    if isinstance(record, ShareUpdate):
        return _encode_key(ShareUpdateKey, UPDATE_TYPE, record.key), _encode_update(record)
    value = None if record.state is None else _encode_snapshot(record.state)
    return _encode_key(ShareSnapshotKey, SNAPSHOT_TYPE, record.key), value


@lru_cache(maxsize=128)
def _encode_key(
    message: type[ShareUpdateKey | ShareSnapshotKey], record_type: int, share_partition: SharePartitionKey
) -> bytes:
    group_id, topic_id, partition = share_partition
    key = message(group_id=group_id, topic_id=topic_id, partition=partition)
    return _VERSION.pack(record_type) + encode(key, record_type)


def decode_record(key: bytes | memoryview, value: bytes | memoryview | None) -> ShareRecord | None:
    """None for a key of a later Kafka, which is skipped as Kafka skips it. Raises ProtocolError."""
    match _version(key):
        case 0:
            read = decode(ShareSnapshotKey, key[2:], SNAPSHOT_TYPE)
            share_partition = SharePartitionKey(read.group_id, read.topic_id, read.partition)
            return ShareSnapshot(share_partition, None if value is None else _decode_snapshot(value))
        case 1:
            update = decode(ShareUpdateKey, key[2:], UPDATE_TYPE)
            if value is None:
                raise ProtocolError("an update of a share partition has no value")
            return _decode_update(SharePartitionKey(update.group_id, update.topic_id, update.partition), value)
        case _:
            return None


def _version(data: bytes | memoryview) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("a record of a share partition is too short for its version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _encode_snapshot(state: ShareState) -> bytes:
    message = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=[
            ShareSnapshotValue.StateBatch(first_offset=first, last_offset=last, delivery_state=to, delivery_count=count)
            for first, last, to, count in state.batches
        ],
    )
    return _VERSION.pack(VALUE_VERSION) + encode(message, VALUE_VERSION)


def _encode_update(record: ShareUpdate) -> bytes:
    message = ShareUpdateValue(
        snapshot_epoch=record.snapshot_epoch,
        leader_epoch=record.leader_epoch,
        start_offset=record.start_offset,
        delivery_complete_count=record.delivery_complete_count,
        state_batches=[
            ShareUpdateValue.StateBatch(first_offset=first, last_offset=last, delivery_state=to, delivery_count=count)
            for first, last, to, count in record.batches
        ],
    )
    return _VERSION.pack(VALUE_VERSION) + encode(message, VALUE_VERSION)


def _body(data: bytes | memoryview) -> bytes | memoryview:
    version = _version(data)
    if version != VALUE_VERSION:
        raise ProtocolError(f"Unknown version {version} of the value of a share partition")
    return data[2:]


def _decode_snapshot(data: bytes | memoryview) -> ShareState:
    message = decode(ShareSnapshotValue, _body(data), VALUE_VERSION)
    return ShareState(
        snapshot_epoch=message.snapshot_epoch,
        state_epoch=message.state_epoch,
        leader_epoch=message.leader_epoch,
        start_offset=message.start_offset,
        delivery_complete_count=message.delivery_complete_count,
        batches=_batches(message.state_batches),
        create_timestamp_ms=message.create_timestamp,
        write_timestamp_ms=message.write_timestamp,
    )


def _decode_update(key: SharePartitionKey, data: bytes | memoryview) -> ShareUpdate:
    message = decode(ShareUpdateValue, _body(data), VALUE_VERSION)
    return ShareUpdate(
        key=key,
        snapshot_epoch=message.snapshot_epoch,
        leader_epoch=message.leader_epoch,
        start_offset=message.start_offset,
        delivery_complete_count=message.delivery_complete_count,
        batches=_batches(message.state_batches),
    )


def _batches(batches: Iterable[ShareSnapshotValue.StateBatch | ShareUpdateValue.StateBatch]) -> Batches:
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in batches
    )
