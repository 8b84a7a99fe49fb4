"""A batch validated in a thread equals one validated in place; and short batches need no thread."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import pytest

from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records import append_rules
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import TimestampType, iter_batches, parse_header, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch, rebuild_batch, varint
from kpybroker.wire.records.convert import CONVERTED_HEADERS_MAX, CONVERTED_RECORDS_MAX, down_convert
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import iter_records
from kpybroker.wire.records.slow_validation import is_slow_to_validate, place_at
from kpybroker.wire.records.validate import AppendContext, validate_and_assign

NOW_MS = 1_700_000_000_000
COMPACTED = AppendRules(compacted=True)
LZ4 = AppendRules(codec=Codec.LZ4)
STAMPED = AppendRules(timestamp_type=TimestampType.LOG_APPEND_TIME)


def batch(count: int, codec: Codec = Codec.NONE, value: bytes | None = None) -> bytearray:
    entries = [(b"k%d" % n, value or b"%d" % (n * n), NOW_MS - n) for n in range(count)]
    return build_batch(entries, BatchFields(codec=codec, producer_id=7, producer_epoch=1, base_sequence=5))


def message_set(count: int, codec: Codec) -> bytearray:
    built = batch(count)
    records = list(iter_records(built, parse_header(built)))
    return build_message_set(records, 1, codec=codec)


class Of(NamedTuple):
    """A batch of so many records, or old messages: made in its test, and not by each worker that imports this."""

    records: int
    codec: Codec = Codec.NONE
    is_old: bool = False

    def __call__(self) -> bytearray:
        return message_set(self.records, self.codec) if self.is_old else batch(self.records, self.codec)


@pytest.mark.parametrize("rules", [COMPACTED, LZ4, STAMPED, AppendRules(check_every_record=True)])
@pytest.mark.parametrize("make", [Of(500), Of(500, Codec.GZIP), Of(500, Codec.NONE, is_old=True)])
def test_a_batch_placed_later_equals_one_validated_at_its_place(rules: AppendRules, make: Of) -> None:
    """Offsets, leader epoch and everything else are as if the batch had been validated where it is appended."""
    records = make()
    at_once = validate_and_assign(bytearray(records), rules, AppendContext(1234, NOW_MS, 9))
    before = validate_and_assign(bytearray(records), rules, AppendContext(0, NOW_MS, 3))
    moved = place_at(before, 1234, 9)
    assert moved == at_once
    assert moved.header is not None
    verify_crc(moved.data, 0, moved.header)


@pytest.mark.parametrize(
    ("make", "rules", "long"),
    [
        (Of(20_000), AppendRules(), False),
        (Of(20_000, Codec.ZSTD), AppendRules(), False),
        (Of(20_000), STAMPED, False),
        (Of(20_000, Codec.LZ4), LZ4, False),
        (Of(10), COMPACTED, False),
        (Of(10, Codec.NONE, is_old=True), AppendRules(), False),
        (Of(20_000), COMPACTED, True),
        (Of(20_000, Codec.ZSTD), COMPACTED, True),
        (Of(3_000, Codec.GZIP), LZ4, True),
        (Of(3_000), LZ4, True),
        (Of(10), LZ4, False),
        (Of(1, Codec.GZIP), COMPACTED, True),
        (Of(1, Codec.GZIP), LZ4, True),
        (Of(1, Codec.GZIP, is_old=True), AppendRules(), True),
        (Of(3_000, Codec.NONE, is_old=True), AppendRules(), True),
        (Of(3_000, Codec.GZIP, is_old=True), AppendRules(), True),
        (Of(20_000), AppendRules(codec=Codec.LZ4, to_magic=1), False),
        (partial(bytearray, 50_000), COMPACTED, True),
        (partial(bytearray, 3), COMPACTED, False),
    ],
)
def test_long_is_what_has_many_records_to_look_at(
    make: Callable[[], bytearray], rules: AppendRules, long: bool
) -> None:
    assert is_slow_to_validate(make(), rules) is long


@cache
def small_records(count: int, codec: Codec) -> bytes:
    """Made once for all rules."""
    return bytes(batch(count, codec, b"v"))


@pytest.mark.parametrize("rules", [COMPACTED, AppendRules(codec=Codec.GZIP), AppendRules(check_every_record=True)])
@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.LZ4])
def test_more_records_than_fit_uncompressed_are_refused_where_each_must_be_checked(
    rules: AppendRules, codec: Codec
) -> None:
    records = bytearray(small_records(rules.max_checked_records + 1, codec))
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        validate_and_assign(records, rules, AppendContext(0, NOW_MS, 0))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_so_are_more_old_messages(codec: Codec) -> None:
    rules = AppendRules(max_message_bytes=10**9)
    small = AppendRules()
    assert small.max_checked_records < rules.max_checked_records
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        validate_and_assign(message_set(small.max_checked_records + 1, codec), small, AppendContext(0, NOW_MS, 0))


def test_too_many_records_are_not_converted_for_an_old_consumer() -> None:
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
        down_convert(batch(CONVERTED_RECORDS_MAX + 1, Codec.GZIP, b"v"), 1, 0)


# --- headers: two bytes on the wire, none of which may become an object


def batch_with_headers(counts: list[int], codec: Codec, header: bytes = b"\0\1") -> bytearray:
    """A batch of records with so many headers, in the way of B3: a few hundred bytes for millions of them."""
    section = bytearray()
    for index, count in enumerate(counts):
        rest = b"\0\0" + varint(index) + b"\2k\2v" + varint(count) + header * count
        section += varint(len(rest)) + rest
    model = parse_header(build_batch([(b"k", b"v", NOW_MS)] * len(counts), BatchFields(codec=codec)))
    return rebuild_batch(model, section)


HEADERS = {
    "one record of all": [3_000_000],
    "many records of some": [30_000] * 100,
    "the last record": [0] * 99 + [2_000_000],
}


def test_the_bound_of_headers_is_half_a_million_or_what_a_larger_message_holds() -> None:
    assert AppendRules(max_message_bytes=1_000).max_checked_headers == 500_000
    assert AppendRules(max_message_bytes=10_000_000).max_checked_headers == 5_000_000


@pytest.fixture
def few_headers(monkeypatch: pytest.MonkeyPatch) -> AppendRules:
    """Rules by which a batch has 100 000 headers and not 500 000: to look at each takes long where memory is traced."""
    monkeypatch.setattr(append_rules, "CHECKED_HEADERS_MIN", 100_000)
    rules = AppendRules(max_message_bytes=200_000)
    assert rules.max_checked_headers == 100_000
    return rules


@pytest.mark.parametrize("options", [{"compacted": True}, {"codec": Codec.GZIP}, {"codec": Codec.NONE}])
@pytest.mark.parametrize("counts", HEADERS.values(), ids=HEADERS)
def test_more_headers_than_fit_uncompressed_are_refused_and_take_no_memory(
    few_headers: AppendRules, options: dict[str, Any], counts: list[int]
) -> None:
    rules = replace(few_headers, **options)
    records = batch_with_headers(counts, Codec.ZSTD)
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
            validate_and_assign(records, rules, AppendContext(0, NOW_MS, 0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * 1024 * 1024


@pytest.mark.parametrize("to", [Codec.NONE, Codec.GZIP])
def test_headers_are_copied_as_bytes_where_a_batch_is_recompressed(few_headers: AppendRules, to: Codec) -> None:
    rules = replace(few_headers, codec=to)
    count = rules.max_checked_headers - 1_000
    records = batch_with_headers([count // 2, count - count // 2], Codec.ZSTD)
    tracemalloc.start()
    try:
        built = validate_and_assign(records, rules, AppendContext(0, NOW_MS, 0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    found = iter_records(built.data, parse_header(built.data), read_headers_max=1)
    assert [1 + record.headers_left_out for record in found] == [count // 2, count - count // 2]
    assert peak < 3 * 1024 * 1024


def test_headers_are_not_made_for_a_consumer_whose_format_has_none() -> None:
    tracemalloc.start()
    try:
        converted = down_convert(batch_with_headers([CONVERTED_HEADERS_MAX], Codec.GZIP), 1, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [record.value for _, header in iter_batches(converted) for record in iter_records(converted, header)] == [
        b"v"
    ]
    assert peak < 16 * 1024 * 1024
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        down_convert(batch_with_headers([CONVERTED_HEADERS_MAX, 1], Codec.GZIP), 1, 0)
