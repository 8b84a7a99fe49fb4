"""Members of groups that keep a log of what happens to them: Java's and franz-go's in a process for all of them,
librdkafka's each on a thread.

Their logs are one list of `Event`, for `ownership`. Settings are those of the client, with `_` for `.`, and ours:
`topics`, or `pattern` (Java's is a SubscriptionPattern, librdkafka's has `^` in front), and `commit`: sync, async or
none, after every batch of records that is handed out.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from compat_tests.deps import ROOT, go_members
from compat_tests.support.groups.ownership import ENDS_ALL, Event, Kind, Partition
from compat_tests.support.tools import program_command

PROGRAM = ROOT / "compat_tests" / "workers" / "GroupMembers.java"
END_S = 60
POLL_S = 0.05
NOT_AN_END = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError.UNKNOWN_TOPIC_OR_PART)

Log = Callable[[Event], None]


class LoggedMember(Protocol):
    """A member that was started."""

    name: str

    def close(self) -> None:
        """End it as an application that ends; returns at once."""


class Logs:
    """The events of all members of a test. All methods are for any thread."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    @property
    def events(self) -> list[Event]:
        with self._lock:
            return list(self._events)

    def of(self, member: str) -> list[Event]:
        return [event for event in self.events if event.member == member]

    def owned(self, member: str) -> set[Partition]:
        """What the member has now, as it says."""
        held: set[Partition] = set()
        for event in self.of(member):
            if event.kind is Kind.ASSIGNED:
                held |= set(event.partitions)
            elif event.kind in (Kind.REVOKED, Kind.LOST):
                held -= set(event.partitions)
            elif event.kind in ENDS_ALL:
                held.clear()
        return held

    def shares(self, members: Iterable[str]) -> list[int]:
        """How many partitions each has, in order of size."""
        return sorted(len(self.owned(member)) for member in members)

    def values(self, *members: str) -> list[str]:
        """Of the records that were handed out, in that order; by all members, or by these."""
        return [
            event.value
            for event in self.events
            if event.kind is Kind.RECORD and (not members or event.member in members)
        ]

    def has(self, member: str, kind: Kind) -> bool:
        return any(event.kind is kind for event in self.of(member))


class MemberProcess:
    """A process with any number of members, which obeys orders on stdin; it starts with the first member."""

    def __init__(self, log: Log, command: Callable[[], Sequence[str]]) -> None:
        self.log = log
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def start(self, name: str, **settings: Any) -> LoggedMember:
        words = (f"{key.replace('_', '.')}={value}" for key, value in settings.items())
        self._order("start", name, *words)
        return _RemoteMember(name, self)

    def stall(self, name: str, milliseconds: int) -> None:
        """The member does not poll for so long; Java's alone can."""
        self._order("stall", name, str(milliseconds))

    def close(self, name: str) -> None:
        self._order("close", name)

    def end(self) -> None:
        """End all of them, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _order(self, *words: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                self.log(_event(json.loads(line)))


class JavaMembers(MemberProcess):
    """One JVM of Kafka 4.3.1."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, lambda: program_command("4.x", PROGRAM))


class FranzMembers(MemberProcess):
    """One process of franz-go."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, franz_command)


def franz_command() -> list[str]:
    """The command line of members of franz-go."""
    program = go_members()
    assert program.exists(), f"{program} is not built: python -m compat_tests.deps clients"
    return [str(program)]


def _event(said: dict[str, Any]) -> Event:
    partitions = said.get("partitions", [])
    if said["event"] == "record":
        partitions = [(said["topic"], said["partition"])]
    return Event(
        said["member"],
        said["time_ns"],
        Kind(said["event"]),
        tuple((topic, index) for topic, index in partitions),
        said.get("offset", -1),
        said.get("value", ""),
        said.get("error", ""),
    )


class _RemoteMember:
    def __init__(self, name: str, members: MemberProcess) -> None:
        self.name = name
        self._members = members

    def close(self) -> None:
        self._members.close(self.name)


class ConfluentMember:
    """A consumer of librdkafka on a thread of its own."""

    def __init__(self, name: str, log: Log, **settings: Any) -> None:
        self.name = name
        self._log = log
        self._commit = settings.pop("commit", "none")
        self._topics = settings.pop("topics", "").split(",")
        if "pattern" in settings:
            self._topics = ["^" + settings.pop("pattern")]
        names = {key.replace("_", "."): value for key, value in settings.items()}
        self._settings = {"topic.metadata.refresh.interval.ms": 500, "heartbeat.interval.ms": 500, **names}
        if self._settings.get("group.protocol") == "consumer":
            del self._settings["heartbeat.interval.ms"]
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closing.set()

    def join(self) -> None:
        """Close it, and return when it has ended."""
        self.close()
        self._thread.join(END_S)
        assert not self._thread.is_alive(), f"{self.name} did not end"

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe(
            self._topics,
            on_assign=lambda _, partitions: self._say(Kind.ASSIGNED, partitions),
            on_revoke=lambda _, partitions: self._say(Kind.REVOKED, partitions),
            on_lost=lambda _, partitions: self._say(Kind.LOST, partitions),
        )
        try:
            while not self._is_closing.is_set():
                self._poll(consumer)
            self._say(Kind.CLOSING)
        except KafkaException as error:
            self._say(Kind.FAILED, error=str(error))
        finally:
            consumer.close()
            self._say(Kind.CLOSED)

    def _poll(self, consumer: Consumer) -> None:
        message = consumer.poll(POLL_S)
        if message is None:
            return
        if (error := message.error()) is not None:
            if not error.retriable() and error.code() not in NOT_AN_END:
                raise KafkaException(error)
            return
        place = TopicPartition(message.topic() or "", message.partition() or 0)
        self._say(Kind.RECORD, [place], offset=message.offset() or 0, value=(message.value() or b"").decode())
        if self._commit == "none":
            return
        try:
            consumer.commit(message, asynchronous=self._commit == "async")
            self._say(Kind.COMMITTED)
        except KafkaException as refused:
            self._say(Kind.REFUSED, error=str(refused))

    def _say(self, kind: Kind, partitions: Iterable[TopicPartition] = (), **more: Any) -> None:
        places = tuple((one.topic, one.partition) for one in partitions)
        self._log(Event(self.name, time.monotonic_ns(), kind, places, **more))
