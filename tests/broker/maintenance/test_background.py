"""Supervision of background tasks, and flushes after a roll, on a host without a `Broker`."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.lifecycle.errors import EXIT_STORAGE
from kpybroker.broker.maintenance import roll_flusher
from kpybroker.broker.maintenance.background import RESTART_DELAY_S, supervised
from kpybroker.broker.maintenance.roll_flusher import RollFlusher
from kpybroker.core.tree import TreeClosed
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.system.files import HAS_POSIX_FILES
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.host import fake_host
from tests.support.brokers.running_broker import running_broker
from tests.support.storage.batches import append


class Flushed:
    """A partition that records how far it was flushed, or fails."""

    def __init__(self, base_offset: int, failure: Exception | None = None) -> None:
        self.log: Any = SimpleNamespace(active_segment=SimpleNamespace(base_offset=base_offset))
        self.flushed: list[int] = []
        self._failure = failure

    async def flush(self, offset: int) -> None:
        await trio.lowlevel.checkpoint()
        if self._failure is not None:
            raise self._failure
        self.flushed.append(offset)


async def test_a_task_that_fails_is_restarted_and_one_that_returns_is_not(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[Exception] = [LogDirError("/d", "it failed"), LookupError("unforeseen")]
    started: list[float] = []

    async def task() -> None:
        started.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if failures:
            raise failures.pop(0)

    async with fake_host(tmp_path) as host:
        first = trio.current_time()
        await supervised(host, "a-task", task)
        assert [at - first for at in started] == pytest.approx([0, RESTART_DELAY_S, 2 * RESTART_DELAY_S])
        assert [error.log_dir for error in host.failed_dirs] == ["/d"]
    assert [r.message for r in caplog.records if r.levelno == logging.ERROR] == [
        "[KafkaServer id=0] Background task a-task failed and is restarted"
    ]


async def test_a_task_that_finds_the_tree_closed_ends_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker stops: for example with changes of the configuration that it has not read yet."""

    async def task() -> None:
        await trio.lowlevel.checkpoint()
        raise TreeClosed

    async with fake_host(tmp_path) as host:
        await supervised(host, "a-task", task)
    assert not caplog.records


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be removed there")
@pytest.mark.parametrize("directory", ["t-0", "."])
async def test_a_broker_whose_data_is_taken_away_stops_and_says_what_is_lost(
    tmp_path: Path, directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path / "data", topics=["t", "u"]) as broker:
        log = broker.logs.get("t", 0)
        assert log is not None
        append(log, b"x")
        shutil.rmtree(tmp_path / "data" / directory)
        append(log, b"y")
        with trio.fail_after(60):
            await broker.wait_stop_requested()
        assert broker.fatal is not None
        assert broker.fatal.exit_code == EXIT_STORAGE
    assert "of the records of t-0 below offset 2 some are lost" in caplog.text
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()


async def test_rolled_logs_are_flushed_up_to_the_active_segment_whatever_happens_to_another(tmp_path: Path) -> None:
    broken, full = Flushed(1, LogDirError("/d", "it failed")), Flushed(2, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    offline, sound = Flushed(3), Flushed(4)
    offline.log = None
    async with fake_host(tmp_path) as host:
        flusher = RollFlusher(host)
        host.spawn("flusher", flusher.run)
        partitions: list[Any] = [broken, full, offline, sound, sound]
        for partition in partitions:
            flusher.flush_soon(partition)
        await trio.testing.wait_all_tasks_blocked()
        assert sound.flushed == [4]
        assert [error.log_dir for error in host.failed_dirs] == ["/d"]
        flusher.flush_soon(partitions[3])
        await trio.testing.wait_all_tasks_blocked()
        assert sound.flushed == [4, 4]


async def test_pending_flushes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roll_flusher, "PENDING_MAX", 2)
    partitions: list[Any] = [Flushed(number) for number in range(3)]
    async with fake_host(tmp_path) as host:
        flusher = RollFlusher(host)
        for partition in partitions:
            flusher.flush_soon(partition)
        host.spawn("flusher", flusher.run)
        await trio.testing.wait_all_tasks_blocked()
    assert [partition.flushed for partition in partitions] == [[0], [1], []]
