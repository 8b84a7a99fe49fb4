"""Shared test plumbing: `async def` tests run under trio.

A test that takes the `autojump_clock` fixture runs on trio's mock clock, so that waiting costs no time.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import trio
import trio.testing

from kpybroker.system import IS_PORTABLE
from tests.support.windows.rules import enforce

if IS_PORTABLE:
    enforce()

TEST_SECONDS_MAX = 120

# How long an example takes is the machine's affair: hypothesis would fail one that was kept waiting for 200 ms.
UNTIMED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
# The same examples every time, so that a change is judged by what it changed. They have all passed, so there are few:
# `make search` tries others, and more of them.
hypothesis.settings.register_profile("same", UNTIMED, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("search", UNTIMED)
hypothesis.settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("durability")
    group.addoption("--whole", action="store_true", help="every crash, failure and damage, not a slice of them")
    group.addoption("--seed", type=int, default=0, help="chooses the slice, and what a crash leaves")


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "linux" and not config.getoption("--quick"):
        from tests.support.programs.forks import fork_children_of_testing

        fork_children_of_testing()


@pytest.fixture(autouse=True)
def own_secrets() -> Iterator[None]:
    """What was a secret in one test is an ordinary word in the next, which runs in the same process."""
    name = "kpybroker.client.connect.errors"
    kept = set(sys.modules[name]._secrets) if name in sys.modules else set()
    yield
    if name in sys.modules:
        sys.modules[name]._secrets.clear()
        sys.modules[name]._secrets.update(kept)


@pytest.fixture
def autojump_clock(monkeypatch: pytest.MonkeyPatch) -> trio.testing.MockClock:
    """A mock clock that jumps to the next deadline as soon as every task is blocked and no thread works for one.

    To trio a task that waits for a thread is blocked like any other, so mock time would run on, for minutes maybe, in
    the moment that the machine takes to write a file.
    """
    clock = trio.testing.MockClock(autojump_threshold=0)
    run_sync, working = trio.to_thread.run_sync, 0

    async def timeless_run_sync(*args: Any, **options: Any) -> Any:
        nonlocal working
        working += 1
        clock.autojump_threshold = math.inf
        try:
            return await run_sync(*args, **options)
        finally:
            working -= 1
            clock.autojump_threshold = math.inf if working else 0

    monkeypatch.setattr(trio.to_thread, "run_sync", timeless_run_sync)
    return clock


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in wanted}
    clock = next((value for value in arguments.values() if isinstance(value, trio.testing.MockClock)), None)

    async def run() -> None:
        # Mock time runs as far as it likes; real time may not.
        with trio.move_on_after(TEST_SECONDS_MAX if clock is None else math.inf) as scope:
            await pyfuncitem.obj(**arguments)
        if scope.cancelled_caught:
            raise trio.TooSlowError

    trio.run(run, clock=clock)
    return True
