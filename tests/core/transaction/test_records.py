"""Records of `__transaction_state`: bytes as Kafka writes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.transaction.records import TransactionRecord, decode_record, encode_record
from kpybroker.core.transaction.state import TransactionMetadata
from kpybroker.core.transaction.values import TransactionState
from kpybroker.wire.codec import encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.transaction_log_value import TransactionLogValue

NAMES = st.text(max_size=20)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NOT_EMPTY = st.sampled_from([state for state in TransactionState if state is not TransactionState.EMPTY])
PARTITIONS = st.frozensets(st.tuples(NAMES, INT32), max_size=6)
EMPTY = st.tuples(INT64, INT16, INT32, st.just(TransactionState.EMPTY), st.just(frozenset()), INT64, INT64)
OTHERS = st.tuples(INT64, INT16, INT32, NOT_EMPTY, PARTITIONS, INT64, INT64)
VALUES = (EMPTY | OTHERS).map(lambda fields: TransactionMetadata(*fields))


@given(st.builds(TransactionRecord, NAMES, st.none() | VALUES))
def test_what_is_written_is_read(record: TransactionRecord) -> None:
    key, value = encode_record(record)
    assert decode_record(key, value) == record


@given(VALUES, INT64, INT64, INT16)
def test_version_1_has_the_ids_before_and_after(
    value: TransactionMetadata, last_producer_id: int, next_producer_id: int, version: int
) -> None:
    value = value._replace(last_producer_id=last_producer_id, next_producer_id=next_producer_id, version=version)
    key, encoded = encode_record(TransactionRecord("x", value), level=2)
    assert decode_record(key, encoded) == TransactionRecord("x", value)


def test_an_open_transaction_as_kafka_writes_it() -> None:
    value = TransactionMetadata(
        5, 2, 60_000, TransactionState.ONGOING, frozenset({("u", 0), ("t", 3), ("t", 1)}), 7, 8, last_producer_id=5
    )
    key, encoded = encode_record(TransactionRecord("x", value))
    assert key == struct.pack(">hh1s", 0, 1, b"x")
    head = struct.pack(">hqhib", 0, 5, 2, 60_000, 1)
    topics = struct.pack(">i h1siii h1sii", 2, 1, b"t", 2, 1, 3, 1, b"u", 1, 0)
    assert encoded == head + topics + struct.pack(">qq", 8, 7)


def test_an_id_without_a_transaction_has_null_partitions() -> None:
    value = TransactionMetadata(5, 0, 60_000, TransactionState.EMPTY, frozenset(), -1, 8)
    _, encoded = encode_record(TransactionRecord("x", value))
    assert encoded == struct.pack(">hqhib i qq", 0, 5, 0, 60_000, 0, -1, 8, -1)


def test_the_flexible_version_of_later_brokers_is_read() -> None:
    message = TransactionLogValue(
        producer_id=5,
        producer_epoch=2,
        transaction_timeout_ms=9,
        transaction_status=3,
        transaction_partitions=[TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[1])],
        transaction_last_update_timestamp_ms=8,
        transaction_start_timestamp_ms=7,
    )
    key, _ = encode_record(TransactionRecord("x", None))
    record = decode_record(key, b"\0\1" + encode(message, 1))
    assert record is not None
    assert record.value == TransactionMetadata(5, 2, 9, TransactionState.PREPARE_ABORT, frozenset({("t", 1)}), 7, 8)


def test_later_key_versions_are_skipped() -> None:
    assert decode_record(b"\0\1later", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", None),
        (b"\0\0\0\5x", None),
        (b"\0\0\0\1x", b""),
        (b"\0\0\0\1x", b"\0\2" + bytes(40)),
        (b"\0\0\0\1x", struct.pack(">hqhib i qq", 0, 5, 0, 60_000, 9, -1, 8, -1)),
    ],
    ids=["short key", "cut-off key", "short value", "unknown value version", "unknown state"],
)
def test_damaged_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_record(key, value)
