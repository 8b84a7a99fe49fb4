"""Registries as processes, of any broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.support.services import Broker

START_WORDS = ["kpybroker", "registry", "ready"]


class Instance:
    """`kpybroker registry` that is ready at `url`."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self._log = log.open("ab")
        self.log = log
        command = [sys.executable, "-m", "kpybroker", "registry", "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().split()
        assert ready[:3] == START_WORDS, log.read_text()
        self.url = ready[-1].rstrip("/")

    def kill(self) -> None:
        """As a machine that fails."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """In order; the exit code."""
        self.process.terminate()
        return self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


MakeRegistry = Callable[..., Instance]


@pytest.fixture(scope="module")
def kafka(launcher: Launcher) -> Iterator[Broker]:
    """A broker that a file's tests share."""
    started = launcher.broker(group_initial_rebalance_delay_ms="0")
    yield started
    started.service.kill()


@pytest.fixture
def start(kafka: Broker, name: str, tmp_path: Path) -> Iterator[MakeRegistry]:
    """Starts instances of one registry of this test's own; they are killed at the end."""
    started: list[Instance] = []

    def make(*arguments: str) -> Instance:
        own = ["-b", kafka.bootstrap, "--topic", f"_schemas-{name}", "--group", f"registry-{name}", "--timeout", "120"]
        started.append(Instance(*own, *arguments, log=tmp_path / f"registry-{len(started)}.log"))
        return started[-1]

    yield make
    for one in started:
        one.close()


@pytest.fixture
def registry(start: MakeRegistry) -> str:
    """The address of a registry."""
    return start().url
