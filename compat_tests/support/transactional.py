"""Transactional producers of stock clients, each a process that does what it is asked, and what they have committed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.deps import ROOT, go_transactional
from compat_tests.support import quick
from compat_tests.support.tools import program_command
from tests.support.programs.forks import asked

WORKERS = ROOT / "compat_tests" / "workers"
JAVA = {"java-3.9.1": "3.9.1", "java-4.3.1": "4.x"}
FRANZ = "franz"
"""It has no order `offsets`, but `copy`, in a transaction of its own."""
LIBRARIES = ("confluent", "kafka-python", "aiokafka", "java-3.9.1", "java-4.3.1", FRANZ)
OF_VERSION_2 = ("java-4.3.1", FRANZ)
"""Libraries whose transactions are of version 2 where the broker has them."""


def parameters(libraries: Iterable[str], wide: Iterable[str] = ()) -> list[Any]:
    """Of tests: franz-go is brought for wide ones alone, and so are those in `wide`."""
    left_out = {FRANZ, *wide}
    return [pytest.param(library, marks=pytest.mark.wide) if library in left_out else library for library in libraries]


class Failed(Exception):
    """What the client library said."""


class Transactional:
    """One transactional producer: a process that does one thing at a time. `settings` are those of a Java client."""

    def __init__(
        self, library: str, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000, **settings: str
    ) -> None:
        spec = json.dumps(
            {
                "bootstrap": bootstrap,
                "transactional_id": transactional_id,
                "timeout_ms": timeout_ms,
                "settings": {name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        command = _command(library, spec)
        self._process = asked(command, os.environ, subprocess.DEVNULL)

    def do(self, *order: Any) -> None:
        """Raises Failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the client ended at {order}"
        error = json.loads(line).get("error")
        if error is not None:
            raise Failed(error)

    def transact(self, topic: str, *values: str, commit: bool = True, partition: int = 0) -> None:
        self.do("begin")
        self.do("produce", topic, partition, values)
        self.do("commit" if commit else "abort")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _command(library: str, spec: str) -> list[str]:
    if library in JAVA:
        return [*program_command(JAVA[library], WORKERS / "TransactionalClient.java"), spec]
    if library == FRANZ:
        program = go_transactional()
        assert program.exists(), f"{program} is not built: python -m compat_tests.deps clients"
        return [str(program), spec]
    return [sys.executable, str(WORKERS / "transactional_client.py"), library, spec]


def visible(bootstrap: str, topic: str, partition: int = 0, group: str = "none") -> list[str]:
    """Everything that a read_committed reader gets now, from the start of a partition to its last stable offset."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[str] = []
    try:
        while True:
            message = consumer.poll(quick.DEADLINE_S)
            assert message is not None, f"no end of {topic}-{partition} within {quick.DEADLINE_S} s"
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return values
            values.append(message.value().decode())
    finally:
        consumer.close()
