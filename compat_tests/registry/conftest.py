"""Registries as processes, of any broker."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from compat_tests.conftest import Launcher
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from tests.support.programs.forks import COMMANDS, piped

START_WORDS = ["kpybroker", "registry", "ready"]


class Instance:
    """`kpybroker registry` that is ready at `url`."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self._log = log.open("ab")
        self.log = log
        self.process = piped(["registry", "--port", "0", *arguments], COMMANDS, self._log.fileno())
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


REFERENCE = os.environ.get("KPYBROKER_TEST_REGISTRY_REFERENCE")
"""Starts Confluent's registry with a bootstrap address, a port, and lines of its properties."""


class Reference:
    """Confluent's registry that responds at `url`."""

    def __init__(self, bootstrap: str, *properties: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [*shlex.split(REFERENCE or ""), bootstrap, str(port), *properties]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            eventually(self._responds, "the reference has started")
        except BaseException:
            self.kill()
            raise

    def _responds(self) -> bool:
        try:
            return httpx.get(f"{self.url}/subjects").status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """As a machine that fails."""
        self._process.kill()
        self._process.wait()


MakeReference = Callable[..., Reference]


@pytest.fixture
def reference(kafka: Broker, name: str) -> Iterator[MakeReference]:
    """Starts Confluent's registry on the topic and in the group of `start`."""
    if REFERENCE is None:
        pytest.skip("KPYBROKER_TEST_REGISTRY_REFERENCE starts Confluent's registry")
    started: list[Reference] = []

    def make() -> Reference:
        topic = f"kafkastore.topic=_schemas-{name}"
        started.append(Reference(kafka.bootstrap, topic, f"schema.registry.group.id=registry-{name}"))
        return started[-1]

    yield make
    for one in started:
        one.kill()
