"""Iterating over the records of any batch: what was built is read, and what was not is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import iter_batches, parse_header, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record, iter_records
from tests.support.examples import examples
from tests.wire.records.samples import LEGACY_CODECS, plain_records, read_all, record_lists

FORMATS = [(2, codec) for codec in Codec] + [(magic, codec) for magic in (0, 1) for codec in LEGACY_CODECS]
FAULTS = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE)


def build(magic: int, codec: Codec, records: list[Record]) -> bytearray:
    if magic == 2:
        return build_batch_of(records, BatchFields(codec=codec))
    return build_message_set(records, magic, codec=codec)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_built_is_read(magic: int, codec: Codec, data: st.DataObject) -> None:
    records = data.draw(record_lists(with_headers=magic == 2))
    expected = records if magic else [record._replace(timestamp=-1) for record in records]
    assert read_all(build(magic, codec, records)) == expected


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_batch_is_read_at_any_position(magic: int, codec: Codec) -> None:
    records = plain_records(1 if magic < 2 and codec is Codec.NONE else 5)
    batch = build(magic, codec, records)
    buffer = b"\xaa" * 100 + bytes(batch) + b"\xbb" * 100
    assert list(iter_records(buffer, parse_header(buffer, 100), 100)) == list(iter_records(batch, parse_header(batch)))


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_flips_never_give_wrong_records(magic: int, codec: Codec, flips: list[tuple[int, int]]) -> None:
    """With the CRC checked first, a damaged buffer gives records that were there, or a KafkaError."""
    buffer = build(magic, codec, plain_records(8))
    original = {record[1:4] for record in read_all(buffer)}
    for place, bit in flips:
        buffer[place % len(buffer)] ^= 1 << bit
    try:
        for position, header in iter_batches(buffer):
            verify_crc(buffer, position, header)
            # offsets, leader epoch and, in old formats, relative offsets of a wrapper are not covered by the CRC
            assert {record[1:4] for record in iter_records(buffer, header, position)} <= original
    except KafkaError as error:
        if error.code not in FAULTS:
            raise


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@given(flips=st.lists(st.tuples(st.integers(16, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_unchecked_bytes_raise_kafka_errors_only(magic: int, codec: Codec, flips: list[tuple[int, int]]) -> None:
    buffer = build(magic, codec, plain_records(8))
    for place, value in flips:
        buffer[place % len(buffer)] = value
    try:
        for position, header in iter_batches(buffer):
            for _ in itertools.islice(iter_records(buffer, header, position, max_bytes=1 << 20), 10_000):
                pass
    except KafkaError as error:
        if error.code not in FAULTS:
            raise


@pytest.mark.parametrize(("magic", "codec"), [pair for pair in FORMATS if pair[1] is not Codec.NONE])
def test_decompression_is_bounded(magic: int, codec: Codec) -> None:
    batch = build(magic, codec, [Record(0, 1, b"k", bytes(1_000_000))])
    header = parse_header(batch)
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        list(iter_records(batch, header, max_bytes=100_000))
    assert len(list(iter_records(batch, header, max_bytes=1_100_000))) == 1
