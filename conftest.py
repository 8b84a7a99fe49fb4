"""Options of every run, and how `tests/scopes.py` spreads the tests over the workers of pytest-xdist (`-n 5`)."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import scratch
from tests.scopes import CLIENTS, SPARK, in_order, scope_of

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background of a script ignores Ctrl-C, and so would the commands whose reaction to it is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)

ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""How a run ends that came to its end."""


os.environ["KPYBROKER_PROFILE"] = ""  # a developer's profile is none of the tests'


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="of tests/, what is quick: no other processes, no long searches"
    )
    parser.addoption(
        "--failed-to", metavar="FILE", help="write the ids of tests that fail, for `python -m tests.rerun`"
    )
    parser.addoption("--costs-to", metavar="FILE", help="write what each file of tests costs: see tests/costs.py")


class Failures:
    """Says what has failed when it does: the report of it comes when all have run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if report.failed and terminal is not None:
            lines = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
            terminal.write_line(" ".join((f"\nFAILED {report.nodeid}", *lines[:1])))


SCRATCH = pytest.StashKey[Path]()
"""The folder of this run's files."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Failures(config))
    if "TMPDIR" not in os.environ and scratch.has_room():
        config.stash[SCRATCH] = scratch.begin()
    if config.getoption("--quick"):
        from tests.quick import Quick

        config.pluginmanager.register(Quick(Path(__file__).parent / "tests"))
    file = config.getoption("--costs-to")
    if file is not None:
        from tests.costs import Measuring

        config.pluginmanager.register(Measuring(Path(file)))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write nothing for a run that did not come to its end: what it has not run may fail too."""
    file = session.config.getoption("--failed-to")
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if file is None or terminal is None or exitstatus not in ENDED:
        return
    if hasattr(session.config, "workerinput"):
        return
    failed = [report.nodeid for outcome in ("failed", "error") for report in terminal.stats.get(outcome, ())]
    Path(file).write_text("".join(f"{test_id}\n" for test_id in dict.fromkeys(failed)))


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, int, int]:
    """The run's files go with it, unless there is something to look at."""
    code = yield
    if SCRATCH in config.stash and not code and not config.getoption("--keep-files", False):
        shutil.rmtree(config.stash[SCRATCH], ignore_errors=True)
    return code


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected is never garbage: to look whether it is took a third of the time, and later each collection
    would look again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("compat_tests/") and "broker" in getattr(item, "fixturenames", ()):
            assert scope_of(item.nodeid) in (CLIENTS, SPARK), f"{item.nodeid}: its file is another worker's"
    positions = {nodeid: position for position, nodeid in enumerate(in_order([item.nodeid for item in items]))}
    items.sort(key=lambda item: positions[item.nodeid])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Spread(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False
    return Spread(config, log)
