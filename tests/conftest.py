"""Shared test plumbing: `async def` tests run under trio.

A test that takes the `autojump_clock` fixture runs on trio's mock clock, so that waiting costs no time.
"""

from __future__ import annotations

import inspect
import math
import os
from typing import Any

import hypothesis
import pytest
import trio
import trio.testing

TEST_SECONDS_MAX = 120

# In CI the same examples every time, so that a change is judged by what it changed; elsewhere the search goes on.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("durability")
    group.addoption("--whole", action="store_true", help="every crash, failure and damage, not a slice of them")
    group.addoption("--seed", type=int, default=0, help="chooses the slice, and what a crash leaves")


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """A mock clock that jumps to the next deadline as soon as every task is blocked."""
    return trio.testing.MockClock(autojump_threshold=0)


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
