"""Batches built here are what DefaultRecordBatch writes."""

from __future__ import annotations

import pytest

from kpybroker.wire.compression import Codec
from kpybroker.wire.records.batch import TimestampType, parse_header, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch, build_batch_of, empty_batch
from kpybroker.wire.records.record import Record, iter_records
from tests.wire.records.samples import only_header, plain_records, read_all


def test_entries_take_consecutive_offsets() -> None:
    batch = build_batch([(b"a", b"1", 10), (None, None, 30), (b"c", b"3", 20)], base_offset=100)
    assert read_all(batch) == [
        Record(100, 10, b"a", b"1"),
        Record(101, 30, None, None),
        Record(102, 20, b"c", b"3"),
    ]
    header = only_header(batch)
    assert (header.base_timestamp, header.max_timestamp, header.records_count) == (10, 30, 3)


def test_every_field_lands_in_the_header() -> None:
    header = only_header(
        build_batch(
            [(b"a", b"1", 10)],
            BatchFields(
                codec=Codec.LZ4,
                producer_id=9,
                producer_epoch=8,
                base_sequence=7,
                is_transactional=True,
                is_control=True,
                partition_leader_epoch=6,
            ),
            base_offset=5,
        )
    )
    assert (header.base_offset, header.partition_leader_epoch, header.codec) == (5, 6, Codec.LZ4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 8, 7)
    assert (header.is_transactional, header.is_control) == (True, True)


def test_a_batch_that_lost_records_keeps_its_offsets() -> None:
    batch = build_batch_of([Record(12, 1, b"k", b"v")], base_offset=10, last_offset=19)
    header = only_header(batch)
    assert (header.base_offset, header.last_offset, header.records_count) == (10, 19, 1)
    assert read_all(batch) == [Record(12, 1, b"k", b"v")]


def test_a_delete_horizon_takes_the_base_timestamps_place() -> None:
    records = plain_records(3)
    batch = build_batch_of(records, BatchFields(delete_horizon_ms=10**12))
    header = only_header(batch)
    assert (header.has_delete_horizon, header.base_timestamp) == (True, 10**12)
    assert read_all(batch) == records


def test_log_append_time_is_the_batchs_max_timestamp() -> None:
    batch = build_batch_of(
        plain_records(3), BatchFields(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=77)
    )
    header = only_header(batch)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 77)
    assert [record.timestamp for record in read_all(batch)] == [77, 77, 77]


def test_an_empty_batch_keeps_offsets_and_producer_state() -> None:
    full = parse_header(
        build_batch_of(
            plain_records(3),
            BatchFields(codec=Codec.ZSTD, producer_id=9, producer_epoch=8, base_sequence=7, is_transactional=True),
        )
    )
    batch = empty_batch(full)
    header = only_header(batch)
    verify_crc(batch, 0, header)
    assert (header.size, header.records_count, header.base_timestamp) == (61, 0, -1)
    assert header[9:12] == full[9:12]
    assert (header.last_offset, header.max_timestamp, header.is_transactional) == (2, 1002, True)
    assert header.codec is Codec.NONE
    assert list(iter_records(batch, header)) == []


def test_callers_mistakes_are_value_errors() -> None:
    with pytest.raises(ValueError):
        build_batch_of([])
    with pytest.raises(ValueError):
        build_batch_of([Record(5, 0, None, None), Record(5, 0, None, None)])
