"""Batch headers: what is parsed, what is refused, what may be rewritten in place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import (
    TimestampType,
    computed_crc,
    has_more_batches_than,
    increment_sequence,
    iter_batches,
    parse_header,
    set_max_timestamp,
    stamp,
    take_batches,
    verify_crc,
)
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import Record
from tests.wire.records.samples import plain_records, read_all

# Written by hand from the protocol guide: one record, key "k", value "v", timestamp 5, producer 7, epoch 1, sequence 3.
BATCH = bytes.fromhex(
    "000000000000000a 0000003a 00000002 02 4a22b56e 0010 00000000 0000000000000005 0000000000000005"
    "0000000000000007 0001 00000003 00000001 10 00 00 00 02 6b 02 76 00"
)


def sample(**changes: object) -> bytearray:
    arguments: dict[str, object] = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 3, "is_transactional": True}
    return build_batch_of(plain_records(3), BatchFields(**arguments | changes))  # type: ignore[arg-type]


def test_every_field_of_a_magic_2_header_is_read() -> None:
    header = parse_header(BATCH)
    assert header.base_offset == 10
    assert header.size == len(BATCH)
    assert header.partition_leader_epoch == 2
    assert header.magic == 2
    assert (header.is_transactional, header.is_control, header.has_delete_horizon) == (True, False, False)
    assert (header.codec, header.timestamp_type) == (Codec.NONE, TimestampType.CREATE_TIME)
    assert (header.last_offset, header.next_offset, header.records_count) == (10, 11, 1)
    assert (header.base_timestamp, header.max_timestamp) == (5, 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (7, 1, 3, 3)
    verify_crc(BATCH, 0, header)
    assert read_all(BATCH) == [Record(10, 5, b"k", b"v", (), 3)]


def test_a_legacy_message_has_the_same_interface() -> None:
    (position, header), *rest = iter_batches(build_message_set([Record(9, 77, b"k", b"v")], 1), strict=True)
    assert (position, rest) == (0, [])
    assert (header.magic, header.base_offset, header.last_offset, header.next_offset) == (1, 9, 9, 10)
    assert (header.base_timestamp, header.max_timestamp) == (77, 77)
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (-1, -1, -1)
    assert (header.is_transactional, header.is_control, header.records_count) == (False, False, -1)
    assert header.partition_leader_epoch == -1


def test_magic_0_has_no_timestamp() -> None:
    header = parse_header(build_message_set([Record(9, 77, b"k", b"v")], 0))
    assert (header.magic, header.max_timestamp, header.timestamp_type) == (0, -1, TimestampType.CREATE_TIME)


@pytest.mark.parametrize("cut", [0, 5, 12, 16, 17, 30, 60])
def test_a_header_that_is_cut_off_is_corrupt(cut: int) -> None:
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
        parse_header(sample()[:cut])


@pytest.mark.parametrize(("magic", "length"), [(2, 48), (2, 0), (2, -1), (1, 21), (0, 13), (3, 100), (-1, 100)])
def test_impossible_lengths_and_magics_are_corrupt(magic: int, length: int) -> None:
    batch = sample()
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    batch[16] = magic & 0xFF
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
        parse_header(batch)


def test_unknown_codec_ids_are_corrupt() -> None:
    for codec_id in (5, 6, 7):
        header = parse_header(BATCH)._replace(attributes=codec_id)
        with pytest.raises(KafkaError):
            _ = header.codec


@given(cut=st.integers(0, 200))
def test_a_truncated_last_batch_ends_the_iteration(cut: int) -> None:
    buffer = bytes(sample() * 2)
    size = len(buffer) // 2
    cut = min(cut, len(buffer))
    assert [position for position, _ in iter_batches(buffer[:cut])] == [0, size][: cut // size]
    if cut % size:
        with pytest.raises(KafkaError):
            list(iter_batches(buffer[:cut], strict=True))


@given(st.integers(1, 6), st.integers(0, 8), st.integers(0, 30), st.sampled_from((0, 1, 2)))
def test_more_batches_than_a_count_are_seen_without_their_headers(
    batches: int, count: int, cut: int, magic: int
) -> None:
    one = sample() if magic == 2 else build_message_set([Record(0, -1, None, None)], magic)
    whole = bytes(one) * batches
    buffer = whole[: len(whole) - min(cut, len(one))]
    assert has_more_batches_than(buffer, count) is (len(list(iter_batches(buffer))) > count)


@pytest.mark.parametrize("length", [-1, -12, 0, 13, 2**31 - 1])
def test_batches_are_not_counted_beyond_an_impossible_length(length: int) -> None:
    one = build_message_set([Record(0, -1, None, None)], 0)
    odd = bytearray(one)
    struct.pack_into(">i", odd, 8, length)
    assert has_more_batches_than(one * 2 + odd * 50, 1)
    assert not has_more_batches_than(one * 2 + odd * 50, 2)


def test_batches_are_taken_with_their_positions_and_the_list_is_empty_then() -> None:
    buffer = bytes(sample()) + bytes(sample()) + bytes(sample())
    headers = [header for _, header in iter_batches(buffer)]
    assert list(take_batches(headers)) == list(iter_batches(buffer))
    assert not headers


def test_iteration_starts_at_the_given_position() -> None:
    buffer = bytes(sample() * 3)
    size = len(buffer) // 3
    assert [position for position, _ in iter_batches(buffer, size)] == [size, 2 * size]


@pytest.mark.parametrize(
    "buffer", [sample(), build_message_set(plain_records(1), 0), build_message_set(plain_records(1), 1)]
)
def test_any_flipped_bit_under_the_crc_is_found(buffer: bytearray) -> None:
    start = 21 if buffer[16] == 2 else 16
    for index in range(start, len(buffer)):
        damaged = bytearray(buffer)
        damaged[index] ^= 1 << index % 8
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
            verify_crc(damaged, 0, parse_header(damaged))


def test_a_batch_longer_than_its_buffer_is_corrupt() -> None:
    batch = sample()
    with pytest.raises(KafkaError):
        verify_crc(batch[:-1], 0, parse_header(batch))


@given(offset=st.integers(0, 2**62), epoch=st.integers(-1, 2**31 - 1))
def test_stamping_changes_offset_and_epoch_and_not_the_crc(offset: int, epoch: int) -> None:
    buffer = sample() * 2
    size = len(buffer) // 2
    stamp(buffer, size, offset, epoch)
    header = parse_header(buffer, size)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (offset, offset + 2, epoch)
    verify_crc(buffer, size, header)
    assert buffer[:size] == sample()


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_log_append_time_is_every_records_time(magic: int, codec: Codec) -> None:
    records = plain_records(1 if codec is Codec.NONE else 3)
    buffer = (
        build_batch_of(records, BatchFields(codec=codec)) if magic == 2 else build_message_set(records, 1, codec=codec)
    )
    header = set_max_timestamp(buffer, 0, parse_header(buffer), TimestampType.LOG_APPEND_TIME, 5555)
    assert header == parse_header(buffer)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in read_all(buffer)} == {5555}


def test_setting_the_same_timestamp_writes_nothing() -> None:
    batch = sample()
    header = parse_header(batch)
    frozen = bytes(batch)
    same = set_max_timestamp(memoryview(frozen), 0, header, header.timestamp_type, header.max_timestamp)
    assert same is header


def test_magic_0_cannot_take_a_timestamp() -> None:
    message = build_message_set(plain_records(1), 0)
    with pytest.raises(ValueError):
        set_max_timestamp(message, 0, parse_header(message), TimestampType.LOG_APPEND_TIME, 1)


def test_sequences_wrap_to_zero() -> None:
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 5) == 3
    header = parse_header(sample(base_sequence=2**31 - 2))
    assert header.last_sequence == 0


def test_checksums_agree_however_the_buffer_is_held() -> None:
    batch = sample()
    header = parse_header(batch)
    assert {computed_crc(kind(batch), 0, header) for kind in (bytes, bytearray, memoryview)} == {header.crc}
