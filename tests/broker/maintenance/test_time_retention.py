"""Time removes what is old, and no record of now, whatever headers say; with a broker, and the process that reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.maintenance import time_retention
from kpybroker.broker.maintenance.time_retention import delete_by_read_timestamps
from kpybroker.storage.cleaning.process import IO_ERROR, OTHER, Event, Failed
from kpybroker.storage.cleaning.timestamps import Timestamps
from kpybroker.storage.log.log import Log
from tests.support.brokers.running_broker import create_topic, running_broker
from tests.support.storage.batches import append_batch, batch, claiming

DAY_MS = 24 * 3600 * 1000
KEPT_MS = 3600 * 1000
END_WITHIN_S = 60


async def misled(broker: Broker, topic: str, timestamp: int, claimed: int) -> Log:
    """Four segments whose batches claim a largest timestamp that is not their record's, as an older file may have."""
    await create_topic(broker, topic, segment_bytes="80", retention_ms=str(KEPT_MS))
    log = broker.logs.get(topic, 0)
    assert log is not None
    for _ in range(4):
        append_batch(log, claiming(batch(b"v", timestamp=timestamp), max_timestamp=claimed), now_ms=timestamp)
    log.update_high_watermark(4)
    return log


async def until(condition: Callable[[], object]) -> None:
    """Polls, because another process may be what changes the condition."""
    with trio.fail_after(END_WITHIN_S):
        while True:
            if condition():
                return
            await trio.sleep(0.05)


def now_ms() -> int:
    return int(time.time() * 1000)


class FakeProcess:
    """A cleaner's process that responds to its jobs with these events, after the logs of `truncated` are cut."""

    def __init__(self, events: Sequence[Event | None], truncated: list[Log] | None = None) -> None:
        self.events = list(events)
        self.jobs = 0
        self.is_closed = False
        self.is_idle = True
        self._truncated = truncated or []

    async def start(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send(self, line: bytes) -> None:
        self.jobs += 1

    async def receive(self) -> Event | None:
        await trio.lowlevel.checkpoint()
        for log in self._truncated:
            log.truncate_to(3, now_ms=now_ms())
        event = self.events.pop(0) if self.events else None
        self.is_idle = event is not None
        return event

    async def close(self) -> None:
        self.is_closed = True


async def test_records_of_now_stay_and_those_of_yesterday_go(tmp_path: Path) -> None:
    now = now_ms()
    async with running_broker(tmp_path) as broker:
        young = [await misled(broker, f"young{n}", now, claimed) for n, claimed in enumerate((0, 1000, -1))]
        old = [await misled(broker, f"old{n}", now - DAY_MS, claimed) for n, claimed in enumerate((now - DAY_MS, -1))]
        for _ in broker.logs.cleanup_logs(now):
            pass
        assert {log.log_start_offset for log in (*young, *old)} == {0}
        await delete_by_read_timestamps(broker, broker.logs)
        assert [log.log_start_offset for log in young] == [0, 0, 0]
        assert [log.log_start_offset for log in old] == [4, 4]
        assert {log.segments()[0].max_timestamp for log in young} == {now}


async def test_the_periodic_retention_does_it(tmp_path: Path) -> None:
    now = now_ms()
    async with running_broker(tmp_path, log_retention_check_interval_ms="100") as broker:
        young = await misled(broker, "young", now, 0)
        old = await misled(broker, "old", now - DAY_MS, -1)
        await until(lambda: old.log_start_offset == 4 and young.segments()[0].walked_bytes > 0)
        assert young.log_start_offset == 0


async def test_nothing_is_started_where_nothing_has_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = FakeProcess([])
    monkeypatch.setattr(time_retention, "CleanerProcess", lambda: process)
    async with running_broker(tmp_path) as broker:
        await misled(broker, "right", now_ms(), now_ms())
        await delete_by_read_timestamps(broker, broker.logs)
        assert process.jobs == 0


@pytest.mark.parametrize("event", [None, Failed(OTHER, "unforeseen", "")])
async def test_a_failed_reading_removes_nothing_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: Event | None
) -> None:
    async with running_broker(tmp_path) as broker:
        log = await misled(broker, "t", now_ms() - DAY_MS, -1)
        process = FakeProcess([event])
        monkeypatch.setattr(time_retention, "CleanerProcess", lambda: process)
        await delete_by_read_timestamps(broker, [log])
        assert (log.log_start_offset, process.jobs, process.is_closed) == (0, 1, True)
        monkeypatch.undo()
        await delete_by_read_timestamps(broker, [log])
        assert log.log_start_offset == 4


async def test_a_segment_that_ends_the_process_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path) as broker:
        logs = [await misled(broker, topic, now_ms() - DAY_MS, -1) for topic in ("deadly", "harmless")]
        processes = [FakeProcess([None]), FakeProcess([Timestamps(now_ms(), 0, True)])]
        left = iter(processes)
        monkeypatch.setattr(time_retention, "CleanerProcess", lambda: next(left))
        await delete_by_read_timestamps(broker, logs)
        assert [(process.jobs, process.is_closed) for process in processes] == [(1, True), (1, True)]
        assert [log.segments()[0].walked_bytes > 0 for log in logs] == [False, True]


async def test_a_disk_that_fails_takes_the_directory_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path) as broker:
        log = await misled(broker, "t", now_ms() - DAY_MS, -1)
        failed: list[str] = []
        monkeypatch.setattr(broker, "log_dir_failed", lambda error: failed.append(error.log_dir))
        monkeypatch.setattr(time_retention, "CleanerProcess", lambda: FakeProcess([Failed(IO_ERROR, "broken", "")]))
        await delete_by_read_timestamps(broker, [log])
        assert failed == [log.log_dir]


async def test_what_was_read_of_a_log_that_was_cut_since_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path) as broker:
        log = await misled(broker, "t", now_ms() - DAY_MS, -1)
        process = FakeProcess([Timestamps(7, 0, True)], [log])
        monkeypatch.setattr(time_retention, "CleanerProcess", lambda: process)
        await delete_by_read_timestamps(broker, [log])
        assert (log.log_start_offset, log.segments()[0].walked_bytes) == (0, 0)


async def test_a_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path) as broker:
        log = await misled(broker, "t", now_ms() - DAY_MS, -1)
        process = FakeProcess([Timestamps(7, 0, True)] * 9)
        monkeypatch.setattr(time_retention, "CleanerProcess", lambda: process)
        monkeypatch.setattr(time_retention, "RUN_S_MAX", 0.0)
        await delete_by_read_timestamps(broker, [log])
        assert process.jobs == 0


async def test_a_log_that_is_being_cleaned_is_left_alone(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        log = await misled(broker, "t", now_ms() - DAY_MS, -1)
        log.cleaning = lambda: None
        await delete_by_read_timestamps(broker, [log])
        assert log.log_start_offset == 0
        log.cleaning = None
        await delete_by_read_timestamps(broker, [log])
        assert log.log_start_offset == 4
