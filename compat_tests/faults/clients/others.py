"""`--others`: clients of more libraries in the storm, each a process that says in JSON lines what it received.

Python's are `workers/storm_client.py`, Go's `go_clients/`. A producer is idempotent; who writes transactions says how
each ended; a group is two members that read what is committed, and must get all of it. kafkajs and kafka-go are not
among them: by its source kafkajs 2.2.4 sends to one broker again what another one has refused, and readers of kafka-go
0.4.51 show what was aborted, and markers too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from compat_tests.faults.clients.readers import wait_for_reader
from compat_tests.faults.clients.writers import END_DEADLINE_S, Task
from compat_tests.faults.history import (
    Acknowledged,
    History,
    Outcome,
    Partition,
    Read,
    Reader,
    Record,
    Transaction,
    record_of,
)

FAULTS = Path(__file__).parents[1]
PYTHON_CLIENT = FAULTS.parent / "workers" / "storm_client.py"
GO_CLIENTS = FAULTS / "go_clients"
GO = ("franz", "sarama")

PRODUCERS = ("aiokafka", "kafka-python", "franz", "sarama")
TRANSACTIONS = ("aiokafka-txn", "franz-txn", "sarama-txn")
GROUPS = ("aiokafka-group", "kafka-python-group", "franz-group", "sarama-group")
ROLES = (*PRODUCERS, *TRANSACTIONS, *GROUPS)
RATES = {**dict.fromkeys(PRODUCERS, 20), **dict.fromkeys(TRANSACTIONS, 5), **dict.fromkeys(GROUPS, 1)}
MEMBERS = 2


class Other(Task):
    """One process. `count` is of records that it reported."""

    def __init__(self, name: str, command: Sequence[str], history: History, topic: str, errors: Path) -> None:
        super().__init__(name, history)
        self.count = 0
        self._topic = topic
        self._ended = False
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def work(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._take(json.loads(line))
        if not self._ended:
            self.history.failures.append(f"{self.name} ended by itself: see its .log")

    def _take(self, said: dict[str, Any]) -> None:
        match said["event"]:
            case "acknowledged":
                record = Record(self.name, said["number"])
                ack = Acknowledged(record, said["offset"], 0, time.monotonic_ns())
                self.history.acknowledged[self._topic, said["partition"]].append(ack)
            case "refused":
                self.history.refused[Record(self.name, said["number"])] = said["why"]
                return
            case "ended":
                records = [((self._topic, place), Record(self.name, number)) for place, number in said["records"]]
                self.history.transactions.append(Transaction(Outcome[said["outcome"].upper()], tuple(records)))
        self.count += 1

    def stop(self) -> None:
        self._ended = True
        self._process.terminate()
        try:
            self._process.wait(END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.history.failures.append(f"{self.name} does not end")
        self.kill()
        super().stop()

    def kill(self) -> None:
        self._ended = True
        self._process.kill()
        self._process.wait()


class Member(Other):
    """One of a group, whose reader it shares with the others."""

    def __init__(self, reader: Reader, command: Sequence[str], history: History, topic: str, errors: Path) -> None:
        super().__init__(reader.name, command, history, topic, errors)
        self.reader = reader

    def _take(self, said: dict[str, Any]) -> None:
        assert said["event"] == "read"
        read = Read(said["offset"], record_of(said["record"]))
        self.reader.reads[self._topic, said["partition"]].append(read)
        self.count += 1


class Others:
    """All that were asked for, on the partitions of one topic."""

    def __init__(
        self, roles: Iterable[str], history: History, bootstrap: str, partitions: Sequence[Partition], directory: Path
    ) -> None:
        self._history, self._bootstrap, self._partitions = history, bootstrap, partitions
        self._directory = directory
        self._go = directory / "go_clients"
        roles = list(roles)
        if any(role.startswith(GO) for role in roles):
            if shutil.which("go") is None:
                raise SystemExit("go is missing: install Go 1.26 or newer, or leave franz and sarama out")
            subprocess.run(["go", "build", "-o", str(self._go), "."], cwd=GO_CLIENTS, check=True)
        self.writers = [self._writer(role) for role in roles if role not in GROUPS]
        self.groups = {role: self._group(role) for role in roles if role in GROUPS}

    @property
    def members(self) -> list[Member]:
        return [member for members in self.groups.values() for member in members]

    def start(self) -> None:
        for task in (*self.writers, *self.members):
            task.start()

    def counts(self) -> dict[str, int]:
        counts = {writer.name: writer.count for writer in self.writers}
        return counts | {role: sum(member.count for member in members) for role, members in self.groups.items()}

    def wait_for_groups(self, committed: dict[Partition, set[int]], within_s: float) -> None:
        """Until each has read all offsets that are committed."""
        for members in self.groups.values():
            wait_for_reader(members[0].reader, committed, within_s)

    def kill(self) -> None:
        for task in (*self.writers, *self.members):
            task.kill()

    def _command(self, role: str) -> list[str]:
        program = [str(self._go)] if role.startswith(GO) else [sys.executable, str(PYTHON_CLIENT)]
        topic = self._partitions[0][0]
        return [*program, role, self._bootstrap, topic, str(len(self._partitions)), str(RATES[role])]

    def _writer(self, role: str) -> Other:
        name = role.replace("-", "_")  # a record's value ends with dashes
        self._history.idempotent.add(name)
        return Other(name, self._command(role), self._history, self._partitions[0][0], self._log(role))

    def _group(self, role: str) -> list[Member]:
        reader = Reader(role, committed_only=True, reads={p: [] for p in self._partitions}, is_shared=True)
        self._history.readers.append(reader)
        command, topic = self._command(role), self._partitions[0][0]
        return [Member(reader, command, self._history, topic, self._log(role)) for _ in range(MEMBERS)]

    def _log(self, role: str) -> Path:
        return self._directory / f"{role}.log"
