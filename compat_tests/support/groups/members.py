"""Members of consumer groups, each a process: it can join, leave, commit, and be killed outright.

`Member` runs a Python client library (`workers/python_client.py`), `JavaMember` Kafka's VerifiableConsumer, and
`FranzMember` franz-go (`workers/go_members`). All say in JSON lines what happens to them, and the tests wait for what
they say.

A client is named as in `support.clients`, or `franz-go`. With `-consumer` behind its name it speaks the new protocol
(KIP-848), and without it the classic one.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import pytest

from compat_tests.support.clients import JAVA_CLIENTS, as_record, python_command
from compat_tests.support.groups.logged_members import franz_command
from compat_tests.support.records import Record
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from tests.support.programs.forks import asked

Partition = tuple[str, int]
NEW_PROTOCOL = "-consumer"
BOTH_PROTOCOLS = ("confluent", pytest.param("confluent" + NEW_PROTOCOL, marks=pytest.mark.wide))
"""Parameters of tests whose subject is not the client."""


def speaks_new_protocol(client: str) -> bool:
    return client.endswith(NEW_PROTOCOL)


class Member:
    """One member of a group. `assignments` and `records` grow as its process reports them."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.assignments: list[frozenset[Partition]] = []
        self.records: list[Record] = []
        self.commits = 0
        self.closed = False
        self._said: list[str] = []
        self._process = asked(command, env, None)
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


class FranzMember(Member):
    """A process of franz-go with one member, which ends with its input."""

    NAME = "member"

    def __init__(self, command: list[str], settings: dict[str, str]) -> None:
        super().__init__(command, dict(os.environ))
        self.order("start", *(f"{key}={value}" for key, value in settings.items()))

    def order(self, word: str, *words: str) -> None:
        super().order(" ".join((word, self.NAME, *words)))

    def hear(self, event: dict[str, Any]) -> None:
        partitions = frozenset((topic, part) for topic, part in event.get("partitions", ()))
        match event["event"]:
            case "assigned" if partitions:
                self.assignments.append(self.assignment | partitions)
            case "revoked" | "lost" if partitions:
                self.assignments.append(self.assignment - partitions)
            case "committed":
                self.commits += 1
            case "record":
                self.records.append(
                    Record(
                        event["value"],
                        event.get("key"),
                        topic=event["topic"],
                        partition=event["partition"],
                        offset=event["offset"],
                    )
                )
            case "closed":
                self.closed = True

    def close(self) -> None:
        self.order("close")
        eventually(lambda: self.closed, f"its end; the member said:\n{self.said()}")
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._reader.join(60)


def _partitions(event: dict[str, Any]) -> frozenset[Partition]:
    return frozenset((part["topic"], part["partition"]) for part in event["partitions"])


def start_member(client: str, bootstrap: str, **spec: Any) -> Member:
    """A member of `spec["group"]` that runs `client`; see workers/python_client.py for what may be in `spec`.

    Members of the new protocol have no session timeout of their own.
    """
    library = client.removesuffix(NEW_PROTOCOL)
    if speaks_new_protocol(client):
        spec["protocol"] = "consumer"
        spec.pop("session_timeout_ms", None)
    if library == "franz-go":
        return FranzMember(franz_command(), _franz_settings(bootstrap, spec))
    if library in JAVA_CLIENTS:
        command = Tools(JAVA_CLIENTS[library], bootstrap).command("verifiable-consumer", *_java_arguments(spec))
        return JavaMember(command, dict(os.environ))
    line, extra = python_command(library, "member", json.dumps({"bootstrap": bootstrap, **spec}))
    return Member(line, {**os.environ, **extra})


def _java_arguments(spec: dict[str, Any]) -> list[str]:
    arguments = ["--group-id", spec["group"], "--topic", *spec["topics"], "--reset-policy", "earliest", "--verbose"]
    if "protocol" in spec:
        arguments += ["--group-protocol", spec["protocol"]]
    else:
        arguments += ["--session-timeout", str(spec.get("session_timeout_ms", 10_000))]
    if spec.get("auto_commit"):
        arguments.append("--enable-autocommit")
    if spec.get("assignor"):
        option = "--group-remote-assignor" if "protocol" in spec else "--assignment-strategy"
        arguments += [option, spec["assignor"]]
    if spec.get("instance"):
        arguments += ["--group-instance-id", spec["instance"]]
    return arguments


def _franz_settings(bootstrap: str, spec: dict[str, Any]) -> dict[str, str]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": spec["group"],
        "enable.auto.commit": str(spec.get("auto_commit", False)).lower(),
        "session.timeout.ms": str(spec.get("session_timeout_ms", 10_000)),
    }
    if "pattern" in spec:
        settings["pattern"] = spec["pattern"]
    else:
        settings["topics"] = ",".join(spec["topics"])
    if "protocol" in spec:
        settings["group.protocol"] = spec["protocol"]
    if spec.get("instance"):
        settings["group.instance.id"] = spec["instance"]
    if spec.get("assignor"):
        key = "group.remote.assignor" if "protocol" in spec else "partition.assignment.strategy"
        settings[key] = spec["assignor"]
    return settings
