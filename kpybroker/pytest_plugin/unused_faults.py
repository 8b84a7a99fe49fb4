"""Faults end with the test that made them, however it made them; one that never acted fails it.

A fault is the test's if it is made in the test or in a fixture of its own. What a fixture of a wider scope makes is
that fixture's: it ends with the fixture, and fails its teardown.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kpybroker.pytest_plugin.options import unused_faults

if TYPE_CHECKING:
    from types import ModuleType

    from kpybroker.testing import Fault


def _kit(config: pytest.Config) -> ModuleType | None:
    """The part of the test kit that knows the faults; None while no test has imported it."""
    kit = sys.modules.get("kpybroker.testing.checking.unused")
    if kit is not None:
        vars(kit)["policy"] = unused_faults(config)
    return kit


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """End the faults of the test when it has ended, before its fixtures do."""
    __tracebackhide__ = True
    _kit(item.config)
    try:
        result = yield
    except Exception as error:
        for problem in _ended(item.config):
            error.add_note(str(problem))
        raise
    _report(item.config, _ended(item.config))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """End what a setup that failed has made, and what fixtures make in their teardown."""
    _ended(item.config)
    try:
        return (yield)
    finally:
        _ended(item.config)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """What a fixture of a wider scope makes stays as long as that."""
    if fixturedef.scope == "function":
        return (yield)
    kit = _kit(request.config)
    before = 0 if kit is None else kit.count()
    result = yield
    kit = _kit(request.config)
    if kit is not None and kit.count() > before:
        fixturedef.addfinalizer(partial(_end, request.config, kit.taken(since=before)))
    return result


def _ended(config: pytest.Config) -> list[Any]:
    """End the faults that no wider fixture has; what is to be reported of them."""
    kit = _kit(config)
    return [] if kit is None or not kit.count() else list(kit.settle(kit.taken()))


def _end(config: pytest.Config, faults: list[Fault]) -> None:
    kit = _kit(config)
    if kit is not None:
        _report(config, kit.settle(faults))


def _report(config: pytest.Config, problems: list[Any]) -> None:
    __tracebackhide__ = True
    kit = _kit(config)
    if kit is None:
        return
    from kpybroker.testing import UnusedFault

    text = None
    try:
        kit.report(problems)
    except UnusedFault as error:
        text = str(error)
    if text is not None:
        pytest.fail(text, pytrace=False)
