"""Several brokers as processes of one supervisor, started from the command line; none outlives its test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from compat_tests.support.services import kpybroker_executable, write_properties
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_ports_in_a_row

DEADLINE_S = 180.0

StartProcesses = Callable[..., "Processes"]


class Processes:
    """What runs after `kpybroker <arguments> --log-format json`."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_file = directory / "log"
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [str(kpybroker_executable()), *arguments, "--log-format", "json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.pids: dict[int, int] = {}
        self.ready: dict[str, Any] = {}

    def wait_until_ready(self) -> None:
        """Read the ready line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log()
        self.ready = json.loads(line)
        self.pids = {one["nodeId"]: one["pid"] for one in self.ready["brokers"] if "pid" in one}

    @property
    def bootstrap(self) -> str:
        """All brokers."""
        return str(self.ready["bootstrapServers"])

    @property
    def pid(self) -> int:
        """The supervisor's."""
        return self._process.pid

    def log(self) -> str:
        """What they have logged since this start."""
        return self.log_file.read_bytes()[self._log_start :].decode()

    def lines(self) -> list[dict[str, Any]]:
        """The log as objects."""
        return [json.loads(line) for line in self.log().splitlines()]

    def messages(self) -> list[str]:
        return [line["message"] for line in self.lines()]

    def kill(self, broker_id: int) -> None:
        """SIGKILL to a broker; returns when it is ready again."""
        before = self.messages().count(f"Broker {broker_id} is ready again")
        os.kill(self.pids.pop(broker_id), signal.SIGKILL)
        eventually(
            lambda: self.messages().count(f"Broker {broker_id} is ready again") > before,
            f"broker {broker_id} ready again",
            DEADLINE_S,
        )

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Until the supervisor has ended; its exit code."""
        return self._process.wait(DEADLINE_S)

    def rest_of_output(self) -> bytes:
        """Of an ended supervisor: what it has printed after the ready line."""
        assert self._process.stdout is not None
        return self._process.stdout.read()

    def stop(self) -> None:
        """SIGTERM, and an end in order."""
        self.signal(signal.SIGTERM)
        assert self.wait() == 0, self.log()

    def running(self) -> list[int]:
        """The brokers of the ready line whose first processes are still there."""
        return [broker_id for broker_id, pid in self.pids.items() if is_running(pid)]

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        eventually(lambda: not self.running(), "the end of the brokers", DEADLINE_S)


def is_running(pid: int) -> bool:
    """Whether there is such a process, zombies left out: that of a container may reap no one."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartProcesses]:
    """`start("dev", "--brokers", "2", ...)`: running processes, ready unless `ready=False`."""
    started: list[Processes] = []

    def run(*arguments: str, ready: bool = True) -> Processes:
        made = Processes(tmp_path / "run", *arguments)
        started.append(made)
        if ready:
            made.wait_until_ready()
        return made

    yield run
    for one in started:
        with suppress(ProcessLookupError):
            one.close()


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """A server.properties for one broker, whose next port is free too."""
    path = tmp_path / "server.properties"
    write_properties(
        path,
        {
            "broker.id": "4",
            "listeners": f"PLAINTEXT://127.0.0.1:{free_ports_in_a_row(2)}",
            "log.dirs": str(tmp_path / "data"),
            "offsets.topic.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
        },
    )
    return path
