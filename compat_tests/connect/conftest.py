"""Workers, a database, and what they are given.

Most of these tests are minutes of JVMs: they run in `make field`, `make compat` and `make compat-kafka`, or with
--all-versions. One standalone worker is in `make test`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.connect.plugins import make_plugin_path
from compat_tests.connect.workers import Place, Worker
from compat_tests.support.machine.postgres import Postgres
from compat_tests.support.services import started

QUICK = "test_standalone.py"

MakeWorkers = Callable[..., list[Worker]]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_quick = collection_path.is_dir() or collection_path.name == QUICK
    return None if is_quick or config.getoption("--all-versions") else True


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with started(Postgres()) as server:
        yield server


@pytest.fixture(scope="session")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The setting of a worker that finds all plugins."""
    return make_plugin_path(tmp_path_factory.mktemp("connect") / "plugins")


@pytest.fixture
def make_workers(plugins: dict[str, str], tmp_path: Path) -> Iterator[MakeWorkers]:
    """Starts a group of distributed workers: `make_workers(bootstrap, count=1)`; they are killed at the end."""
    made: list[Worker] = []

    def make(bootstrap: str, count: int = 1) -> list[Worker]:
        for number in range(count):
            made.append(Worker(f"worker-{number}", Place(bootstrap, tmp_path), plugins))
            made[-1].start()
        return made

    yield make
    for worker in made:
        worker.service.kill()
