"""The cheap walk notices what the strict reader notices, and says the same largest timestamp."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.append_rules import CHECKED_RECORDS_MIN
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, TimestampType, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch, build_batch_of
from kpybroker.wire.records.claims import is_true, largest_timestamp
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set
from tests.support.storage.batches import claiming

TIMES = [1000, 3000, 2000]
RECORDS = [Record(n, time, b"k", b"v" * n * 40) for n, time in enumerate(TIMES)]
LIMITS = 1000, 1 << 20


def batch(codec: Codec = Codec.NONE) -> bytearray:
    return build_batch_of(RECORDS, BatchFields(codec=codec))


@given(
    st.lists(st.tuples(st.integers(-(2**40), 2**40), st.binary(max_size=300)), min_size=1, max_size=200),
    st.sampled_from(Codec),
)
def test_the_largest_timestamp_is_that_of_the_records(entries: list[tuple[int, bytes]], codec: Codec) -> None:
    built = build_batch([(None, value, time) for time, value in entries], BatchFields(codec=codec))
    header = parse_header(built)
    largest = max(time for time, _ in entries)
    assert largest_timestamp(built, 0, header, 1 << 20) == largest
    assert is_true(built, *LIMITS) is (header.max_timestamp == largest)
    assert is_true(claiming(built, max_timestamp=largest + 1), *LIMITS) is False


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(
    "wrong",
    [
        {"max_timestamp": 2000},
        {"max_timestamp": 1000},
        {"max_timestamp": -1},
        {"max_timestamp": 0},
        {"max_timestamp": 9000},
        {"base_timestamp": 999},
        {"base_timestamp": -1},
        {"records_count": 2, "last_offset_delta": 1},
        {"records_count": 4, "last_offset_delta": 3},
        {"records_count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
    ],
)
def test_a_header_that_is_not_its_records_is_found(codec: Codec, wrong: dict[str, int]) -> None:
    assert is_true(batch(codec), *LIMITS) is True
    assert is_true(claiming(batch(codec), **wrong), *LIMITS) is False


def test_offsets_and_sizes_that_are_not_the_headers_are_found() -> None:
    offsets = build_batch_of([Record(0, 1, None, b"a"), Record(5, 1, None, b"b")], BatchFields())
    assert is_true(offsets, *LIMITS) is False
    assert largest_timestamp(offsets, 0, parse_header(offsets), 1000) == 1
    assert is_true(claiming(offsets, records_count=-1), *LIMITS) is True  # refused in any case
    assert is_true(claiming(offsets, attributes=8), *LIMITS) is True
    damaged = batch()
    damaged[RECORD_BATCH_OVERHEAD] += 2  # the first record's size
    assert is_true(claiming(damaged), *LIMITS) is False
    for cut in range(RECORD_BATCH_OVERHEAD, len(damaged)):
        shorter = damaged[:cut]
        assert is_true(claiming(shorter, batch_length=cut - 12), *LIMITS) is False


def test_bytes_that_do_not_decompress_are_found() -> None:
    assert is_true(claiming(batch(), attributes=Codec.GZIP), *LIMITS) is False


def test_what_is_no_sound_batch_is_left_to_the_validation() -> None:
    sound = batch()
    lying = claiming(sound, max_timestamp=0)
    assert is_true(lying[:-1], *LIMITS) is True
    assert is_true(lying + lying, *LIMITS) is True
    lying[-1] ^= 1  # the CRC
    assert is_true(lying, *LIMITS) is True
    assert is_true(build_message_set(RECORDS, 1), *LIMITS) is True
    assert is_true(b"short", *LIMITS) is True


def test_more_than_the_limits_is_not_walked() -> None:
    records = [Record(n, 1000, None, b"v" * 40) for n in range(3)]
    lying = claiming(build_batch_of(records, BatchFields(codec=Codec.GZIP)), max_timestamp=0)
    assert is_true(lying, 3, 1 << 20) is False
    assert is_true(lying, 2, 1 << 20) is None
    assert is_true(lying, 3, 100) is None


def test_times_of_the_broker_and_of_no_records_are_the_headers() -> None:
    stamped = build_batch_of(RECORDS, BatchFields(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=50))
    assert largest_timestamp(stamped, 0, parse_header(stamped), 1000) == 50
    empty = claiming(batch(), records_count=0, max_timestamp=77)
    assert largest_timestamp(empty, 0, parse_header(empty), 1000) == 77


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_old_messages_have_the_times_of_those_within(magic: int, codec: Codec) -> None:
    message_set = build_message_set(RECORDS[:1] if codec is Codec.NONE else RECORDS, magic, codec=codec)
    expected = {(0, False): -1, (0, True): -1, (1, False): 1000, (1, True): 3000}[magic, codec is Codec.GZIP]
    message_set[18:26] = (7).to_bytes(8, "big") if magic == 1 and codec else message_set[18:26]
    assert largest_timestamp(message_set, 0, parse_header(message_set), 10_000) == expected


@pytest.mark.not_quick
def test_old_messages_are_bounded_by_their_number() -> None:
    records = [Record(n, 1, None, None) for n in range(CHECKED_RECORDS_MIN + 1)]
    message_set = build_message_set(records, 1, codec=Codec.GZIP)
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        largest_timestamp(message_set, 0, parse_header(message_set), 1 << 30)
