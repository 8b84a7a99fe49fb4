"""When reports are made, and what is logged: with a clock that moves by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.metrics.reporters.periodic import Periodic, ReportError
from tests.support.brokers.host import FakeHost, fake_host

INTERVAL_S = 10.0


class Reports:
    """`outcomes`: what each report does, in order: None arrives, a text is why it fails. Then the test's end is set."""

    def __init__(self, outcomes: Iterable[str | None], takes_s: float = 0) -> None:
        self._outcomes = list(outcomes)
        self._takes_s = takes_s
        self._began = trio.current_time()
        self.times: list[float] = []
        self.ended = trio.Event()

    async def report(self) -> None:
        self.times.append(trio.current_time() - self._began)
        await trio.sleep(self._takes_s)
        outcome = self._outcomes.pop(0)
        if not self._outcomes:
            self.ended.set()
        if outcome is not None:
            raise ReportError(outcome)


async def times_of(host: FakeHost, make: Callable[[], Reports]) -> list[float]:
    """Seconds since the start at which reports began."""
    reports = make()
    periodic = Periodic(host, INTERVAL_S, reports.report, "a server at h:1", "start it")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(periodic.run)
        await reports.ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return reports.times


async def test_reports_are_made_at_a_fixed_rate(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with fake_host(tmp_path) as host:
        assert await times_of(host, lambda: Reports([None] * 3, takes_s=2)) == [10, 20, 30]


async def test_reports_that_a_slow_one_leaves_no_time_for_are_left_out(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with fake_host(tmp_path) as host:
        assert await times_of(host, lambda: Reports([None] * 3, takes_s=25)) == [10, 40, 70]


async def test_retries_are_further_apart_each_time_and_the_rate_is_kept_afterwards(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with fake_host(tmp_path) as host:
        times = await times_of(host, lambda: Reports([*["refused"] * 8, None, None]))
    assert times == [10, 11, 13, 17, 25, 41, 71, 101, 131, 141]


async def test_one_line_when_it_breaks_and_one_when_it_works_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafka.server.KafkaServer")
    async with fake_host(tmp_path) as host:
        await times_of(host, lambda: Reports([None, "refused", "timed out", "refused", None, None, "gone"]))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "[KafkaServer id=0] Metrics go to a server at h:1 every 10 s"),
        (
            "WARNING",
            "[KafkaServer id=0] Metrics do not arrive at a server at h:1: refused. It is tried again; to fix: start it",
        ),
        ("INFO", "[KafkaServer id=0] Metrics arrive at a server at h:1 again, after 7 s"),
        (
            "WARNING",
            "[KafkaServer id=0] Metrics do not arrive at a server at h:1: gone. It is tried again; to fix: start it",
        ),
    ]
