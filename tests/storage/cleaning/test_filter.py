"""What remains of a batch (MemoryRecordsTest's filterTo, LogCleanerTest)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from kpybroker.core.log.cleaner_map import OffsetMap
from kpybroker.storage.cleaning.filter import Filter, KeptBatch, LastRecord, Section, iter_places, section_of
from kpybroker.storage.cleaning.transactions import CleanedTransactions
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import BatchHeader, TimestampType, parse_header, verify_crc
from kpybroker.wire.records.builder import BatchFields, build_batch_of, encode_records
from kpybroker.wire.records.default_record import Record, iter_spans
from kpybroker.wire.records.legacy import build_message_set, encode_message
from kpybroker.wire.records.record import iter_records
from tests.support.storage.batches import marker

NOW = 5_000_000
RETENTION = 1000
END = 10_000


def rules(
    latest: dict[bytes, int] | None = None,
    *,
    latest_offset: int = END - 1,
    aborted: tuple[AbortedTxn, ...] = (),
    last_records: dict[int, LastRecord] | None = None,
    now_ms: int = NOW,
    end: int = END,
) -> Filter:
    offsets = OffsetMap(24 * 1000, 0.9)
    offsets.put_all(sorted((latest or {}).items(), key=lambda entry: entry[1]), 1000)
    offsets.latest_offset = latest_offset
    return Filter(
        offsets,
        CleanedTransactions(aborted),
        last_records or {},
        now_ms=now_ms,
        delete_retention_ms=RETENTION,
        first_uncleanable_offset=end,
    )


def record(offset: int, key: bytes | None, value: bytes | None = b"value", timestamp: int = 100) -> Record:
    return Record(offset, timestamp, key, value)


def run(filter_: Filter, batch: bytes | bytearray) -> KeptBatch | None:
    return filter_.clean(bytes(batch), 0, parse_header(batch))


def kept_records(kept: KeptBatch | None) -> tuple[BatchHeader, list[Record]]:
    assert kept is not None
    header = parse_header(kept.data)
    verify_crc(kept.data, 0, header)
    assert (kept.last_offset, kept.max_timestamp) == (header.last_offset, header.max_timestamp)
    return header, list(iter_records(bytes(kept.data), header))


ABC = [record(10, b"a"), record(11, b"b"), record(12, b"c")]


def test_a_batch_that_keeps_all_records_is_copied_unchanged() -> None:
    batch = build_batch_of(ABC)
    kept = run(rules({b"a": 10, b"b": 11}), batch)
    assert kept is not None
    assert bytes(kept.data) == bytes(batch)


@pytest.mark.parametrize("codec", list(Codec))
def test_superseded_records_are_removed_and_the_rest_of_the_batch_is_kept(codec: Codec) -> None:
    timed = [r._replace(timestamp=1000 + 300 * n, headers=(("h", b"%d" % n),)) for n, r in enumerate(ABC)]
    batch = build_batch_of(
        timed,
        BatchFields(
            codec=codec,
            producer_id=7,
            producer_epoch=3,
            base_sequence=40,
            is_transactional=True,
            partition_leader_epoch=9,
        ),
    )
    header, records = kept_records(run(rules({b"a": 50, b"c": 50}), batch))
    assert records == [timed[1]._replace(sequence=41)]
    before = parse_header(batch)
    same = ("base_offset", "last_offset_delta", "partition_leader_epoch", "producer_id", "producer_epoch", "attributes")
    assert [getattr(header, name) for name in same] == [getattr(before, name) for name in same]
    assert (header.base_sequence, header.last_sequence) == (40, 42)
    assert (header.base_timestamp, header.max_timestamp, header.records_count) == (1300, 1300, 1)


def test_log_append_time_is_kept() -> None:
    batch = build_batch_of(ABC, BatchFields(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=777))
    header, records = kept_records(run(rules({b"a": 50}), batch))
    assert [(r.offset, r.timestamp) for r in records] == [(11, 777), (12, 777)]
    assert (header.base_timestamp, header.max_timestamp) == (777, 777)


def test_a_batch_with_no_record_left_is_removed() -> None:
    assert run(rules({b"a": 50, b"b": 50, b"c": 50}), build_batch_of(ABC)) is None


def test_the_last_batch_of_the_range_stays_without_records() -> None:
    batch = build_batch_of(ABC, BatchFields(codec=Codec.GZIP, partition_leader_epoch=4))
    header, records = kept_records(run(rules({b"a": 50, b"b": 50, b"c": 50}, end=13), batch))
    assert records == []
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (10, 12, 4)
    assert not header.is_compressed


def test_the_last_batch_of_a_live_producer_stays_without_records() -> None:
    fields = BatchFields(producer_id=7, producer_epoch=0, base_sequence=5)
    gone = {b"a": 50, b"b": 50, b"c": 50}
    assert run(rules(gone, last_records={7: LastRecord(40, 0)}), build_batch_of(ABC, fields)) is None
    assert run(rules(gone, last_records={8: LastRecord(12, 0)}), build_batch_of(ABC, fields)) is None
    header, records = kept_records(run(rules(gone, last_records={7: LastRecord(12, 0)}), build_batch_of(ABC, fields)))
    assert (records, header.producer_id, header.last_sequence) == ([], 7, 7)
    again = run(
        rules(gone, last_records={7: LastRecord(12, 0)}),
        kept_records_data(header, build_batch_of(ABC, fields)),
    )
    assert kept_records(again)[1] == []


def kept_records_data(header: BatchHeader, batch: bytearray) -> bytes:
    kept = run(rules({b"a": 50, b"b": 50, b"c": 50}, last_records={7: LastRecord(12, 0)}), batch)
    assert kept is not None
    assert parse_header(kept.data) == header
    return bytes(kept.data)


def test_records_above_the_mapped_range_are_kept() -> None:
    header, records = kept_records(run(rules({b"a": 11}, latest_offset=11), build_batch_of([*ABC, record(13, b"a")])))
    assert [(r.offset, r.key) for r in records] == [(11, b"b"), (12, b"c"), (13, b"a")]
    assert header.base_offset == 10


def test_records_without_a_key_are_removed_and_counted() -> None:
    filter_ = rules()
    _, records = kept_records(run(filter_, build_batch_of([record(10, None), record(11, b""), record(12, b"c")])))
    assert [r.key for r in records] == [b"", b"c"]
    assert (filter_.messages_read, filter_.messages_written, filter_.invalid_messages) == (3, 2, 1)


# --- delete horizon (KIP-534)

TOMBSTONES = [record(10, b"a", b"x", 100), record(11, b"b", None, 900), record(12, b"c", None, 90)]


@pytest.mark.parametrize("kind", list(TimestampType))
def test_the_first_cleaning_gives_tombstones_a_delete_horizon(kind: TimestampType) -> None:
    batch = build_batch_of(TOMBSTONES, BatchFields(timestamp_type=kind, log_append_time=500))
    header, records = kept_records(run(rules(), batch))
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW + RETENTION
    timestamps = [100, 900, 90] if kind is TimestampType.CREATE_TIME else [500] * 3
    assert [r.timestamp for r in records] == timestamps
    assert header.max_timestamp == max(timestamps)
    assert [r.value for r in records] == [b"x", None, None]


def test_tombstones_are_removed_at_the_horizon() -> None:
    first = run(rules(), build_batch_of(TOMBSTONES))
    assert first is not None
    second = run(rules(now_ms=NOW + RETENTION - 1), bytes(first.data))
    assert second is not None
    assert bytes(second.data) == bytes(first.data)
    header, records = kept_records(run(rules(now_ms=NOW + RETENTION), bytes(first.data)))
    assert [r.key for r in records] == [b"a"]
    assert (header.has_delete_horizon, header.base_timestamp) == (True, NOW + RETENTION)
    assert records[0].timestamp == 100


def test_a_batch_with_a_horizon_keeps_it_when_it_loses_records_before() -> None:
    first = run(rules(), build_batch_of(TOMBSTONES))
    assert first is not None
    header, records = kept_records(run(rules({b"a": 50}, now_ms=NOW + 1), bytes(first.data)))
    assert (header.base_timestamp, [r.key for r in records]) == (NOW + RETENTION, [b"b", b"c"])


def test_superseded_tombstones_set_no_horizon() -> None:
    header, _ = kept_records(run(rules({b"b": 50, b"c": 50}), build_batch_of(TOMBSTONES)))
    assert not header.has_delete_horizon


# --- transactions


def test_a_marker_without_a_transaction_gets_a_horizon_and_is_removed_after_it() -> None:
    batch = marker(commit=True, producer_id=7)
    first = run(rules(), batch)
    header, records = kept_records(first)
    assert header.is_control
    assert (header.has_delete_horizon, header.base_timestamp, len(records)) == (True, NOW + RETENTION, 1)
    assert first is not None
    again = run(rules(now_ms=NOW + 1), bytes(first.data))
    assert again is not None
    assert bytes(again.data) == bytes(first.data)
    assert run(rules(now_ms=NOW + RETENTION), bytes(first.data)) is None


def test_the_last_marker_of_a_live_producer_stays_without_its_record() -> None:
    first = run(rules(), marker(commit=True, producer_id=7, producer_epoch=2))
    assert first is not None
    alive = {7: LastRecord(-1, 2)}
    emptied = run(rules(now_ms=NOW + RETENTION, last_records=alive), bytes(first.data))
    header, records = kept_records(emptied)
    assert (records, header.is_control, header.producer_epoch) == ([], True, 2)
    assert emptied is not None
    assert run(rules(last_records=alive), bytes(emptied.data)) is not None
    assert run(rules(last_records={7: LastRecord(-1, 3)}), bytes(emptied.data)) is None


def test_aborted_data_are_removed_and_their_marker_waits_for_the_next_cleaning() -> None:
    aborted = AbortedTxn(7, 10, 13, 14)
    filter_ = rules(aborted=(aborted,))
    fields = BatchFields(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert run(filter_, build_batch_of(ABC, fields)) is None
    abort = marker(commit=False, producer_id=7)
    abort[0:8] = (13).to_bytes(8, "big")
    kept = run(filter_, abort)
    assert kept is not None
    assert bytes(kept.data) == bytes(abort)
    assert filter_.take_retained_transactions() == [aborted]
    assert filter_.take_retained_transactions() == []


# --- magic 0 and 1


def legacy(records: list[Record], magic: int, codec: Codec = Codec.NONE, **options: Any) -> bytes:
    return bytes(build_message_set(records, magic, codec=codec, **options))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_single_old_message_is_kept_or_removed(magic: int) -> None:
    message = legacy([record(10, b"a")], magic)
    kept = run(rules(), message)
    assert kept is not None
    assert bytes(kept.data) == message
    assert run(rules({b"a": 50}), message) is None
    assert run(rules(), legacy([record(10, None)], magic)) is None


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_wrapper_is_rewritten_without_removed_messages(magic: int) -> None:
    wrapper = legacy(ABC, magic, Codec.SNAPPY)
    kept = run(rules(), wrapper)
    assert kept is not None
    assert bytes(kept.data) == wrapper
    kept = run(rules({b"a": 50, b"c": 50}), wrapper)
    assert kept is not None
    header = parse_header(kept.data)
    verify_crc(kept.data, 0, header)
    assert (header.magic, header.codec, header.base_offset) == (magic, Codec.SNAPPY, 11)
    assert [(r.offset, r.key, r.value) for r in iter_records(bytes(kept.data), header)] == [(11, b"b", b"value")]


def test_old_tombstones_are_removed_by_the_age_of_their_segment() -> None:
    filter_ = rules()
    tombstone = legacy([record(10, b"a", None)], 1)
    assert run(filter_, tombstone) is not None
    filter_.retain_legacy_deletes = False
    assert run(filter_, tombstone) is None


def test_an_old_wrapper_around_messages_of_another_magic_is_corrected() -> None:
    """KAFKA-4298: a wrapper whose messages have another magic is rewritten."""
    inner = encode_message(0, 1, 0, 100, b"a", b"value")
    wrapper = bytes(encode_message(10, 0, Codec.GZIP, -1, None, compress(Codec.GZIP, inner, magic=0)))
    inner_header = parse_header(inner)
    assert inner_header.magic == 1
    kept = run(rules(), wrapper)
    assert kept is not None
    assert bytes(kept.data) != wrapper
    header = parse_header(kept.data)
    assert [(r.key, r.value) for r in iter_records(bytes(kept.data), header)] == [(b"a", b"value")]


def test_the_last_old_message_of_the_range_is_kept() -> None:
    message = legacy([record(10, None)], 1)
    kept = run(rules(end=11), message)
    assert kept is not None
    assert bytes(kept.data) == message


# --- the walk


def test_the_walk_finds_what_the_strict_one_finds() -> None:
    records = [
        Record(0, 5, b"", b""),
        Record(1, -(2**40), None, None),
        Record(200, 2**40, b"k" * 70, b"v" * 9000, (("h" * 100, None),)),
        Record(20_000, 0, b"k" * 20_000, None, (("h", b"x"),) * 70),
    ]
    batch = build_batch_of(records)
    header = parse_header(batch)
    section = section_of(bytes(batch), 0, header)
    strict = list(iter_spans(section.data[section.start :], header))
    places = list(iter_places(section, header.records_count))
    start = section.start
    assert [place[0] for place in places] == [span.offset_delta for span in strict]
    assert [(p[1] - start, p[2] - start) if p[2] >= 0 else None for p in places] == [
        (span.key_start, span.key_end) if span.key_end >= 0 else None for span in strict
    ]
    assert [place[3] for place in places] == [span.value_end >= 0 for span in strict]
    assert [place[5] - start for place in places] == [span.end for span in strict]


@pytest.mark.parametrize("count", [2, 4])
def test_a_wrong_number_of_records_is_no_batch(count: int) -> None:
    content = bytes(encode_records(ABC, 10, 100))
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.INVALID_RECORD):
        list(iter_places(Section(content, 0, len(content)), count))


def test_no_damage_makes_the_walk_leave_the_section() -> None:
    """The walk ends with records or an error, never with a key outside the section."""
    content = bytearray(encode_records([record(n, b"key %d" % n) for n in range(5)], 0, 100))
    for position in range(len(content)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[position] = value
            places = []
            with suppress(KafkaError):
                places = list(iter_places(Section(bytes(damaged), 0, len(damaged)), 5))
            assert all(place[4] < place[5] <= len(damaged) and place[2] <= place[5] for place in places)
