"""Control records: the end-of-transaction markers that a coordinator writes into data partitions.

A control batch holds one record. Key: int16 version, int16 type (ControlRecordType). Value of a marker: int16 version,
int32 coordinator epoch (EndTransactionMarker). Versions above 0 are read as version 0, as Kafka does.
Other control types (KRaft's) are known by number only.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from kpybroker.wire.records.batch import NO_PARTITION_LEADER_EPOCH
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.default_record import Record, invalid

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlRecordType(IntEnum):
    """Kafka's types of control records, by the number in their key."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition. `timestamp` in ms, from the record."""

    control_type: ControlRecordType
    coordinator_epoch: int
    timestamp: int = -1

    @property
    def is_commit(self) -> bool:
        """Commit or abort."""
        return self.control_type is ControlRecordType.COMMIT


def parse_control_type(key: bytes | None) -> ControlRecordType:
    """The type a control record's key names, UNKNOWN for a number that this version does not have."""
    if key is None or len(key) < _KEY.size:
        raise invalid("Control record key is too short")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise invalid(f"Invalid version found for control record: {version}. May indicate data corruption")
    try:
        return ControlRecordType(type_id)
    except ValueError:
        return ControlRecordType.UNKNOWN


def parse_end_transaction_marker(record: Record) -> EndTransactionMarker | None:
    """The marker that a control record is; None for other control types. Raises INVALID_RECORD."""
    control_type = parse_control_type(record.key)
    if control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise invalid("Value of an end transaction marker is too short")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise invalid(f"Invalid version found for end transaction marker: {version}. May indicate data corruption")
    return EndTransactionMarker(control_type, coordinator_epoch, record.timestamp)


def build_end_transaction_batch(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    """The control batch that ends a transaction (MemoryRecords.withEndTransactionMarker)."""
    if marker.control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise ValueError(f"not an end of a transaction: {marker.control_type.name}")
    key = _KEY.pack(_VERSION, marker.control_type)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [(key, value, marker.timestamp)],
        BatchFields(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
            is_control=True,
            partition_leader_epoch=partition_leader_epoch,
        ),
        base_offset=base_offset,
    )
