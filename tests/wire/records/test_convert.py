"""Down-conversion for old consumers, and the rebuilding of batches that producers send."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, TimestampType, iter_batches, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch_of, varint
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from kpybroker.wire.records.convert import OVERFLOW_MESSAGE, down_convert, needs_down_conversion, rebuild
from kpybroker.wire.records.default_record import CopiedRecord, iter_spans
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record
from tests.wire.records.samples import LEGACY_CODECS, only_header, plain_records, read_all, record_lists

MARKER = build_end_transaction_batch(
    EndTransactionMarker(ControlRecordType.COMMIT, 0, 5), producer_id=1, producer_epoch=0
)


@pytest.mark.parametrize("to_magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
@given(records=record_lists())
@settings(max_examples=25, deadline=None)
def test_records_survive_but_for_what_the_format_lacks(to_magic: int, codec: Codec, records: list[Record]) -> None:
    converted = down_convert(build_batch_of(records, BatchFields(codec=codec)), to_magic, 0)
    assert {header.magic for _, header in iter_batches(converted, strict=True)} == {to_magic}
    assert {header.codec for _, header in iter_batches(converted)} == {codec}
    expected = [record._replace(headers=(), timestamp=record.timestamp if to_magic else -1) for record in records]
    assert read_all(converted) == expected


def test_magic_1_becomes_magic_0_and_stays_where_it_may() -> None:
    stored = build_message_set(plain_records(3), 1, codec=Codec.GZIP)
    assert down_convert(stored, 1, 0) == stored
    assert only_header(down_convert(stored, 0, 0)).magic == 0
    assert not needs_down_conversion(stored, 1)
    assert needs_down_conversion(stored, 0)
    assert needs_down_conversion(stored + build_batch_of(plain_records(1)), 1)
    assert not needs_down_conversion(b"", 0)


def test_single_messages_before_the_fetch_offset_are_left_out() -> None:
    records = plain_records(5)
    assert [record.offset for record in read_all(down_convert(build_batch_of(records), 1, 3))] == [3, 4]
    compressed = build_batch_of(records, BatchFields(codec=Codec.SNAPPY))
    assert [record.offset for record in read_all(down_convert(compressed, 1, 3))] == [0, 1, 2, 3, 4]


def test_log_append_time_is_kept() -> None:
    batch = build_batch_of(
        plain_records(2), BatchFields(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=9)
    )
    converted = down_convert(batch, 1, 0)
    assert [record.timestamp for record in read_all(converted)] == [9, 9]
    assert parse_header(converted).timestamp_type is TimestampType.LOG_APPEND_TIME


def test_markers_are_dropped() -> None:
    data = build_batch_of([Record(1, 1, b"k", b"v")])
    assert read_all(down_convert(MARKER + data, 1, 0)) == [Record(1, 1, b"k", b"v")]


def test_nothing_but_markers_gives_an_overflow_message() -> None:
    assert down_convert(MARKER, 1, 0) == OVERFLOW_MESSAGE
    assert list(iter_batches(OVERFLOW_MESSAGE)) == []
    assert down_convert(b"", 1, 0) == b""


def test_zstd_first_is_an_error_and_later_an_end() -> None:
    zstd = build_batch_of([Record(9, 1, b"k", b"v")], BatchFields(codec=Codec.ZSTD))
    plain = build_batch_of([Record(1, 1, b"k", b"v")])
    for buffer in (zstd, MARKER + zstd):
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
            down_convert(buffer, 1, 0)
    assert read_all(down_convert(plain + zstd, 1, 0)) == [Record(1, 1, b"k", b"v")]


def test_the_result_is_no_longer_than_the_source_but_one_batch_always_fits() -> None:
    many = build_batch_of([Record(i, 1, None, None) for i in range(100)])
    other = build_batch_of([Record(i, 1, None, None) for i in range(100, 200)])
    converted = down_convert(many + other, 1, 0)
    assert len(converted) > len(many + other)
    assert [record.offset for record in read_all(converted)] == list(range(100))


def test_a_cut_off_last_batch_is_left_out() -> None:
    first, second = build_batch_of(plain_records(1)), build_batch_of([Record(1, 1, b"k", os.urandom(100))])
    assert read_all(down_convert(first + second[:-1], 1, 0)) == plain_records(1)


def test_decompression_is_bounded() -> None:
    batch = build_batch_of([Record(0, 1, None, bytes(100_000))], BatchFields(codec=Codec.GZIP))
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        down_convert(batch, 1, 0, max_bytes=10_000)


@given(records=record_lists(), base_offset=st.integers(0, 2**50), codec=st.sampled_from(list(Codec)))
@settings(max_examples=40, deadline=None)
def test_rebuilding_keeps_the_producer(records: list[Record], base_offset: int, codec: Codec) -> None:
    fields = BatchFields(
        codec=codec,
        producer_id=3,
        producer_epoch=4,
        base_sequence=5,
        is_transactional=True,
        partition_leader_epoch=7,
    )
    encoded = build_batch_of(records)
    (header,) = (header for _, header in iter_batches(encoded))
    section = bytes(encoded[RECORD_BATCH_OVERHEAD:])
    copied = [
        CopiedRecord(
            base_offset + index,
            record.timestamp,
            record.key,
            record.value,
            varint(span.header_count) + section[span.headers_start : span.end],
        )
        for index, (record, span) in enumerate(zip(records, iter_spans(section, header), strict=True))
    ]
    batch = rebuild(copied, 2, fields)
    header = only_header(batch)
    assert (header.codec, header.partition_leader_epoch, header.is_transactional) == (codec, 7, True)
    assert header[9:12] == (3, 4, 5)
    assert [record._replace(sequence=-1) for record in read_all(batch)] == [
        record._replace(offset=base_offset + index) for index, record in enumerate(records)
    ]
