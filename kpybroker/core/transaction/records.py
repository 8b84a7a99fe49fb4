"""The records of `__transaction_state`: values <-> key and value bytes, in Kafka's formats.

Values are written in version 0, as by Kafka 3.9 in ZooKeeper mode, where `transaction.version` is not finalized, and in
version 1 from its level 1 on; both are read. Topics and partitions are in ascending order; Kafka's have the
order of a hash set. A null value is a tombstone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kpybroker.core.topic_partition import PartitionKey, indexes_by_topic
from kpybroker.core.transaction.state import TransactionMetadata
from kpybroker.core.transaction.values import TransactionState
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.transaction_log_key import TransactionLogKey
from kpybroker.wire.messages.transaction_log_value import TransactionLogValue

KEY_VERSION = 0
VALUE_VERSION_MAX = 1
FLEXIBLE_FROM = 1
"""The level of `transaction.version` from which values are of version 1, the first with tagged fields."""

_VERSION = struct.Struct(">h")
_KEY = struct.Struct(">hh")
"""What precedes the id in a `TransactionLogKey` with its version: there is one with each record.

Three records are written for a transaction, so this is not left to the codec (2 µs each).
"""


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """The state of a transactional id; `value` None is a tombstone."""

    transactional_id: str
    value: TransactionMetadata | None


def encode_record(record: TransactionRecord, level: int = 0) -> tuple[bytes, bytes | None]:
    """Key and value bytes, as the finalized level of `transaction.version` has them."""
    transactional_id = record.transactional_id.encode()
    key = _KEY.pack(KEY_VERSION, len(transactional_id)) + transactional_id
    return key, None if record.value is None else _encode_value(record.value, int(level >= FLEXIBLE_FROM))


def decode_record(key: bytes | memoryview, value: bytes | memoryview | None) -> TransactionRecord | None:
    """None for a key version of a later Kafka, which is skipped as Kafka skips it. Raises ProtocolError."""
    if _version(key) != KEY_VERSION:
        return None
    transactional_id = decode(TransactionLogKey, key[2:], KEY_VERSION).transactional_id
    return TransactionRecord(transactional_id, None if value is None else _decode_value(value))


def _version(data: bytes | memoryview) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("a transaction record is too short for its version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _encode_value(value: TransactionMetadata, version: int) -> bytes:
    topics = indexes_by_topic(sorted(value.partitions))
    message = TransactionLogValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        transaction_timeout_ms=value.timeout_ms,
        transaction_status=value.state,
        transaction_partitions=None
        if value.state is TransactionState.EMPTY
        else [TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()],
        transaction_last_update_timestamp_ms=value.last_update_timestamp_ms,
        transaction_start_timestamp_ms=value.start_timestamp_ms,
    )
    if version >= FLEXIBLE_FROM:
        message.previous_producer_id = value.last_producer_id
        message.next_producer_id = value.next_producer_id
        message.client_transaction_version = value.version
    return _VERSION.pack(version) + encode(message, version)


def _decode_value(data: bytes | memoryview) -> TransactionMetadata:
    version = _version(data)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise ProtocolError(f"Unknown version {version} from the transaction log message value")
    message = decode(TransactionLogValue, data[2:], version)
    try:
        state = TransactionState(message.transaction_status)
    except ValueError:
        raise ProtocolError(
            f"Unknown transaction state id {message.transaction_status} from the transaction status message"
        ) from None
    partitions: frozenset[PartitionKey] = frozenset(
        (topic.topic, index) for topic in message.transaction_partitions or () for index in topic.partition_ids
    )
    return TransactionMetadata(
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        timeout_ms=message.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_timestamp_ms=message.transaction_start_timestamp_ms,
        last_update_timestamp_ms=message.transaction_last_update_timestamp_ms,
        last_producer_id=message.previous_producer_id,
        next_producer_id=message.next_producer_id,
        version=message.client_transaction_version,
    )
