"""The log as a whole: against a plain list, over reopening, crash, truncation and retention."""

from __future__ import annotations

import errno

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.examples import examples
from tests.support.storage.batches import NOW_MS, append, open_log, read_all
from tests.support.storage.lossy_files import LossyFiles
from tests.support.storage.small_log import SMALL, new


def test_offsets_are_consecutive_over_batches_and_segments(log: Log) -> None:
    assert append(log, b"a", b"b") == 0
    assert append(log, b"c") == 2
    for number in range(50):
        append(log, b"%d" % number)
    assert len(log.segments()) > 1
    assert log.log_end_offset == 53
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")] + [(3 + n, b"%d" % n) for n in range(50)]


# --- epochs


def test_a_leader_epoch_begins_with_its_first_append(log: Log) -> None:
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=1)
    append(log, b"c", leader_epoch=4)
    assert log.epochs.entries == [(1, 0), (4, 2)]
    assert log.end_offset_for_epoch(1) == (1, 2)
    assert [log.epoch_for_offset(offset) for offset in (0, 1, 2)] == [1, 1, 4]
    assert log.earliest_epoch == 1


def test_epochs_survive_a_restart_and_a_kill(log: Log, files: LossyFiles) -> None:
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=2)
    killed = open_log(files.snapshot(), "/logs/t-0", SMALL, had_clean_shutdown=False)
    assert killed.epochs.entries == [(1, 0), (2, 1)]
    log.close()
    assert new(files).epochs.entries == [(1, 0), (2, 1)]


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


def test_a_full_disk_fails_the_append_and_nothing_else(log: Log, files: LossyFiles) -> None:
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


def test_any_other_error_ends_the_directory(log: Log, files: LossyFiles) -> None:
    def fail(number: int, kind: str, path: str) -> None:
        raise OSError(errno.EIO, "I/O error")

    files.before_operation = fail
    with pytest.raises(LogDirError, check=lambda error: error.log_dir == "/logs"):
        append(log, b"a")
    log.close_handlers()


@pytest.mark.usefixtures("index_writes")
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
    """A log behaves as a list of (offset, value), through any operations."""

    def __init__(self) -> None:
        super().__init__()
        self.files = LossyFiles()
        self.log = new(self.files)
        self.model: list[tuple[int, bytes]] = []
        self.batches: list[tuple[int, int]] = []  # (base offset, end offset)
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
        self.batches.append((self.end, self.end + count))
        self.end += count
        self.log.update_high_watermark(self.end)

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(target, now_ms=NOW_MS)
        # Batches are removed whole, so the log may end below the target, even below its log start offset.
        held = [(base, end) for base, end in self.batches if end > target]
        self.batches = [(base, end) for base, end in self.batches if end <= target]
        self.end = min([target, *(base for base, _ in held)])
        self.start = min(self.start, self.end)
        self.model = [entry for entry in self.model if entry[0] < self.end]

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
    def start_again(self, offset: int) -> None:
        self.start = self.end = self.end + offset
        self.log.truncate_fully_and_start_at(self.start, now_ms=NOW_MS)
        self.model = []
        self.batches = []

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


LogAgainstList.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
TestLogAgainstList = LogAgainstList.TestCase
