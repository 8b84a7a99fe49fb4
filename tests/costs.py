"""A pytest plugin that measures what each file of tests costs, for `--costs-to=FILE`.

A line a file: processor seconds, seconds, file; the most expensive first. Processor time is that of the worker and of
all processes below it (brokers, JVMs, Spark), read where one file ends and the next begins. "(collection)" is what it
costs the workers to start, to import and to collect; "(controller)" is the process that hands the tests out.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from pathlib import Path

import psutil
import pytest

from tests.scopes import file_of

Costs = Mapping[str, tuple[float, float]]
"""By file: processor seconds and seconds."""


def cpu_seconds() -> float:
    """Processor time of this process, of those that it started and of those that they started.

    One that has ended counts if its parent waited for it. One whose parent has ended is below this process no longer.
    """
    this, total = psutil.Process(), 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            spent = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system + getattr(spent, "children_user", 0) + getattr(spent, "children_system", 0)
    return total


class Measuring:
    """Of a run with workers each measures its own and sends it; the controller adds up and writes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._costs: dict[str, tuple[float, float]] = {}
        self._before = (0.0, time.monotonic())

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        result = yield
        if not _is_controller(session):
            self._count("(collection)")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
        result = yield
        if nextitem is None or file_of(nextitem.nodeid) != file_of(item.nodeid):
            self._count(file_of(item.nodeid))
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["costs"] = self._costs
            return
        if _is_controller(session):
            own = psutil.Process().cpu_times()
            self._costs["(controller)"] = own.user + own.system, time.monotonic() - self._before[1]
        most_first = sorted(self._costs.items(), key=lambda cost: cost[1], reverse=True)
        self._file.write_text("".join(f"{cpu:.2f} {wall:.2f} {file}\n" for file, (cpu, wall) in most_first))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self._add(getattr(node, "workeroutput", {}).get("costs", {}))

    def _count(self, file: str) -> None:
        cpu, now = cpu_seconds(), time.monotonic()
        self._add({file: (cpu - self._before[0], now - self._before[1])})
        self._before = cpu, now

    def _add(self, costs: Costs) -> None:
        for file, (cpu, wall) in costs.items():
            cpu_before, wall_before = self._costs.get(file, (0.0, 0.0))
            self._costs[file] = cpu_before + cpu, wall_before + wall


def _is_controller(session: pytest.Session) -> bool:
    return bool(session.config.getoption("numprocesses", None))
