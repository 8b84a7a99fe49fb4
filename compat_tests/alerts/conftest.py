"""The alerts and the dashboard of docs/deploy are for kpybroker's metrics, so real Kafka is not asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.support.services import Broker

MakeMeasured = Callable[..., Broker]
_numbers = itertools.count()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--broker") == "kafka" else None


@pytest.fixture(scope="module")
def measured(launcher: Launcher) -> Iterator[MakeMeasured]:
    """Starts brokers that serve /metrics on a free port: `measured(zookeeper=None, some_key="value")`."""
    made: list[Broker] = []

    def start(zookeeper: str | None = None, **overrides: str) -> Broker:
        keys = {key.replace("_", "."): value for key, value in overrides.items()}
        directory = launcher.directory / f"measured-{next(_numbers)}"
        made.append(Broker("kpybroker", directory, zookeeper, {"kpybroker.metrics.port": "0", **keys}))
        made[-1].start()
        return made[-1]

    yield start
    for broker in made:
        broker.service.kill()
