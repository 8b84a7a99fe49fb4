"""Scripted loads on a `LogManager`, and what must be found of them when it is opened again.

A `Load` runs operations on logs and records what each of them guarantees: before an operation what may be lost (or
restored), after it what must be there. So a load that is stopped anywhere knows exactly what a restart must find.
`SCENARIOS` are loads, one for each kind of change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import Files
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.settings import LogSettings
from tests.support.storage.batches import NOW_MS, append, append_as_coordinator, log_config, marker
from tests.support.storage.lossy_files import LossyFiles

DIRS = ("/a", "/b")
CONFIG = log_config(
    segment_bytes=700,
    index_interval_bytes=100,
    segment_index_bytes=400,
    retention_ms=-1,
    retention_bytes=-1,
    file_delete_delay_ms=1000,
)
FAR_FUTURE_MS = NOW_MS + 10**9
PLAIN, TRANSACTIONAL = 5, 7
CHECKPOINTS = (names.RECOVERY_POINT_CHECKPOINT, names.LOG_START_OFFSET_CHECKPOINT, names.HIGH_WATERMARK_CHECKPOINT)


class Entry(NamedTuple):
    """What an offset holds; `value` is None for a marker, and `committed` says which."""

    value: bytes | None
    epoch: int
    producer_id: int
    sequence: int = -1
    committed: bool | None = None


History = list[Entry | None]
"""By offset. None below the offset at which a log started again."""


@dataclass(slots=True)
class Known:
    """What is known of one log. The last history is what it holds; where a crash undoes a truncation, another one."""

    topic_id: bytes
    histories: list[History] = field(default_factory=lambda: [[]])
    flushed: int = 0
    start_min: int = 0
    start_max: int = 0
    must_exist: bool = False

    @property
    def entries(self) -> History:
        return self.histories[-1]

    def is_durable(self, log: Log) -> None:
        self.flushed = log.log_end_offset
        self.must_exist = True
        del self.histories[:-1]


class Load:
    """One run. `files` may stop it at any call; its fields say how far it got."""

    had_failures = False  # so that what should be in the checkpoints is not known

    def __init__(self, files: LossyFiles | None = None) -> None:
        self.files = files or LossyFiles()
        self.known: dict[str, Known] = {}
        self.checkpoints: dict[tuple[str, str], list[dict[TopicPartition, int]]] = {}
        self.manager: LogManager | None = None

    def start(self, *topics: str) -> None:
        """Open the empty directories and create topics."""
        self.open()
        for topic in topics:
            self.create(topic)

    def open(self) -> None:
        self.manager = open_manager(self.files)

    @property
    def logs(self) -> LogManager:
        assert self.manager is not None
        return self.manager

    def log(self, topic: str) -> Log:
        found = self.logs.get(topic, 0)
        assert found is not None
        return found

    def hosted(self) -> dict[str, Log]:
        """The logs of known topics, except those in offline directories."""
        found = {topic: self.logs.get(topic, 0) for topic in self.known}
        return {topic: log for topic, log in found.items() if log is not None}

    # --- topics

    def create(self, topic: str, topic_id: bytes = b"") -> None:
        self.known[topic] = Known(topic_id or topic[:1].encode() * 16)
        self.logs.get_or_create(topic, 0, self.known[topic].topic_id, CONFIG, NOW_MS)

    def delete(self, topic: str) -> None:
        self.known[topic].must_exist = False
        self.logs.delete(topic, 0, NOW_MS)
        self.logs.sync_deletions()()
        del self.known[topic]

    # --- records

    def append(self, topic: str, count: int = 1, epoch: int = 0) -> None:
        for _ in range(count):
            self.append_record(topic, epoch, PLAIN)

    def transaction(self, topic: str, count: int, *, commit: bool, epoch: int = 0) -> None:
        for _ in range(count):
            self.append_record(topic, epoch, TRANSACTIONAL)
        self.append_marker(topic, epoch, commit)

    def append_marker(self, topic: str, epoch: int, commit: bool) -> None:
        log = self.log(topic)
        self.known[topic].entries.append(Entry(None, epoch, TRANSACTIONAL, committed=commit))
        append_as_coordinator(log, marker(commit=commit, producer_id=TRANSACTIONAL), epoch)
        log.update_high_watermark(log.log_end_offset)

    def append_record(self, topic: str, epoch: int, producer_id: int) -> None:
        known, log = self.known[topic], self.log(topic)
        offset = log.log_end_offset
        sequence = next_sequence(log.producers, producer_id)
        entry = Entry(b"%s %d.%d " % (topic.encode(), len(known.histories), offset) * 4, epoch, producer_id, sequence)
        assert entry.value is not None
        known.entries.append(entry)
        append(
            log,
            entry.value,
            leader_epoch=epoch,
            timestamp=NOW_MS + offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=producer_id == TRANSACTIONAL,
        )
        log.update_high_watermark(log.log_end_offset)

    def flush(self, topic: str) -> None:
        log = self.log(topic)
        log.flush()
        self.known[topic].is_durable(log)

    # --- what removes records

    def delete_records(self, topic: str, offset: int) -> None:
        known = self.known[topic]
        known.start_max = max(known.start_max, offset)
        self.log(topic).increment_log_start_offset(offset)

    def retention(self, topic: str, keep_bytes: int = -1) -> None:
        """Remove segments by `retention.bytes` or the log start offset."""
        known, log = self.known[topic], self.log(topic)
        known.start_max = log.high_watermark
        log.update_config(dataclasses.replace(CONFIG, retention_bytes=keep_bytes))
        log.delete_old_segments(NOW_MS)
        log.update_config(CONFIG)
        known.start_max = log.log_start_offset

    def remove_deleted(self) -> None:
        for job in self.logs.deletions_due(FAR_FUTURE_MS):
            job()

    def truncate(self, topic: str, offset: int) -> None:
        known, log = self.known[topic], self.log(topic)
        known.flushed = min(known.flushed, offset)
        known.histories.append(known.entries[:offset])
        self._prepare_truncation(topic, offset)
        log.truncate_to(offset, now_ms=NOW_MS)

    def start_again(self, topic: str, offset: int) -> None:
        known, log = self.known[topic], self.log(topic)
        known.flushed, known.start_min, known.start_max = 0, 0, max(known.start_max, offset)
        known.histories.append([None] * offset)
        self._prepare_truncation(topic, offset)
        log.truncate_fully_and_start_at(offset, now_ms=NOW_MS)

    def _prepare_truncation(self, topic: str, offset: int) -> None:
        """As a follower does before it cuts: the recovery point is on disk first."""
        job = self.logs.prepare_truncation({TopicPartition(topic, 0): offset})
        affected = [self.log(topic).log_dir]
        self._may_be_written(names.RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point, affected)
        job()
        self._is_written(names.RECOVERY_POINT_CHECKPOINT, affected)

    # --- checkpoints and ends

    def checkpoint(self, *kinds: str) -> None:
        jobs = {
            names.RECOVERY_POINT_CHECKPOINT: self.logs.recovery_point_checkpoint,
            names.LOG_START_OFFSET_CHECKPOINT: self.logs.log_start_offset_checkpoint,
            names.HIGH_WATERMARK_CHECKPOINT: self.logs.high_watermark_checkpoint,
        }
        for kind in kinds or CHECKPOINTS:
            starts = {topic: log.log_start_offset for topic, log in self.hosted().items()}
            self._may_be_written(kind, recovery_point=lambda log: log.recovery_point)
            jobs[kind]()()
            self._is_written(kind)
            if kind == names.LOG_START_OFFSET_CHECKPOINT:
                self._starts_are_written(starts)

    def _may_be_written(self, kind: str, recovery_point: Callable[[Log], int], dirs: list[str] | None = None) -> None:
        for directory in dirs or list(self.logs.dirs.live):
            logs = self.logs.logs_in(directory)
            if kind == names.RECOVERY_POINT_CHECKPOINT:
                offsets = {partition: recovery_point(log) for partition, log in logs.items()}
            elif kind == names.HIGH_WATERMARK_CHECKPOINT:
                offsets = {partition: log.high_watermark for partition, log in logs.items()}
            else:
                starts = {
                    partition: (log.log_start_offset, log.segments()[0].base_offset) for partition, log in logs.items()
                }
                offsets = {partition: start for partition, (start, first) in starts.items() if start > first}
            self.checkpoints.setdefault((directory, kind), [{}]).append(offsets)

    def _starts_are_written(self, starts: Mapping[str, int]) -> None:
        for topic, start in starts.items():
            self.known[topic].start_min = start

    def _is_written(self, kind: str, dirs: list[str] | None = None) -> None:
        for directory in dirs or list(self.logs.dirs.live):
            del self.checkpoints[directory, kind][:-1]

    def shutdown(self) -> None:
        logs = self.hosted()
        for kind in CHECKPOINTS:
            self._may_be_written(kind, recovery_point=lambda log: log.log_end_offset)
        self.logs.shutdown()
        for kind in CHECKPOINTS:
            self._is_written(kind)
        for topic, log in logs.items():
            if log.log_dir not in self.logs.dirs.offline:
                self.known[topic].is_durable(log)
                self.known[topic].start_min = log.log_start_offset

    def restart(self) -> None:
        self.shutdown()
        self.open()

    def restart_killed(self) -> None:
        """The process is killed and starts again; the system keeps running."""
        self.files.locked.clear()
        self.files.open_count = 0
        self.open()


def next_sequence(producers: ProducerState, producer_id: int) -> int:
    found = producers.producers.get(producer_id)
    return 0 if found is None else found.last_sequence + 1


def open_manager(files: Files) -> LogManager:
    manager = LogManager(files, DIRS, LogSettings(verification_enabled=False), new_id=lambda: "id")
    manager.dirs.write_meta("cluster", 0)
    manager.load(lambda topic: CONFIG, NOW_MS)
    return manager


# --- the scenarios


def appends(load: Load) -> None:
    """Rolls, leader epochs, transactions; flushes and checkpoints in between."""
    load.start("t", "u")
    for number in range(6):
        load.append("t", 4, epoch=number // 2)
        if number % 2:
            load.flush("t")
        load.transaction("u", 2, commit=number % 3 == 0, epoch=number // 3)
        if number in (1, 4):
            load.flush("u")
        if number in (2, 4):
            load.checkpoint()
    load.shutdown()


def restarts(load: Load) -> None:
    """Clean stops and kills; what was recovered is flushed, as what was appended is."""
    load.start("t")
    load.append("t", 6)
    load.restart()
    load.append("t", 9, epoch=1)
    load.restart_killed()
    load.flush("t")
    load.checkpoint()
    load.append("t", 5, epoch=2)
    load.restart_killed()
    load.append("t", 3, epoch=2)
    load.flush("t")
    load.restart()


def retention(load: Load) -> None:
    """Segments are removed from the oldest on, and their files some time later."""
    load.start("t")
    load.append("t", 20)
    load.flush("t")
    load.checkpoint()
    load.retention("t", keep_bytes=1200)
    load.append("t", 4)
    load.flush("t")
    load.remove_deleted()
    load.checkpoint()
    load.append("t", 14, epoch=1)
    load.retention("t", keep_bytes=500)
    load.checkpoint(names.LOG_START_OFFSET_CHECKPOINT)
    load.remove_deleted()
    load.flush("t")
    load.retention("t", keep_bytes=0)
    load.append("t", 2, epoch=1)
    load.checkpoint()


def deleted_records(load: Load) -> None:
    """DeleteRecords: the log start moves at once, the checkpoint follows, then whole segments are removed."""
    load.start("t", "u")
    load.append("t", 14)
    load.transaction("u", 4, commit=False)
    load.flush("t")
    load.delete_records("t", 3)
    load.checkpoint()
    load.delete_records("t", 9)
    load.delete_records("u", 2)
    load.checkpoint(names.LOG_START_OFFSET_CHECKPOINT)
    load.retention("t")
    load.append("t", 3, epoch=1)
    load.flush("t")
    load.delete_records("t", 17)
    load.checkpoint(names.LOG_START_OFFSET_CHECKPOINT)
    load.restart_killed()
    load.append("t", 3, epoch=1)
    load.restart()
    load.append("t", 3, epoch=2)


def truncation(load: Load) -> None:
    """A follower cuts its log, continues with another history, and starts again at another offset."""
    load.start("t")
    load.append("t", 16)
    load.flush("t")
    load.checkpoint()
    load.append("t", 4, epoch=1)
    load.truncate("t", 18)
    load.append("t", 3, epoch=2)
    load.flush("t")
    load.truncate("t", 7)
    load.append("t", 4, epoch=3)
    load.flush("t")
    load.checkpoint()
    load.append("t", 7, epoch=3)
    load.checkpoint()
    load.remove_deleted()
    load.start_again("t", 30)
    load.append("t", 6, epoch=4)
    load.flush("t")
    load.checkpoint()
    load.start_again("t", 10)
    load.append("t", 5, epoch=5)
    load.shutdown()


def topics(load: Load) -> None:
    """Topics are created, deleted, and created again under the same name."""
    load.start("t", "u")
    load.append("t", 3)
    load.append("u", 3)
    load.flush("u")
    load.delete("t")
    load.create("t", topic_id=b"2" * 16)
    load.append("t", 8)
    load.delete("u")
    load.checkpoint()
    load.flush("t")
    load.remove_deleted()
    load.create("u", topic_id=b"3" * 16)
    load.append("u", 2)
    load.restart()
    load.delete("t")
    load.append("u", 2)


Scenario = Callable[[Load], None]
SCENARIOS: Mapping[str, Scenario] = {
    scenario.__name__: scenario for scenario in (appends, restarts, retention, deleted_records, truncation, topics)
}
