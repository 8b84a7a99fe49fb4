"""Appending: what is refused, idempotence, transactions, following a leader."""

from __future__ import annotations

import errno

import pytest

from kpybroker.core.log.producer_append import AppendOrigin
from kpybroker.core.log.verification import NO_VERIFICATION
from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.storage.log.append import UnexpectedAppendOffsetError
from kpybroker.storage.log.log import Log
from kpybroker.storage.segments.index import OffsetIndex
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.errors import ErrorCode
from tests.support.storage.batches import (
    NOW_MS,
    append,
    append_as_coordinator,
    append_batch,
    batch,
    claiming,
    log_config,
    marker,
    open_log,
    read_all,
)
from tests.support.storage.lossy_files import LossyFiles
from tests.support.storage.small_log import SMALL, code_of, new


def test_append_info_describes_the_append() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(flush_messages=3))
    info = append_batch(log, batch(b"a", b"b", timestamp=77), 4)
    assert info[:7] == (0, 1, 77, -1, 0, False, False)
    info = append_batch(log, batch(b"c", timestamp=78), 4)
    assert info.flush_required
    log.flush()
    assert not append_batch(log, batch(b"d"), 4).flush_required


def test_records_may_be_read_only_bytes(log: Log) -> None:
    append_batch(log, bytes(batch(b"a")))
    append_batch(log, memoryview(bytes(batch(b"b"))))
    assert read_all(log) == [(0, b"a"), (1, b"b")]


def test_log_append_time_is_the_brokers() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(message_timestamp_type="LogAppendTime"))
    info = append_batch(log, batch(b"a", timestamp=5))
    assert (info.log_append_time, info.max_timestamp) == (NOW_MS, NOW_MS)


def test_what_is_refused_leaves_no_trace() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(max_message_bytes=200))
    append(log, b"a")
    damaged = batch(b"b")
    damaged[-1] ^= 1
    assert code_of(lambda: append_batch(log, damaged, now_ms=1)) is ErrorCode.CORRUPT_MESSAGE
    assert code_of(lambda: append(log, b"x" * 300)) is ErrorCode.MESSAGE_TOO_LARGE
    assert code_of(lambda: append(log, b"x", base_offset=5)) is ErrorCode.INVALID_RECORD
    assert read_all(log) == [(0, b"a")]
    assert log.log_end_offset == 1


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(segment_bytes=200))
    assert code_of(lambda: append(log, b"x" * 300)) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_repeated_batch_is_acknowledged_with_its_first_offset(log: Log) -> None:
    for number in range(6):
        append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=number, timestamp=100 + number)
    again = append_batch(log, batch(b"x", producer_id=9, producer_epoch=0, base_sequence=2))
    assert (again.first_offset, again.last_offset, again.duplicate) == (2, 2, True)
    assert log.log_end_offset == 6
    gone = batch(b"x", producer_id=9, producer_epoch=0, base_sequence=0)
    assert code_of(lambda: append_batch(log, gone, now_ms=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_batch_is_known_as_a_duplicate_after_a_restart(log: Log, files: LossyFiles) -> None:
    for number in range(6):
        append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=number)
    log.close()
    log = new(files)
    again = append_batch(log, batch(b"x", producer_id=9, producer_epoch=0, base_sequence=5))
    assert (again.first_offset, again.duplicate) == (5, True)
    assert append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=6) == 6


def transactional(log: Log, value: bytes, sequence: int, *, producer_id: int = 7) -> int:
    guard = log.start_verification(producer_id, sequence, 0, NOW_MS)
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    return append_batch(log, batch(value, **options), guard=guard).first_offset


def test_the_last_stable_offset_waits_for_the_marker_and_the_high_watermark(log: Log) -> None:
    append(log, b"plain")
    transactional(log, b"a", 0)
    append(log, b"plain")
    log.update_high_watermark(3)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    append_as_coordinator(log, marker(commit=True, producer_id=7))
    assert log.last_stable_offset == 1
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4


def test_aborted_transactions_are_found_over_segments_and_restarts(log: Log, files: LossyFiles) -> None:
    first = transactional(log, b"a", 0)
    for _ in range(20):
        append(log, b"x" * 30)
    transactional(log, b"b", 1)
    end = append_as_coordinator(log, marker(commit=False, producer_id=7)).last_offset
    transactional(log, b"c", 2)
    append_as_coordinator(log, marker(commit=True, producer_id=7))
    log.update_high_watermark(log.log_end_offset)
    for reopened in (False, True):
        if reopened:
            log.close()
            log = new(files)
        fetched = log.read(0, 100)
        assert [(t.producer_id, t.first_offset, t.last_offset) for t in log.aborted_transactions(0, fetched)] == [
            (7, first, end)
        ]
        assert log.collect_aborted_transactions(end + 1, log.log_end_offset) == []
        assert log.aborted_transactions(5, log.read(5, 100, max_offset=0)) == []


def test_a_read_committed_fetch_needs_no_lookup_where_nothing_was_aborted(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactional(log, b"a", 0)
    append_as_coordinator(log, marker(commit=True, producer_id=7))
    looked_up: list[int] = []
    monkeypatch.setattr(OffsetIndex, "fetch_upper_bound_offset", lambda _, position: looked_up.append(position))
    assert log.aborted_transactions(0, log.read(0, 1000)) == []
    assert looked_up == []
    transactional(log, b"b", 1)
    append_as_coordinator(log, marker(commit=False, producer_id=7))
    assert len(log.aborted_transactions(0, log.read(0, 1000))) == 1
    assert len(looked_up) == 1


def test_a_transaction_needs_its_verification(log: Log) -> None:
    """KIP-890: the first batch of a transaction needs the guard of a verification."""
    options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    assert code_of(lambda: append(log, b"x", **options)) is ErrorCode.INVALID_TXN_STATE
    guard = log.start_verification(7, 0, 0, NOW_MS)
    append_batch(log, batch(b"x", **options), guard=guard)
    assert log.start_verification(7, 1, 0, NOW_MS) is NO_VERIFICATION
    options["base_sequence"] = 1
    append(log, b"y", **options)
    unverified = open_log(LossyFiles(), "/logs/t-0", SMALL, verification_enabled=False)
    options["base_sequence"] = 0
    append(unverified, b"x", **options)


def replicate(leader: Log, follower: Log) -> None:
    fetched = leader.read(follower.log_end_offset, 1 << 20)
    assert fetched.slice is not None
    follower.append_as_follower(fetched.slice.read(), now_ms=NOW_MS)
    fetched.slice.release()


def test_a_follower_notes_aborted_transactions_as_its_leader_does() -> None:
    """Also when it appends the beginning of the next transaction together with the marker."""
    leader, follower = new(), open_log(LossyFiles(), "/logs/t-0", SMALL)
    transactional(leader, b"a", 0)
    append_as_coordinator(leader, marker(commit=False, producer_id=7))
    append(leader, b"between")
    transactional(leader, b"b", 0, producer_id=8)
    leader.update_high_watermark(4)
    replicate(leader, follower)
    assert follower.log_end_offset == leader.log_end_offset == 4
    expected = [AbortedTxn(7, 0, 1, 2)]
    assert leader.segments_map.active.txn_index.entries() == expected
    assert follower.segments_map.active.txn_index.entries() == expected


def test_a_follower_becomes_the_same_log() -> None:
    leader, follower = new(), open_log(LossyFiles(), "/logs/t-0", SMALL)
    for number in range(30):
        append(leader, b"%d" % number, leader_epoch=number // 10, producer_id=3, producer_epoch=0, base_sequence=number)
    while follower.log_end_offset < leader.log_end_offset:
        replicate(leader, follower)
    assert read_all(follower) == read_all(leader)
    assert follower.epochs.entries == leader.epochs.entries
    assert follower.producers.producers[3].last_sequence == 29


def test_a_follower_without_space_knows_the_epochs_of_what_it_has() -> None:
    """It tries again and again: what it could not write begins no epoch, and ends none before."""
    leader, files = new(), LossyFiles()
    follower = open_log(files, "/logs/t-0", SMALL)
    append(leader, b"a", leader_epoch=0)
    replicate(leader, follower)
    for epoch in (0, 1):
        append(leader, b"b", leader_epoch=epoch)

    def fail(number: int, kind: str, path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    files.before_operation = fail
    for _ in range(2):
        assert code_of(lambda: replicate(leader, follower)) is ErrorCode.KAFKA_STORAGE_ERROR
        assert follower.epochs.entries == [EpochEntry(0, 0)]
    files.before_operation = None
    replicate(leader, follower)
    assert follower.epochs.entries == leader.epochs.entries == [EpochEntry(0, 0), EpochEntry(1, 2)]


def test_a_follower_ignores_a_cut_off_batch_and_refuses_damage() -> None:
    follower = new()
    first, second = batch(b"a"), batch(b"b", base_offset=1)
    info = follower.append_as_follower(bytes(first + second[:-3]), now_ms=NOW_MS)
    assert (info.first_offset, info.last_offset, info.size) == (0, 0, len(first))
    assert follower.append_as_follower(b"", now_ms=NOW_MS).last_offset == -1
    second[-1] ^= 1
    assert code_of(lambda: follower.append_as_follower(second, now_ms=1)) is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(UnexpectedAppendOffsetError):
        follower.append_as_follower(batch(b"z"), now_ms=NOW_MS)
    follower.append_as_follower(batch(b"gap", base_offset=10), now_ms=NOW_MS)
    assert read_all(follower) == [(0, b"a"), (10, b"gap")]
    backwards = claiming(batch(b"z", base_offset=11), last_offset_delta=-5)
    assert code_of(lambda: follower.append_as_follower(backwards, now_ms=1)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert follower.log_end_offset == 11


def test_origin_decides_what_is_checked(log: Log) -> None:
    control = marker(commit=True, producer_id=7)
    assert code_of(lambda: append_batch(log, control, now_ms=1)) is ErrorCode.INVALID_RECORD
    info = append_batch(log, control, origin=AppendOrigin.COORDINATOR, now_ms=1)
    assert info.first_offset == 0
