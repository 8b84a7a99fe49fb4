"""What a leader accepts, what it stores, and with which error it rejects the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import BatchHeader, TimestampType, computed_crc, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch, build_batch_of
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from kpybroker.wire.records.legacy import build_message_set, encode_message
from kpybroker.wire.records.record import Record
from kpybroker.wire.records.record_errors import RecordValidationError
from kpybroker.wire.records.validate import AppendContext, ValidatedRecords, validate_and_assign, validate_fast
from tests.support.examples import examples
from tests.wire.records.samples import LEGACY_CODECS, only_header, plain_records, read_all

RULES = AppendRules()
LOG_APPEND = AppendRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
BASE_OFFSET = 500
NOW_MS = 100_000
MAGIC_1_BUG_OFFSETS = [0, 0, 0]


def validate(records: Any, rules: AppendRules = RULES, **changes: Any) -> ValidatedRecords:
    """What the shortcut takes, it makes the same of as the whole validation."""
    version = changes.pop("request_version", None)
    call = AppendContext(BASE_OFFSET, NOW_MS, 9)._replace(**changes)
    before = bytearray(records)
    fast = validate_fast(records, rules, call.base_offset, call.leader_epoch, version)
    if fast is None:
        return validate_and_assign(records, rules, call, version)
    assert fast == validate_and_assign(before, rules, call, version)
    return fast


def refusal(records: Any, rules: AppendRules = RULES, **changes: Any) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        validate(records, rules, **changes)
    return caught.value


def forged(batch: bytearray, **fields: int) -> bytearray:
    """The batch with other header fields and a correct CRC."""
    header = parse_header(batch)._replace(**fields)
    changed = bytearray(header_bytes(header) + batch[61:])
    changed[17:21] = computed_crc(changed, 0, header).to_bytes(4, "big")
    return changed


def header_bytes(header: BatchHeader) -> bytes:
    widths = (8, 4, 4, 1, 4, 2, 4, 8, 8, 8, 2, 4, 4)
    return b"".join(
        (value & (1 << 8 * width) - 1).to_bytes(width, "big") for value, width in zip(header, widths, strict=True)
    )


def sent(count: int = 3, codec: Codec = Codec.NONE, **changes: Any) -> bytearray:
    return build_batch_of(plain_records(count), BatchFields(codec=codec, **changes))


# --- the plain path


@pytest.mark.parametrize("codec", Codec)
def test_a_simple_batch_is_stamped_in_place(codec: Codec) -> None:
    batch = sent(codec=codec)
    untouched = bytes(batch[16:])
    result = validate(batch)
    assert result.data is batch
    assert bytes(batch[16:]) == untouched
    assert result.header == only_header(batch)
    assert (result.first_offset, result.last_offset, result.records_count) == (500, 502, 3)
    assert (result.max_timestamp, result.offset_of_max_timestamp, result.log_append_time) == (1002, 502, -1)
    assert result.header is not None
    assert result.header.partition_leader_epoch == 9
    assert [record.offset for record in read_all(batch)] == [500, 501, 502]


@pytest.mark.parametrize("kind", [bytes, lambda batch: memoryview(bytes(batch))])
def test_a_read_only_buffer_is_copied(kind: Any) -> None:
    original = kind(sent())
    result = validate(original)
    assert bytes(original) == bytes(sent())
    assert only_header(result.data).base_offset == BASE_OFFSET


def test_part_of_a_frame_is_stamped_in_the_frame() -> None:
    frame = bytearray(b"head") + sent() + b"tail"
    result = validate(memoryview(frame)[4:-4])
    assert frame[:4] + frame[-4:] == b"headtail"
    assert parse_header(frame, 4) == result.header


def test_an_opaque_topic_takes_records_as_they_are() -> None:
    batch = forged(sent(), max_timestamp=7, records_count=3)
    assert validate(batch).max_timestamp == 7
    assert validate(forged(sent(), max_timestamp=7), replace(RULES, check_every_record=True)).max_timestamp == 1002


@given(count=st.integers(1, 30), codec=st.sampled_from(list(Codec)), check_every_record=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_checking_records_of_a_sound_batch_changes_nothing(count: int, codec: Codec, check_every_record: bool) -> None:
    rules = replace(RULES, check_every_record=check_every_record)
    assert validate(sent(count, codec), rules) == validate(sent(count, codec))


# --- batches that are refused

INVALID = ErrorCode.INVALID_RECORD
CORRUPT = ErrorCode.CORRUPT_MESSAGE
SENT = sent()
MARKER = build_end_transaction_batch(
    EndTransactionMarker(ControlRecordType.COMMIT, 0, 5), producer_id=1, producer_epoch=0
)
BAD_BATCHES: dict[str, tuple[bytes | bytearray, ErrorCode]] = {
    "false CRC": (SENT[:-1] + b"?", CORRUPT),
    "base offset": (forged(SENT, base_offset=5), INVALID),
    "negative offset delta": (forged(SENT, last_offset_delta=-1), INVALID),
    "no records": (forged(SENT, records_count=0, last_offset_delta=-1), INVALID),
    "negative count": (forged(SENT, records_count=-1, last_offset_delta=0), INVALID),
    "count above offsets": (forged(SENT, records_count=4), INVALID),
    "count below offsets": (forged(SENT, records_count=2), INVALID),
    "control batch": (MARKER, INVALID),
    "producer without sequence": (forged(SENT, producer_id=5, producer_epoch=0), INVALID),
    "two batches": (SENT + SENT, INVALID),
    "unknown codec": (forged(SENT, attributes=5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "unknown magic": (SENT[:16] + b"\x03" + SENT[17:], CORRUPT),
    "impossible length": (SENT[:8] + b"\0\0\0\x05" + SENT[12:], CORRUPT),
    "other magics after the first": (
        build_message_set(plain_records(1), 1) + build_message_set(plain_records(1), 0),
        INVALID,
    ),
    "two wrappers": (build_message_set(plain_records(1), 1, codec=Codec.GZIP) * 2, INVALID),
}


@pytest.mark.parametrize("check_every_record", [False, True])
@pytest.mark.parametrize("name", BAD_BATCHES)
def test_bad_batches_are_refused(name: str, check_every_record: bool) -> None:
    batch, code = BAD_BATCHES[name]
    assert refusal(bytearray(batch), replace(RULES, check_every_record=check_every_record)).code is code


def test_size_is_measured_by_the_batch() -> None:
    rules = replace(RULES, max_message_bytes=len(SENT))
    assert validate(bytearray(SENT), rules).records_count == 3
    error = refusal(bytearray(SENT), replace(rules, max_message_bytes=len(SENT) - 1))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert f"is {len(SENT)} bytes" in error.message


def test_size_is_measured_again_after_recompression() -> None:
    batch = build_batch_of([Record(0, 1, b"k", bytes(5000))], BatchFields(codec=Codec.GZIP))
    rules = AppendRules(codec=Codec.NONE, max_message_bytes=1000)
    assert refusal(batch, rules).code is ErrorCode.MESSAGE_TOO_LARGE


def test_linked_lz4_is_refused_because_java_cannot_read_it() -> None:
    compressor = cramjam.lz4.Compressor(block_linked=True)
    compressor.compress(bytes(build_batch_of(plain_records(3))[61:]))
    body = bytes(compressor.finish())
    batch = forged(bytearray(SENT[:61]) + body, attributes=Codec.LZ4, batch_length=49 + len(body))
    assert refusal(batch).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_bytes_that_do_not_decompress_are_refused_where_records_are_checked() -> None:
    batch = forged(bytearray(SENT), attributes=Codec.GZIP)
    assert validate(bytearray(batch)).records_count == 3
    assert refusal(batch, replace(RULES, check_every_record=True)).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_bomb_is_refused_where_records_are_checked() -> None:
    batch = build_batch_of([Record(0, 1, b"k", bytes(5_000_000))], BatchFields(codec=Codec.ZSTD))
    rules = replace(RULES, check_every_record=True, max_uncompressed_bytes=1_000_000)
    assert refusal(batch, rules).code is ErrorCode.MESSAGE_TOO_LARGE


# --- what produce versions add


@pytest.mark.parametrize("version", [3, 6, 7, 11])
def test_version_3_wants_exactly_one_batch_of_magic_2(version: int) -> None:
    legacy = build_message_set(plain_records(1), 1)
    assert validate(bytearray(SENT), request_version=version).records_count == 3
    for records in (b"", b"short", SENT[:-1], SENT * 2, legacy):
        assert refusal(bytearray(records), request_version=version).code is INVALID


def test_before_version_3_nothing_whole_is_nothing_done() -> None:
    for records in (b"", b"short", bytes(SENT[:-1])):
        result = validate(records, request_version=2)
        assert (result.header, result.data, result.first_offset, result.records_count) == (None, b"", -1, 0)


def test_bytes_after_the_last_whole_batch_are_trimmed() -> None:
    result = validate(SENT + SENT[:-1], request_version=3)
    assert len(result.data) == len(SENT)
    assert only_header(result.data).base_offset == BASE_OFFSET


def test_zstd_needs_version_7() -> None:
    batch = sent(codec=Codec.ZSTD)
    for version in (3, 6):
        assert refusal(bytearray(batch), request_version=version).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert validate(batch, request_version=7).records_count == 3


# --- what coordinators may do


def test_coordinators_write_markers_and_leave_out_sequences() -> None:
    result = validate(bytearray(MARKER), from_client=False)
    assert result.header == only_header(result.data)
    assert (result.first_offset, result.last_offset, result.records_count) == (500, 500, 1)
    batch = sent(producer_id=5, producer_epoch=0, base_sequence=-1, is_transactional=True)
    assert validate(batch, from_client=False).last_offset == 502


def test_markers_are_not_compressed() -> None:
    result = validate(bytearray(MARKER), AppendRules(codec=Codec.GZIP), from_client=False)
    assert not result.is_rebuilt
    assert only_header(result.data).codec is Codec.NONE


def test_coordinators_are_still_measured() -> None:
    assert refusal(sent(), AppendRules(max_message_bytes=10), from_client=False).code is ErrorCode.MESSAGE_TOO_LARGE


# --- records that are refused

COMPACTED = AppendRules(compacted=True)


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_wants_keys(codec: Codec) -> None:
    batch = build_batch([(b"k", b"v", 1), (None, b"v", 1), (b"", b"v", 1), (None, None, 1)], BatchFields(codec=codec))
    error = refusal(batch, COMPACTED, partition="topic-0")
    assert isinstance(error, RecordValidationError)
    assert error.code is INVALID
    assert [wrong.batch_index for wrong in error.record_errors] == [1, 3]
    assert "topic-0" in error.record_errors[0].message
    assert validate(sent(codec=codec), COMPACTED).records_count == 3


def test_the_message_shows_only_a_few_of_many_errors() -> None:
    error = refusal(build_batch([(None, b"v", 1)] * 100), COMPACTED)
    assert isinstance(error, RecordValidationError)
    assert len(error.record_errors) == 100
    assert len(error.message) < 500


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize(
    ("timestamp", "is_accepted"),
    [
        (NOW_MS - 1000, True),
        (NOW_MS - 1001, False),
        (NOW_MS + 200, True),
        (NOW_MS + 201, False),
        (-1, True),
    ],
)
def test_timestamps_have_bounds(codec: Codec, timestamp: int, is_accepted: bool) -> None:
    rules = AppendRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=200)
    batch = build_batch([(b"k", b"v", NOW_MS), (b"k", b"v", timestamp)], BatchFields(codec=codec))
    if is_accepted:
        assert validate(batch, rules).records_count == 2
        return
    error = refusal(batch, rules)
    assert isinstance(error, RecordValidationError)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [wrong.batch_index for wrong in error.record_errors] == [1]
    assert validate(batch, replace(rules, timestamp_type=TimestampType.LOG_APPEND_TIME)).records_count == 2


def test_an_invalid_timestamp_outranks_an_invalid_record() -> None:
    rules = AppendRules(compacted=True, timestamp_before_max_ms=10)
    error = refusal(build_batch([(None, b"v", NOW_MS), (b"k", b"v", 1)]), rules)
    assert isinstance(error, RecordValidationError)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [wrong.batch_index for wrong in error.record_errors] == [0, 1]


def test_producers_do_not_set_log_append_time() -> None:
    batch = sent(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=5)
    assert refusal(bytearray(batch), LOG_APPEND).code is ErrorCode.INVALID_TIMESTAMP


def test_on_a_create_time_topic_log_append_time_is_taken_for_create_time() -> None:
    """As in LogValidator: the records count as having the batch's timestamp, and the type is corrected."""
    result = validate(sent(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=5))
    assert result.header == only_header(result.data)
    assert result.header is not None
    assert result.header.timestamp_type is TimestampType.CREATE_TIME
    assert result.max_timestamp == 5


@pytest.mark.parametrize("codec", Codec)
def test_the_count_is_that_of_the_records(codec: Codec) -> None:
    batch = forged(sent(3, codec), records_count=4, last_offset_delta=3)
    assert refusal(batch, replace(RULES, check_every_record=True)).code is INVALID


# --- log append time


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_is_now(codec: Codec) -> None:
    batch = sent(codec=codec)
    result = validate(batch, LOG_APPEND)
    assert result.data is batch or result.data.obj is batch  # type: ignore[union-attr]
    assert (result.log_append_time, result.max_timestamp, result.offset_of_max_timestamp) == (NOW_MS, NOW_MS, 502)
    assert result.header == only_header(batch)
    assert {record.timestamp for record in read_all(batch)} == {NOW_MS}


# --- recompression


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_a_topics_codec_replaces_the_producers(source: Codec, target: Codec) -> None:
    batch = sent(5, source, producer_id=7, producer_epoch=1, base_sequence=3, is_transactional=True)
    result = validate(batch, AppendRules(codec=target))
    header = only_header(result.data)
    assert result.is_rebuilt is (source is not target)
    assert result.header == header
    assert (header.codec, header.is_transactional, header.partition_leader_epoch) == (target, True, 9)
    assert header[9:12] == (7, 1, 3)
    assert [record[:4] for record in read_all(result.data)] == [
        (500 + index, *record[1:4]) for index, record in enumerate(plain_records(5))
    ]
    assert (result.last_offset, result.max_timestamp, result.offset_of_max_timestamp) == (504, 1004, 504)


def test_recompression_uses_the_topics_level() -> None:
    data = b"".join(b"%d words of text " % (i * 7919 % 1000) for i in range(3000))
    batch = build_batch([(b"k", data, 1)])
    sizes = [len(validate(batch, AppendRules(codec=Codec.GZIP, level=level)).data) for level in (1, 9)]
    assert sizes[0] > sizes[1]


def test_recompression_keeps_headers_and_checks_records() -> None:
    records = [Record(0, 5, None, b"v", (("h", b"1"), ("h", None)))]
    result = validate(build_batch_of(records), AppendRules(codec=Codec.LZ4))
    assert read_all(result.data)[0].headers == records[0].headers
    assert refusal(build_batch_of(records), AppendRules(codec=Codec.LZ4, compacted=True)).code is INVALID


def test_recompression_with_log_append_time() -> None:
    result = validate(sent(), replace(LOG_APPEND, codec=Codec.GZIP))
    assert (result.log_append_time, result.max_timestamp, result.offset_of_max_timestamp) == (NOW_MS, NOW_MS, 502)
    assert {record.timestamp for record in read_all(result.data)} == {NOW_MS}


def test_compressed_offsets_with_gaps_are_made_dense_where_they_are_seen() -> None:
    records = [Record(0, 1, b"a", b"1"), Record(2, 1, b"b", b"2")]
    batch = forged(build_batch_of(records, BatchFields(codec=Codec.GZIP)), records_count=2, last_offset_delta=1)
    result = validate(batch, replace(RULES, check_every_record=True))
    assert result.is_rebuilt
    assert [record.offset for record in read_all(result.data)] == [500, 501]


def test_a_negative_timestamp_cannot_be_rebuilt() -> None:
    batch = build_batch([(b"k", b"v", -2)])
    assert refusal(batch, AppendRules(codec=Codec.GZIP)).code is ErrorCode.UNKNOWN_SERVER_ERROR


# --- old formats


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_formats_become_one_magic_2_batch(magic: int, codec: Codec, version: int) -> None:
    result = validate(build_message_set(plain_records(4), magic, codec=codec), request_version=version)
    header = only_header(result.data)
    assert result.is_rebuilt
    assert (header.magic, header.codec, header.base_offset, header.records_count) == (2, codec, 500, 4)
    expected = [record._replace(offset=500 + record.offset) for record in plain_records(4)]
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in expected]
    assert read_all(result.data) == expected
    assert result.max_timestamp == (1003 if magic else -1)
    assert result.offset_of_max_timestamp == (503 if magic else -1)


def test_old_formats_take_log_append_time() -> None:
    result = validate(build_message_set(plain_records(2), 0), LOG_APPEND)
    assert {record.timestamp for record in read_all(result.data)} == {NOW_MS}
    assert result.log_append_time == NOW_MS


def test_old_clients_wrong_inner_offsets_are_replaced() -> None:
    inner = b"".join(bytes(encode_message(offset, 1, 0, 5, b"k", b"v")) for offset in MAGIC_1_BUG_OFFSETS)
    wrapper = encode_message(0, 1, Codec.GZIP, 5, None, compress(Codec.GZIP, inner, magic=1))
    assert [record.offset for record in read_all(validate(wrapper).data)] == [500, 501, 502]


def test_inner_messages_are_checked() -> None:
    def wrap(inner: bytes | bytearray) -> bytearray:
        return encode_message(0, 1, Codec.GZIP, 5, None, compress(Codec.GZIP, inner, magic=1))

    damaged = encode_message(0, 1, 0, 5, b"k", b"v")
    damaged[-1] ^= 1
    assert refusal(wrap(damaged)).code is CORRUPT
    other_magic = refusal(wrap(encode_message(0, 0, 0, 5, b"k", b"v")))
    assert isinstance(other_magic, RecordValidationError)
    assert [wrong.batch_index for wrong in other_magic.record_errors] == [0]
    assert refusal(wrap(encode_message(0, 1, Codec.GZIP, 5, b"k", b"v"))).code is INVALID


def test_a_compacted_topic_wants_keys_of_old_formats_too() -> None:
    for codec in LEGACY_CODECS:
        records = build_message_set([Record(0, 1, None, b"v")], 1, codec=codec)
        assert refusal(records, COMPACTED).code is INVALID


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("to_magic", [0, 1])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_cluster_of_an_older_protocol_stores_its_format(magic: int, to_magic: int, codec: Codec) -> None:
    records = plain_records(3)
    source = (
        build_batch_of(records, BatchFields(codec=codec))
        if magic == 2
        else build_message_set(records, magic, codec=codec)
    )
    result = validate(source, AppendRules(to_magic=to_magic))
    stored = read_all(result.data)
    assert [record.offset for record in stored] == [500, 501, 502]
    assert [record[2:4] for record in stored] == [record[2:4] for record in records]
    assert result.last_offset == 502
    has_time = min(magic, to_magic) > 0
    assert result.max_timestamp == (1002 if has_time else -1)


def test_what_old_formats_cannot_hold_is_refused() -> None:
    idempotent = sent(producer_id=7, producer_epoch=1, base_sequence=3)
    assert refusal(idempotent, AppendRules(to_magic=1)).code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


# --- anything at all


@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6), data=st.data())
@settings(max_examples=examples(300), deadline=None)
def test_nothing_but_kafka_errors(flips: list[tuple[int, int]], data: st.DataObject) -> None:
    magic = data.draw(st.sampled_from([0, 1, 2]))
    codec = data.draw(st.sampled_from(LEGACY_CODECS))
    records = plain_records(4)
    buffer = (
        build_batch_of(records, BatchFields(codec=codec))
        if magic == 2
        else build_message_set(records, magic, codec=codec)
    )
    for place, value in flips:
        buffer[place % len(buffer)] = value
    if magic == 2 and data.draw(st.booleans()):
        buffer[8:12], buffer[16] = (len(buffer) - 12).to_bytes(4, "big"), 2
        buffer = forged(buffer)
    target = data.draw(st.sampled_from([None, *Codec]))
    rules = AppendRules(check_every_record=data.draw(st.booleans()), codec=target, max_uncompressed_bytes=1 << 20)
    try:
        result = validate(buffer, rules, request_version=data.draw(st.sampled_from([None, 2, 11])))
    except KafkaError:
        return
    if rules.check_every_record and result.header is not None:
        assert len(read_all(result.data)) == result.records_count
