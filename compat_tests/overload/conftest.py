"""Hostile input and overload: what kpybroker bears by its own design, so these are not run against real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.overload.victim import Victim


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--broker") == "kafka" else None


@pytest.fixture(scope="module")
def victim(launcher: Launcher) -> Iterator[Victim]:
    """One broker for a module, with somebody else's clients at work on it all the time."""
    started = Victim(launcher.broker(auto_create_topics_enable="false"))
    started.bystander.start()
    yield started
    started.close()
    started.broker.service.kill()
