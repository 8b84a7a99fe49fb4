"""Message sets of magic 0 and 1."""

from __future__ import annotations

import struct
import zlib

import pytest

from kpybroker.wire.compression import Codec, compress, decompress
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import BatchHeader, TimestampType, iter_batches, parse_header
from kpybroker.wire.records.legacy import build_message_set, encode_message, read_wrapper
from kpybroker.wire.records.record import Record, iter_records
from tests.wire.records.samples import LEGACY_CODECS, only_header, plain_records, read_all

COMPRESSED = [codec for codec in LEGACY_CODECS if codec is not Codec.NONE]


def test_a_message_is_laid_out_as_documented() -> None:
    body = struct.pack(">bbq", 1, 0, 77) + struct.pack(">i", 1) + b"k" + struct.pack(">i", -1)
    expected = struct.pack(">qiI", 5, len(body) + 4, zlib.crc32(body)) + body
    assert encode_message(5, 1, 0, 77, b"k", None) == expected
    body = struct.pack(">bb", 0, 0) + struct.pack(">i", -1) + struct.pack(">i", 1) + b"v"
    expected = struct.pack(">qiI", 5, len(body) + 4, zlib.crc32(body)) + body
    assert encode_message(5, 0, 0, 77, None, b"v") == expected


def stored_offsets(wrapper: bytes | bytearray, header: BatchHeader, value_start: int) -> list[int]:
    inner = decompress(header.codec, bytes(wrapper[value_start:]), 10_000, header.magic)
    return [message.base_offset for _, message in iter_batches(inner)]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_wrapper_has_the_last_offset_and_relative_ones_within(codec: Codec) -> None:
    records = [record._replace(offset=record.offset * 2 + 100) for record in plain_records(4)]
    wrapper = build_message_set(records, 1, codec=codec)
    header = only_header(wrapper)
    assert (header.base_offset, header.last_offset, header.max_timestamp) == (106, 106, 1003)
    assert stored_offsets(wrapper, header, 34) == [0, 2, 4, 6]
    assert read_all(wrapper) == records


@pytest.mark.parametrize("codec", COMPRESSED)
def test_magic_0_has_absolute_offsets_within(codec: Codec) -> None:
    records = [record._replace(offset=record.offset + 100, timestamp=-1) for record in plain_records(4)]
    wrapper = build_message_set(records, 0, codec=codec)
    header = only_header(wrapper)
    assert stored_offsets(wrapper, header, 26) == [100, 101, 102, 103]
    assert read_all(wrapper) == records


def test_log_append_time_of_the_wrapper_is_everybodys() -> None:
    append_time = TimestampType.LOG_APPEND_TIME
    for codec in LEGACY_CODECS:
        buffer = build_message_set(plain_records(3), 1, codec=codec, timestamp_type=append_time, log_append_time=5)
        assert [record.timestamp for record in read_all(buffer)] == [5, 5, 5]


def wrap(content: bytes | None, *, offset: int = 2, magic: int = 1, codec: int = Codec.GZIP) -> bytearray:
    value = None if content is None else compress(Codec.GZIP, content)
    return encode_message(offset, magic, codec, 9, None, value)


def wrap_of(*messages: bytearray, **changes: int) -> bytearray:
    return wrap(b"".join(messages), **changes)


def message(offset: int = 0, magic: int = 1, attributes: int = 0) -> bytearray:
    return encode_message(offset, magic, attributes, 4, b"k", b"v")


def test_a_wrapper_offset_of_zero_means_relative_to_zero() -> None:
    """Some librdkafka versions write such offsets."""
    wrapper = wrap_of(message(0), message(1), offset=0)
    assert [record.offset for record in iter_records(wrapper, parse_header(wrapper))] == [0, 1]


def test_a_cut_off_inner_message_is_left_out() -> None:
    wrapper = wrap(bytes(message(0) + message(1))[:-3], offset=0)
    assert [record.offset for record in iter_records(wrapper, parse_header(wrapper))] == [0]


@pytest.mark.parametrize(
    ("name", "wrapper"),
    {
        "null value": wrap(None),
        "nothing within": wrap(b""),
        "compressed within": wrap_of(message(attributes=Codec.GZIP)),
        "zstd": wrap_of(message(), codec=Codec.ZSTD),
        "offset below the last inner one": wrap_of(message(0), message(5), offset=3),
        "magic 2 within": wrap(bytes(16).replace(b"\0" * 12, bytes(8) + b"\0\0\0\x40", 1) + b"\2" + bytes(60)),
    }.items(),
)
def test_impossible_wrappers_are_invalid(name: str, wrapper: bytearray) -> None:
    with pytest.raises(KafkaError) as caught:
        list(iter_records(wrapper, parse_header(wrapper)))
    assert caught.value.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE), name


def test_inner_checksums_are_checked_on_request() -> None:
    damaged = message()
    damaged[-1] ^= 1
    wrapper = wrap_of(damaged, offset=0)
    header = parse_header(wrapper)
    assert len(list(read_wrapper(wrapper, header))) == 1
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
        list(read_wrapper(wrapper, header, check_crc=True))


@pytest.mark.parametrize(("place", "value"), [(26, 1000), (26, 3), (31, 1000), (31, 0), (26, -1)])
def test_lengths_must_fill_the_message(place: int, value: int) -> None:
    single = message()
    single[place : place + 4] = struct.pack(">i", value)
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.INVALID_RECORD):
        list(iter_records(single, parse_header(single)))


def test_callers_mistakes_are_value_errors() -> None:
    with pytest.raises(ValueError):
        build_message_set([], 1)
    with pytest.raises(ValueError):
        build_message_set([Record(5, 0, None, None), Record(4, 0, None, None)], 1)
    with pytest.raises(ValueError):
        build_message_set(plain_records(1), 1, codec=Codec.ZSTD)
