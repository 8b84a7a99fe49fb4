"""Members of consumer groups, each a process: it can join, leave, commit, and be killed outright.

`Member` runs a Python client library (`workers/python_client.py`), `JavaMember` runs Kafka's VerifiableConsumer; both
say in JSON lines what happens to them, and the tests wait for what they say.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import Any

from compat_tests.support.clients import JAVA_CLIENTS, as_record, python_command
from compat_tests.support.records import Record
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

Partition = tuple[str, int]


class Member:
    """One member of a group. `assignments` and `records` grow as its process reports them."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.assignments: list[frozenset[Partition]] = []
        self.records: list[Record] = []
        self.commits = 0
        self.closed = False
        self._said: list[str] = []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line)
            if line.startswith("{"):
                self.hear(json.loads(line))

    def hear(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "record":
                self.records.append(as_record(event))
            case "assignment":
                self.assignments.append(frozenset((topic, part) for topic, part in event["partitions"]))
            case "committed":
                self.commits += 1
            case "closed":
                self.closed = True

    @property
    def assignment(self) -> frozenset[Partition]:
        return self.assignments[-1] if self.assignments else frozenset()

    def said(self) -> str:
        return "".join(self._said[-60:])

    def order(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def commit(self) -> None:
        """Commit what has been handed out so far, and wait until the broker has it."""
        before = self.commits
        self.order("commit")
        eventually(lambda: self.commits > before, f"a commit; the member said:\n{self.said()}")

    def close(self) -> None:
        """Leave the group as a client does that is shut down properly."""
        self.order("close")
        self._process.wait(120)
        self._reader.join(60)
        assert self.closed, f"the member did not close properly:\n{self.said()}"

    def kill(self) -> None:
        """SIGKILL: without leaving the group."""
        self._process.kill()
        self._process.wait()
        self._reader.join(60)

    def has(self, count: int, deadline_s: float = 30.0) -> list[Record]:
        """Wait until at least `count` records were handed out; all of them so far."""
        eventually(lambda: len(self.records) >= count, f"{count} records; the member said:\n{self.said()}", deadline_s)
        return list(self.records)


class JavaMember(Member):
    """Kafka's VerifiableConsumer, which ends properly on SIGTERM."""

    def hear(self, event: dict[str, Any]) -> None:
        match event["name"]:
            case "partitions_assigned":
                self.assignments.append(self.assignment | _partitions(event))
            case "partitions_revoked":
                self.assignments.append(self.assignment - _partitions(event))
            case "offsets_committed":
                assert event["success"], event
                self.commits += 1
            case "record_data":
                self.records.append(
                    Record(
                        event["value"],
                        event["key"],
                        topic=event["topic"],
                        partition=event["partition"],
                        offset=event["offset"],
                    )
                )
            case "shutdown_complete":
                self.closed = True

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(120)
        self._reader.join(60)
        assert self.closed, f"the member did not close properly:\n{self.said()}"


def _partitions(event: dict[str, Any]) -> frozenset[Partition]:
    return frozenset((part["topic"], part["partition"]) for part in event["partitions"])


def start_member(client: str, bootstrap: str, **spec: Any) -> Member:
    """A member of `spec["group"]` that runs `client`; see workers/python_client.py for what may be in `spec`."""
    if client in JAVA_CLIENTS:
        arguments = ["--group-id", spec["group"], "--topic", *spec["topics"], "--reset-policy", "earliest", "--verbose"]
        arguments += ["--session-timeout", str(spec.get("session_timeout_ms", 10_000))]
        if spec.get("auto_commit"):
            arguments.append("--enable-autocommit")
        if spec.get("assignor"):
            arguments += ["--assignment-strategy", spec["assignor"]]
        if spec.get("instance"):
            arguments += ["--group-instance-id", spec["instance"]]
        command = Tools(JAVA_CLIENTS[client], bootstrap).command("verifiable-consumer", *arguments)
        return JavaMember(command, dict(os.environ))
    line, extra = python_command(client, "member", json.dumps({"bootstrap": bootstrap, **spec}))
    return Member(line, {**os.environ, **extra})
