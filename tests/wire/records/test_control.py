"""Transaction markers, and control records of other kinds."""

from __future__ import annotations

import pytest

from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
    parse_control_type,
    parse_end_transaction_marker,
)
from kpybroker.wire.records.record import Record
from tests.wire.records.samples import only_header, read_all


@pytest.mark.parametrize("control_type", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_a_marker_round_trips(control_type: ControlRecordType) -> None:
    marker = EndTransactionMarker(control_type, 42, 1234)
    batch = build_end_transaction_batch(
        marker, producer_id=5, producer_epoch=6, base_offset=7, partition_leader_epoch=8
    )
    header = only_header(batch)
    assert (header.is_control, header.is_transactional, header.records_count) == (True, True, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, -1)
    (record,) = read_all(batch)
    assert record.key == b"\0\0\0" + bytes((control_type,))
    assert record.value == b"\0\0\0\0\0\x2a"
    assert parse_end_transaction_marker(record) == marker
    assert marker.is_commit is (control_type is ControlRecordType.COMMIT)


def test_later_versions_are_read_as_version_0() -> None:
    record = Record(0, 3, b"\0\x05\0\1extra", b"\0\x07\0\0\0\x09extra")
    assert parse_end_transaction_marker(record) == EndTransactionMarker(ControlRecordType.COMMIT, 9, 3)


def test_other_control_types_are_no_markers() -> None:
    assert parse_end_transaction_marker(Record(0, 0, b"\0\0\0\2", b"")) is None
    assert parse_control_type(b"\0\0\0\2") is ControlRecordType.LEADER_CHANGE
    assert parse_control_type(b"\0\0\x7f\xff") is ControlRecordType.UNKNOWN


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\1", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
    ],
)
def test_malformed_markers_are_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.INVALID_RECORD):
        parse_end_transaction_marker(Record(0, 0, key, value))


def test_only_ends_of_transactions_are_built() -> None:
    with pytest.raises(ValueError):
        build_end_transaction_batch(
            EndTransactionMarker(ControlRecordType.LEADER_CHANGE, 0), producer_id=1, producer_epoch=0
        )
