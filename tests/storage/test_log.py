"""The log as a whole: against a plain list, over reopening, crash, truncation and retention."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kpybroker.core.producer_state import NO_VERIFICATION, AppendOrigin
from kpybroker.storage.append import UnexpectedAppendOffsetError
from kpybroker.storage.errors import LogDirError
from kpybroker.storage.files import OsFiles
from kpybroker.storage.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.batches import NOW_MS, append, batch, log_config, marker, open_log, read_all
from tests.support.lossy_files import LossyFiles

SMALL = log_config(segment_bytes=600, index_interval_bytes=150, segment_index_bytes=8 * 40, retention_ms=-1)


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


def new(files: LossyFiles | None = None) -> Log:
    return open_log(files or LossyFiles(), "/logs/t-0", SMALL)


def test_offsets_are_consecutive_over_batches_and_segments() -> None:
    log = new()
    assert append(log, b"a", b"b") == 0
    assert append(log, b"c") == 2
    for number in range(50):
        append(log, b"%d" % number)
    assert len(log.segments()) > 1
    assert log.log_end_offset == 53
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")] + [(3 + n, b"%d" % n) for n in range(50)]


def test_append_info_tells_what_was_appended() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(flush_messages=3))
    info = log.append_as_leader(batch(b"a", b"b", timestamp=77), 4, now_ms=NOW_MS)
    assert info[:7] == (0, 1, 77, -1, 0, False, False)
    info = log.append_as_leader(batch(b"c", timestamp=78), 4, now_ms=NOW_MS)
    assert info.flush_required
    log.flush()
    assert not log.append_as_leader(batch(b"d"), 4, now_ms=NOW_MS).flush_required


def test_records_may_be_read_only_bytes() -> None:
    log = new()
    log.append_as_leader(bytes(batch(b"a")), 0, now_ms=NOW_MS)
    log.append_as_leader(memoryview(bytes(batch(b"b"))), 0, now_ms=NOW_MS)
    assert read_all(log) == [(0, b"a"), (1, b"b")]


def test_log_append_time_is_the_brokers() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(message_timestamp_type="LogAppendTime"))
    info = log.append_as_leader(batch(b"a", timestamp=5), 0, now_ms=NOW_MS)
    assert (info.log_append_time, info.max_timestamp) == (NOW_MS, NOW_MS)


def test_what_is_refused_leaves_no_trace() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(max_message_bytes=200))
    append(log, b"a")
    damaged = batch(b"b")
    damaged[-1] ^= 1
    assert code_of(lambda: log.append_as_leader(damaged, 0, now_ms=1)) is ErrorCode.CORRUPT_MESSAGE
    assert code_of(lambda: append(log, b"x" * 300)) is ErrorCode.MESSAGE_TOO_LARGE
    assert code_of(lambda: append(log, b"x", base_offset=5)) is ErrorCode.INVALID_RECORD
    assert read_all(log) == [(0, b"a")]
    assert log.log_end_offset == 1


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = open_log(LossyFiles(), "/logs/t-0", log_config(segment_bytes=200))
    assert code_of(lambda: append(log, b"x" * 300)) is ErrorCode.RECORD_LIST_TOO_LARGE


# --- reading


def test_a_read_is_bounded_but_gives_the_first_batch_whole() -> None:
    log = new()
    for _ in range(3):
        append(log, b"x" * 10)
    one = log.segments()[0].size // 3
    sizes = {limit: log.read(0, limit).size for limit in (0, 1, one, one + 1, 2 * one, 1000)}
    assert sizes == {0: one, 1: one, one: one, one + 1: one + 1, 2 * one: 2 * one, 1000: 3 * one}
    cut = log.read(0, 7, min_one_message=False)
    assert (cut.size, cut.first_entry_incomplete) == (7, True)
    assert log.read(0, 0, min_one_message=False).slice is None


def test_a_read_gives_the_batch_that_holds_the_offset() -> None:
    log = new()
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    fetched = log.read(1, 1)
    assert (fetched.position, fetched.segment_base_offset) == (0, 0)
    assert read_all(log, 1) == [(1, b"b"), (2, b"c"), (3, b"d")]


def test_a_read_stops_below_the_bound() -> None:
    log = new()
    for _ in range(30):
        append(log, b"x" * 10)
    for bound in range(31):
        fetched = log.read(0, 1 << 20, max_offset=bound)
        first = log.segments()[0]
        following = log.segments()[1].base_offset
        if bound == 0:
            assert fetched.slice is None
        else:
            assert fetched.size == first.size * min(bound, following) // following


def test_reads_outside_the_log_are_refused() -> None:
    log = new()
    for _ in range(3):
        append(log, b"x")
    log.update_high_watermark(3)
    log.increment_log_start_offset(2)
    assert code_of(lambda: log.read(1, 100)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(lambda: log.read(4, 100)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(3, 100).slice is None


def test_a_slice_outlives_deletion_truncation_and_close(tmp_path: Path) -> None:
    log = open_log(OsFiles(), str(tmp_path / "t-0"), SMALL)
    for number in range(60):
        append(log, b"%04d" % number)
    log.update_high_watermark(60)
    slices = [log.read(offset, 100).slice for offset in (0, 20, 59)]
    before = [piece.read() for piece in slices if piece is not None]
    log.truncate_to(55, now_ms=NOW_MS)
    for number in range(20):
        append(log, b"other %d" % number)
    log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    for path in log.deletions_due(NOW_MS + 10**9):
        Path(path).unlink(missing_ok=True)
    log.close()
    assert [piece.read() for piece in slices if piece is not None] == before
    for piece in slices:
        assert piece is not None
        piece.release()
        piece.release()
        with pytest.raises(ValueError, match="released"):
            piece.read()


# --- lookups by time


def test_find_timestamp_finds_the_first_record_at_or_after() -> None:
    log = new()
    times = [10, 20, 15, 30, 30, 25, 40]
    for _ in range(3):
        for timestamp in times:
            append(log, b"x" * 20, timestamp=timestamp)
        times = [time + 100 for time in times]
    stamps = [t + 100 * round for round in range(3) for t in [10, 20, 15, 30, 30, 25, 40]]
    for wanted in range(0, 250, 3):
        expected = next((n for n, stamp in enumerate(stamps) if stamp >= wanted), None)
        found = log.find_timestamp(wanted)
        assert (found and found.offset) == expected
        if found is not None and expected is not None:
            assert found.timestamp == stamps[expected]


def test_find_max_timestamp_is_the_first_record_with_it() -> None:
    log = new()
    assert log.find_max_timestamp() is None
    for timestamp in (10, 50, 20, 50, 30):
        append(log, b"x" * 100, timestamp=timestamp)
    found = log.find_max_timestamp()
    assert found == (50, 1, 0)


def test_legacy_offsets_are_segment_starts_newest_first(tmp_path: Path) -> None:
    files = OsFiles()
    log = open_log(files, str(tmp_path / "t-0"), SMALL)
    for _ in range(20):
        append(log, b"x" * 20)
    bases = [segment.base_offset for segment in log.segments()]
    for number, segment in enumerate(log.segments()):
        files.set_mtime(segment.records.path, 1000 + number)
    assert log.legacy_offsets_before(-1, 100, 10**6) == sorted([*bases, 20], reverse=True)
    assert log.legacy_offsets_before(-1, 1, 10**6) == [20]
    assert log.legacy_offsets_before(-2, 100, 10**6) == [0]
    assert log.legacy_offsets_before(1001, 100, 10**6) == [bases[1], bases[0]]
    assert log.legacy_offsets_before(999, 100, 10**6) == []


# --- idempotence and transactions


def test_a_repeated_batch_is_answered_with_its_first_offset() -> None:
    log = new()
    for number in range(6):
        append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=number, timestamp=100 + number)
    again = log.append_as_leader(batch(b"x", producer_id=9, producer_epoch=0, base_sequence=2), 0, now_ms=NOW_MS)
    assert (again.first_offset, again.last_offset, again.duplicate) == (2, 2, True)
    assert log.log_end_offset == 6
    gone = batch(b"x", producer_id=9, producer_epoch=0, base_sequence=0)
    assert code_of(lambda: log.append_as_leader(gone, 0, now_ms=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_batch_is_known_as_a_duplicate_after_a_restart() -> None:
    files = LossyFiles()
    log = new(files)
    for number in range(6):
        append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=number)
    log.close()
    log = new(files)
    again = log.append_as_leader(batch(b"x", producer_id=9, producer_epoch=0, base_sequence=5), 0, now_ms=NOW_MS)
    assert (again.first_offset, again.duplicate) == (5, True)
    assert append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=6) == 6


def transactional(log: Log, value: bytes, sequence: int, *, producer_id: int = 7) -> int:
    guard = log.start_verification(producer_id, sequence, 0, NOW_MS)
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    return log.append_as_leader(batch(value, **options), 0, now_ms=NOW_MS, verification_guard=guard).first_offset


def test_the_last_stable_offset_waits_for_the_marker_and_the_high_watermark() -> None:
    log = new()
    append(log, b"plain")
    transactional(log, b"a", 0)
    append(log, b"plain")
    log.update_high_watermark(3)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    log.append_as_coordinator(marker(commit=True, producer_id=7), 0, now_ms=NOW_MS)
    assert log.last_stable_offset == 1
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4


def test_aborted_transactions_are_found_over_segments_and_restarts() -> None:
    files = LossyFiles()
    log = new(files)
    first = transactional(log, b"a", 0)
    for _ in range(20):
        append(log, b"x" * 30)
    transactional(log, b"b", 1)
    end = log.append_as_coordinator(marker(commit=False, producer_id=7), 0, now_ms=NOW_MS).last_offset
    transactional(log, b"c", 2)
    log.append_as_coordinator(marker(commit=True, producer_id=7), 0, now_ms=NOW_MS)
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


def test_a_transaction_needs_its_verification() -> None:
    """KIP-890."""
    log = new()
    options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    assert code_of(lambda: append(log, b"x", **options)) is ErrorCode.INVALID_TXN_STATE
    guard = log.start_verification(7, 0, 0, NOW_MS)
    log.append_as_leader(batch(b"x", **options), 0, now_ms=NOW_MS, verification_guard=guard)
    assert log.start_verification(7, 1, 0, NOW_MS) is NO_VERIFICATION
    options["base_sequence"] = 1
    append(log, b"y", **options)
    unverified = open_log(LossyFiles(), "/logs/t-0", SMALL, verification_enabled=False)
    options["base_sequence"] = 0
    append(unverified, b"x", **options)


# --- epochs


def test_a_leader_epoch_begins_with_its_first_append() -> None:
    log = new()
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=1)
    append(log, b"c", leader_epoch=4)
    assert log.epochs.entries == [(1, 0), (4, 2)]
    assert log.end_offset_for_epoch(1) == (1, 2)
    assert [log.epoch_for_offset(offset) for offset in (0, 1, 2)] == [1, 1, 4]
    assert log.earliest_epoch == 1


def test_epochs_survive_a_restart_and_a_kill() -> None:
    files = LossyFiles()
    log = new(files)
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=2)
    killed = open_log(files.snapshot(), "/logs/t-0", SMALL, had_clean_shutdown=False)
    assert killed.epochs.entries == [(1, 0), (2, 1)]
    log.close()
    assert new(files).epochs.entries == [(1, 0), (2, 1)]


# --- following


def replicate(leader: Log, follower: Log) -> None:
    fetched = leader.read(follower.log_end_offset, 1 << 20)
    assert fetched.slice is not None
    follower.append_as_follower(fetched.slice.read(), now_ms=NOW_MS)
    fetched.slice.release()


def test_a_follower_becomes_the_same_log() -> None:
    leader, follower = new(), open_log(LossyFiles(), "/logs/t-0", SMALL)
    for number in range(30):
        append(leader, b"%d" % number, leader_epoch=number // 10, producer_id=3, producer_epoch=0, base_sequence=number)
    while follower.log_end_offset < leader.log_end_offset:
        replicate(leader, follower)
    assert read_all(follower) == read_all(leader)
    assert follower.epochs.entries == leader.epochs.entries
    assert follower.producers.producers[3].last_sequence == 29


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


# --- topic id


def test_a_topic_id_is_kept_and_never_changes() -> None:
    files = LossyFiles()
    log = new(files)
    log.assign_topic_id(bytes(16))
    assert log.topic_id is None
    log.assign_topic_id(b"1" * 16)
    log.close()
    log = new(files)
    assert log.topic_id == b"1" * 16
    assert code_of(lambda: log.assign_topic_id(b"2" * 16)) is ErrorCode.INCONSISTENT_TOPIC_ID


# --- failures


def try_append(log: Log, value: bytes) -> bool:
    """False where the disk was full."""
    try:
        append(log, value)
    except KafkaError as error:
        if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
            raise
        return False
    return True


def test_a_full_disk_fails_the_append_and_nothing_else() -> None:
    files = LossyFiles()
    log = new(files)
    append(log, b"a")
    for free in range(0, 200, 7):
        files.free_bytes = free
        end = log.log_end_offset
        if not try_append(log, b"b" * 60):
            assert log.log_end_offset == end
        files.free_bytes = None
        assert append(log, b"after") == log.log_end_offset - 1
    values = [value for _, value in read_all(log)]
    assert values.count(b"after") == 29
    log.close()
    assert [value for _, value in read_all(new(files))] == values


def test_any_other_error_ends_the_directory() -> None:
    files = LossyFiles()
    log = new(files)

    def fail(number: int, kind: str, path: str) -> None:
        raise OSError(errno.EIO, "I/O error")

    files.before_operation = fail
    with pytest.raises(LogDirError) as caught:
        append(log, b"a")
    assert caught.value.log_dir == "/logs"
    log.close_handlers()


def test_every_failing_call_of_an_append_leaves_the_log_whole() -> None:
    """The Nth file call fails, for every N of a load that rolls, indexes and aborts."""
    total = 0
    for failing in range(1, 400):
        files = LossyFiles()
        log = new(files)
        start = files.operations

        def fail(number: int, kind: str, path: str, at: int = start + failing) -> None:
            if number == at:
                raise OSError(errno.ENOSPC, "No space left on device")

        files.before_operation = fail
        written = []
        for number in range(25):
            value = b"%d" % number * 9
            if try_append(log, value):
                written.append((log.log_end_offset - 1, value))
        total = files.operations - start
        files.before_operation = None
        assert read_all(log) == written
        assert [offset for offset, _ in written] == list(range(len(written)))
        log.close()
        assert read_all(new(files)) == written
        if failing > total:
            break
    assert failing > total > 25


# --- the model


class LogAgainstList(RuleBasedStateMachine):
    """A log does what a list of (offset, value) does, whatever happens to it."""

    def __init__(self) -> None:
        super().__init__()
        self.files = LossyFiles()
        self.log = new(self.files)
        self.model: list[tuple[int, bytes]] = []
        self.start = 0
        self.end = 0
        self.count = 0

    @rule(count=st.integers(1, 5), size=st.integers(0, 120))
    def append(self, count: int, size: int) -> None:
        values = []
        for _ in range(count):
            self.count += 1
            values.append(b"%d " % self.count + b"x" * (size // count))
        assert append(self.log, *values) == self.end
        self.model += [(self.end + at, value) for at, value in enumerate(values)]
        self.end += count
        self.log.update_high_watermark(self.end)

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(target, now_ms=NOW_MS)
        # What is cut is cut by whole batches, so the log may end below the target; Kafka's log end is the target.
        self.end = target
        self.model = [entry for entry in self.model if entry[0] < self._kept_end(target)]

    def _kept_end(self, target: int) -> int:
        """Where the records really end: the batch that holds the target goes as a whole."""
        found = [offset for offset, _ in read_all(self.log)]
        return max(found, default=self.start - 1) + 1

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def move_start(self, data: st.DataObject) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.increment_log_start_offset(self.start)
        self.log.delete_old_segments(NOW_MS)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule(offset=st.integers(0, 30))
    def begin_anew(self, offset: int) -> None:
        self.start = self.end = self.end + offset
        self.log.truncate_fully_and_start_at(self.start, now_ms=NOW_MS)
        self.model = []

    @rule()
    def reopen(self) -> None:
        self.log.close()
        assert self.files.open_count == 0
        self._open(clean=True)

    @rule()
    def kill(self) -> None:
        self.files = self.files.snapshot()
        self._open(clean=False)

    def _open(self, *, clean: bool) -> None:
        self.log = open_log(
            self.files,
            "/logs/t-0",
            SMALL,
            log_start_offset=self.start,
            recovery_point=self.log.recovery_point,
            had_clean_shutdown=clean,
        )
        self.end = max(self.log.log_end_offset, self.start)
        self.log.update_high_watermark(self.end)

    @invariant()
    def reads_agree(self) -> None:
        self.model = [entry for entry in self.model if entry[0] >= self.start]
        assert self.log.log_start_offset == self.start
        assert read_all(self.log) == self.model
        assert self.log.log_end_offset == self.end
        assert self.log.log_start_offset <= self.log.last_stable_offset <= self.log.high_watermark <= self.end
        for segment in self.log.segments():
            if segment.size:
                segment.offset_index.sanity_check(segment.size)


LogAgainstList.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestLogAgainstList = LogAgainstList.TestCase


def test_origin_decides_what_is_checked() -> None:
    log = new()
    control = marker(commit=True, producer_id=7)
    assert code_of(lambda: log.append_as_leader(control, 0, now_ms=1)) is ErrorCode.INVALID_RECORD
    info = log.append_as_leader(control, 0, now_ms=1, origin=AppendOrigin.COORDINATOR)
    assert info.first_offset == 0
