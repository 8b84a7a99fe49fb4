"""Every file call of scripted loads fails once, with a full disk and with a broken one.

A full disk fails the one operation and nothing else. Any other failure takes its log directory offline, which gets no
further calls; the other directory stays in service. A failed sync is never retried.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from random import Random

import pytest

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.batches import NOW_MS, found_by, read_all
from tests.support.storage.storage_check import check_log, check_restart
from tests.support.storage.storage_load import DIRS, FAR_FUTURE_MS, SCENARIOS, Load, Scenario

pytestmark = pytest.mark.usefixtures("index_writes")

SLICE = 60
CHANGES = ("create", "pwrite", "truncate", "rename", "unlink", "mkdir", "rmdir", "sync", "sync_dir")


class Failure:
    """Makes one file call of a load fail. Nothing may change in a directory that is offline."""

    def __init__(self, load: TolerantLoad, at: int, code: int) -> None:
        self._load = load
        self._at = at
        self._code = code
        self.kind = self.path = self.during = ""
        load.files.counts_reads = code == errno.EIO
        load.files.before_operation = self._before

    def _before(self, number: int, kind: str, path: str) -> None:
        assert kind not in CHANGES or directory_of(path) not in self._load.untouchable, (kind, path)
        if number == self._at:
            self.kind, self.path, self.during = kind, path, self._load.doing
            raise OSError(self._code, os.strerror(self._code), path)

    @property
    def directory(self) -> str:
        return directory_of(self.path)


def directory_of(path: str) -> str:
    return next((found for found in DIRS if f"{path}/".startswith(f"{found}/")), path)


class TolerantLoad(Load):
    """A load that reacts as a broker does: a refused call had no effect, a failed directory goes offline."""

    had_failures = True

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self.offline: list[str] = []
        self.accepted: dict[str, int] = {}
        self.untouchable: set[str] = set()
        self.doing = ""

    def tolerate(self, topic: str, action: Callable[[], None]) -> None:
        if topic in self.known and self.logs.get(topic, 0) is None:
            return
        try:
            action()
            if topic in self.known:
                self.accepted[topic] = len(self.known[topic].entries)
        except KafkaError as error:
            if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            self.refused += 1
            log = self.logs.get(topic, 0)
            if log is not None:
                del self.known[topic].entries[log.log_end_offset :]
        except LogDirError as error:
            self.logs.take_offline(error.log_dir, error.cause)
            self._note_offline([error.log_dir])

    def _note_offline(self, log_dirs: Iterable[str]) -> None:
        self.offline += log_dirs
        self.untouchable.update(log_dirs)

    def create(self, topic: str, topic_id: bytes = b"") -> None:
        if topic in self.known:
            return  # it could not be deleted
        refused = self.refused
        self.accepted.pop(topic, None)
        self.tolerate("", lambda: Load.create(self, topic, topic_id))
        if self.refused > refused:
            Load.create(self, topic, topic_id)

    def delete(self, topic: str) -> None:
        self.tolerate(topic, lambda: Load.delete(self, topic))

    def append_record(self, topic: str, epoch: int, producer_id: int) -> None:
        self.tolerate(topic, lambda: Load.append_record(self, topic, epoch, producer_id))

    def append_marker(self, topic: str, epoch: int, commit: bool) -> None:
        self.tolerate(topic, lambda: Load.append_marker(self, topic, epoch, commit))

    def flush(self, topic: str) -> None:
        self.tolerate(topic, lambda: Load.flush(self, topic))

    def delete_records(self, topic: str, offset: int) -> None:
        self.tolerate(topic, lambda: Load.delete_records(self, topic, min(offset, self.log(topic).high_watermark)))

    def retention(self, topic: str, keep_bytes: int = -1) -> None:
        self.tolerate(topic, lambda: Load.retention(self, topic, keep_bytes))

    def truncate(self, topic: str, offset: int) -> None:
        self.doing = "truncation"
        self.tolerate(topic, lambda: Load.truncate(self, topic, offset))
        self.doing = ""

    def start_again(self, topic: str, offset: int) -> None:
        self.doing = "truncation"
        self.tolerate(topic, lambda: Load.start_again(self, topic, offset))
        self.doing = ""

    def checkpoint(self, *kinds: str) -> None:
        self.tolerate("", lambda: Load.checkpoint(self, *kinds))

    def remove_deleted(self) -> None:
        for job in self.logs.deletions_due(FAR_FUTURE_MS):
            self.tolerate("", job)

    def _is_written(self, kind: str, dirs: list[str] | None = None) -> None:
        """A full disk keeps the old checkpoint: any of the captured ones may be on disk."""

    def _starts_are_written(self, starts: Mapping[str, int]) -> None:
        """As above, or none."""

    def open(self) -> None:
        self.untouchable.clear()
        self.doing = "start"
        super().open()
        self.doing = ""
        self._note_offline(self.logs.dirs.offline)
        for topic, log in self.hosted().items():
            assert log.log_end_offset >= self.accepted.get(topic, 0)
            del self.known[topic].entries[log.log_end_offset :]
            self.tolerate(topic, partial(log.assign_topic_id, self.known[topic].topic_id))

    def consume(self) -> None:
        """Read everything a log can be asked for."""
        for topic, log in self.hosted().items():
            self.tolerate(topic, partial(read_everything, log))

    def shutdown(self) -> None:
        self.consume()
        self.check_hosted()
        before = set(self.logs.dirs.offline)
        super().shutdown()
        self._note_offline(set(self.logs.dirs.offline) - before)

    def check_hosted(self) -> None:
        """Exactly the accepted records are served."""
        counted, hook = self.files.operations, self.files.before_operation
        self.files.before_operation = None
        for topic, log in self.hosted().items():
            check_log(self.known[topic], log)
            assert log.log_end_offset == len(self.known[topic].entries)
        self.files.operations, self.files.before_operation = counted, hook


def read_everything(log: Log) -> None:
    """Reads after the call, of slices and in threads, are the broker's task."""
    log.collect_aborted_transactions(log.log_start_offset, log.log_end_offset)
    try:
        read_all(log)
        for search in (log.search_timestamp(NOW_MS + log.log_start_offset), log.search_max_timestamp()):
            found_by(search)
    except OSError as error:
        raise LogDirError(log.log_dir, error) from error
    log.legacy_offsets_before(NOW_MS, 10, NOW_MS)


def run(scenario: Scenario, at: int, code: int) -> tuple[TolerantLoad, Failure]:
    """Run one whose call number `at` fails; check what is served, kill the broker, and check what is recovered."""
    load = TolerantLoad()
    failure = Failure(load, at, code)
    scenario(load)
    if not all(log.is_closed for log in load.logs):
        load.consume()
        load.check_hosted()
        for topic, log in load.hosted().items():
            load.known[topic].flushed = log.log_end_offset
    return load, failure


def check(scenario: Scenario, code: int, request: pytest.FixtureRequest) -> Iterator[tuple[TolerantLoad, Failure]]:
    """Every call of the scenario, or a slice of them."""
    load, _ = run(scenario, 0, code)
    everywhere = range(1, load.files.operations + 1)
    chance = Random(f"{request.config.option.seed} {scenario.__name__} {code}")
    for at in everywhere if request.config.option.whole else chance.sample(everywhere, SLICE):
        load, failure = run(scenario, at, code)
        assert failure.kind, f"call {at} of {len(everywhere)} was never made"
        yield load, failure
        for known in load.known.values():
            known.start_min = 0
        load.files.before_operation = None
        check_restart(load, load.files.snapshot())
        load.logs.shutdown()
        if code == errno.ENOSPC and failure.during != "start":
            assert load.files.open_count == 0, "what may be tried a thousand times leaves no file open"


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_full_disk_refuses_what_was_asked_and_nothing_else(name: str, request: pytest.FixtureRequest) -> None:
    """Except at a start and within a truncation, where only half a log would be left."""
    for load, failure in check(SCENARIOS[name], errno.ENOSPC, request):
        if failure.directory not in DIRS:
            assert len(load.offline) == 1
        elif failure.kind in ("sync", "sync_dir") or failure.during:
            assert load.offline in ([], [failure.directory])
        else:
            assert load.offline == []
        if failure.kind == "sync" and failure.path.endswith(names.LOG_SUFFIX):
            assert load.offline == [failure.directory]
        if failure.kind == "pwrite" and failure.path.endswith(names.LOG_SUFFIX):
            assert load.refused == 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_any_other_failure_ends_its_directory_and_no_other(name: str, request: pytest.FixtureRequest) -> None:
    for load, failure in check(SCENARIOS[name], errno.EIO, request):
        if failure.directory in DIRS:
            assert load.offline == [failure.directory], (failure.kind, failure.path)
        else:
            assert len(load.offline) == 1
        assert load.refused == 0
