"""The strict reading of a magic 2 batch's records: each way in which bytes can fail to be records."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch_of, encode_records, rebuild_batch, varint
from kpybroker.wire.records.default_record import READ_HEADERS_MAX, iter_spans, read_headers, read_varint
from kpybroker.wire.records.record import Record, iter_records
from tests.wire.records.samples import plain_records

HEADER = parse_header(build_batch_of(plain_records(1)))._replace(base_timestamp=0)


def spans(section: bytes, count: int = 1, **changes: int) -> list[tuple[int, ...]]:
    return [tuple(span) for span in iter_spans(section, HEADER._replace(records_count=count, **changes))]


def body(*, size: int | None = None, rest: bytes = b"\x00\x00\x00\x02k\x02v\x00") -> bytes:
    """A record whose fields are `rest`: attributes, timestamp, offset, key, value, headers."""
    return varint(len(rest) if size is None else size) + rest


def refused(section: bytes, count: int = 1, **changes: int) -> bool:
    with pytest.raises(KafkaError) as caught:
        spans(section, count, **changes)
    return caught.value.code is ErrorCode.INVALID_RECORD


def test_a_sound_record_is_taken() -> None:
    assert spans(body()) == [(0, 0, 5, 6, 7, 8, 9, 0, 9)]


@pytest.mark.parametrize(
    ("name", "section"),
    {
        "size too small": body(size=7),
        "size too large": body(size=9),
        "negative size": body(size=-1),
        "key beyond the record": body(rest=b"\x00\x00\x00\x7ek\x02v\x00"),
        "value beyond the record": body(rest=b"\x00\x00\x00\x02k\x7ev\x00"),
        "negative header count": body(rest=b"\x00\x00\x00\x02k\x02v\x01"),
        "more headers than bytes": body(rest=b"\x00\x00\x00\x02k\x02v\x06"),
        "negative header key": body(rest=b"\x00\x00\x00\x02k\x02v\x02\x01\x01"),
        "header value beyond the record": body(rest=b"\x00\x00\x00\x02k\x02v\x02\x02h\x7e"),
        "bytes after the headers": body(rest=b"\x00\x00\x00\x02k\x02v\x00\x00"),
        "record left over": body() + body(),
        "byte left over": body() + b"\x00",
        "empty": b"",
        "varint of six bytes": b"\x80\x80\x80\x80\x80\x01" + body(),
        "timestamp delta of eleven bytes": body(rest=b"\x00" + b"\x80" * 10 + b"\x01\x00\x02k\x02v\x00"),
        "key of almost 2 GiB": body(rest=b"\x00\x00\x00" + varint(2**31 - 1) + b"k\x02v\x00"),
    }.items(),
)
def test_each_fault_is_an_invalid_record(name: str, section: bytes) -> None:
    assert refused(section), name


def test_the_count_must_be_that_of_the_records() -> None:
    assert refused(body(), 2)
    assert refused(body() * 2, 1)
    assert refused(body(), -1)
    assert refused(body(), 2**31 - 1)


def test_no_records_means_that_nothing_is_looked_at() -> None:
    """Compaction leaves an empty batch of a producer's last one."""
    assert spans(b"", 0) == []
    assert spans(b"anything", 0) == []


def test_any_negative_length_is_null() -> None:
    ((_, _, _, key_end, _, value_end, _, _, _),) = spans(body(rest=b"\x00\x00\x00\x01\x03\x00"))
    assert (key_end, value_end) == (-1, -1)


def test_timestamps_stay_within_64_bits() -> None:
    section = body(rest=b"\x00\x02\x00\x02k\x02v\x00")
    assert spans(section, base_timestamp=2**63 - 2)[0][1] == 2**63 - 1
    assert refused(section, base_timestamp=2**63 - 1)


@given(value=st.integers(-(2**31), 2**31 - 1))
def test_varints_round_trip(value: int) -> None:
    encoded = varint(value)
    assert read_varint(encoded + b"\xff", 0) == (value, len(encoded))


def test_known_varints() -> None:
    """From Kafka's ByteUtilsTest."""
    known = {0: "00", -1: "01", 1: "02", 63: "7e", -64: "7f", 64: "8001", -65: "8101", 8191: "fe7f", -8193: "818001"}
    known |= {2**31 - 1: "feffffff0f", -(2**31): "ffffffff0f"}
    assert {value: varint(value).hex() for value in known} == known


def test_bits_that_do_not_fit_are_dropped_as_in_java() -> None:
    assert read_varint(b"\x82\x80\x80\x80\x70", 0) == (1, 5)
    section = body(rest=b"\x00" + b"\x82" + b"\x80" * 8 + b"\x7e" + b"\x00\x02k\x02v\x00")
    assert spans(section)[0][1] == 1


def test_header_keys_that_are_not_text_survive() -> None:
    section = body(rest=b"\x00\x00\x00\x01\x01\x02\x04\xff\xfe\x01")
    (span,) = iter_spans(section, HEADER)
    headers = read_headers(section, span, 1)
    record = Record(0, 0, None, None, headers)
    assert bytes(encode_records([record], 0, 0)) == section


def test_sequences_follow_the_offsets_and_wrap() -> None:
    batch = build_batch_of(plain_records(3), BatchFields(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert [record.sequence for record in iter_records(batch, parse_header(batch))] == [2**31 - 2, 2**31 - 1, 0]


def test_large_batches_are_read_without_a_copy() -> None:
    records = [Record(i, 0, None, b"x" * 500_000) for i in range(4)]
    batch = build_batch_of(records)
    assert list(iter_records(batch, parse_header(batch))) == records


# --- headers without end


def many_headers(count: int, header: bytes = b"\0\1") -> bytearray:
    """A batch of two records, the second with `count` headers of the given bytes."""
    records = bytearray()
    for index, headers in enumerate((b"\0", varint(count) + header * count)):
        rest = b"\0\0" + varint(index) + b"\2k\2v" + headers
        records += varint(len(rest)) + rest
    model = parse_header(build_batch_of([Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")]))
    return rebuild_batch(model, bytes(records))


FEW = {"read_headers_max": READ_HEADERS_MAX // 5}
"""To look at all that are read is what takes long."""


@pytest.mark.parametrize(
    ("header", "options"), [(b"\0\1", {}), (b"\0\0", FEW), (b"\2h\2v", FEW), (b"\4\xff\xfe\1", FEW)]
)
def test_more_headers_than_anyone_wants_to_see_are_counted_and_take_no_memory(
    header: bytes, options: dict[str, int]
) -> None:
    read_max = options.get("read_headers_max", READ_HEADERS_MAX)
    count = 4 * read_max
    batch = many_headers(count, header)
    tracemalloc.start()
    try:
        first, second = iter_records(batch, parse_header(batch), **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (first.headers, first.headers_left_out) == ((), 0)
    assert (len(second.headers), second.headers_left_out) == (read_max, count - read_max)
    assert peak < 200 * read_max + 2 * len(batch)


def test_a_reader_without_a_use_for_headers_makes_none() -> None:
    batch = many_headers(200_000)
    _, second = iter_records(batch, parse_header(batch), read_headers_max=0)
    assert (second.key, second.headers, second.headers_left_out) == (b"k", (), 200_000)


def test_headers_of_all_records_together_are_bounded() -> None:
    section = many_headers(50)[RECORD_BATCH_OVERHEAD:]
    header = parse_header(many_headers(50))
    assert len(list(iter_spans(section, header, 50))) == 2
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        list(iter_spans(section, header, 49))
