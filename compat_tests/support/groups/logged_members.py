"""Members of groups that keep a log of what happens to them: Java's and franz-go's in a process for all of them,
librdkafka's each on a thread, here or in a process of their own.

Their logs are one list of `Event`, for `ownership`. Settings are those of the client, with `_` for `.`, and ours:
`topics`, or `pattern` (Java's is a SubscriptionPattern, librdkafka's has `^` in front), and `commit`: sync, async or
none, after every batch of records that is handed out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from compat_tests.deps import ROOT, go_members
from compat_tests.support.groups.ownership import ENDS_ALL, Event, Kind, Partition
from compat_tests.support.tools import program_command
from tests.support.programs.signals import freeze, thaw

PROGRAM = ROOT / "compat_tests" / "workers" / "GroupMembers.java"
END_S = 60
POLL_S = 0.05
DAMNING = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._BAD_MSG)
"""What only a log that lost its end, or a damaged one, makes a reader say."""
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

    def read(self, member: str) -> set[Partition]:
        """What the member has now and has handed out a record of since it was given."""
        read: set[Partition] = set()
        for event in self.of(member):
            if event.kind is Kind.RECORD:
                read |= set(event.partitions)
            elif event.kind is Kind.ASSIGNED:
                read -= set(event.partitions)
        return read & self.owned(member)

    def is_settled(self, members: Iterable[str], partitions: int) -> bool:
        """Whether the members share that many partitions evenly, and read them.

        A member that got more while it asks for its first position (ListOffsets) would read twice: librdkafka starts a
        timer for that question and leaves it, so that half a second later it asks once more and goes back to the
        beginning.
        """
        shares = sorted(len(self.read(member)) for member in members)
        return sum(shares) == partitions and shares[-1] - shares[0] <= 1

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

    def __init__(self, log: Log, command: Callable[[], Sequence[str]], errors: Path | None = None) -> None:
        """`errors` is the file of its stderr, in place of ours."""
        self.log = log
        self._command = command
        self._errors = errors
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._members: set[str] = set()

    def start(self, name: str, **settings: Any) -> LoggedMember:
        words = (f"{key.replace('_', '.')}={value}" for key, value in settings.items())
        self._members.add(name)
        self._order("start", name, *words)
        return _RemoteMember(name, self)

    def stall(self, name: str, milliseconds: int) -> None:
        """The member does not poll for so long; Java's alone can."""
        self._order("stall", name, str(milliseconds))

    def close(self, name: str) -> None:
        self._order("close", name)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_crashed(self) -> bool:
        """Whether it ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def pause(self) -> None:
        """Let it stand still."""
        if self._process is not None:
            freeze(self._process.pid)

    def resume(self) -> None:
        if self._process is not None:
            thaw(self._process.pid)

    def end(self) -> None:
        """End the process, as a crash does; returns when all that its members said is in the log."""
        if self._process is None or self._reader is None:
            return
        self._process.kill()
        self._process.wait()
        self._reader.join(END_S)
        self._process = None
        for name in self._members:
            self.log(Event(name, time.monotonic_ns(), Kind.KILLED))
        self._members.clear()

    def _order(self, *words: str) -> None:
        if self._process is None:
            errors = None if self._errors is None else self._errors.open("ab")
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
            )
            self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
            self._reader.start()
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{") and line.endswith("\n"):
                event = _event(json.loads(line))
                if event.kind is Kind.CLOSED:
                    self._members.discard(event.member)
                self.log(event)


class JavaMembers(MemberProcess):
    """One JVM of Kafka 4.3.1."""

    def __init__(self, log: Log, errors: Path | None = None) -> None:
        super().__init__(log, lambda: program_command("4.x", PROGRAM), errors)


class ConfluentMembers(MemberProcess):
    """A process of librdkafka's members."""

    def __init__(self, log: Log, errors: Path | None = None) -> None:
        super().__init__(log, lambda: [sys.executable, "-m", "compat_tests.workers.group_members"], errors)


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
    """A consumer of librdkafka on a thread of its own.

    Of settings of ours it has more: it commits at most every `commit_every_ms`, all that it has handed out since; and
    one that `endures` goes on after every error but a fatal one.
    """

    def __init__(self, name: str, log: Log, **settings: Any) -> None:
        self.name = name
        self._log = log
        self._commit = settings.pop("commit", "none")
        self._commit_pause_s = int(settings.pop("commit_every_ms", 0)) / 1000
        self._endures = settings.pop("endures", "false") == "true"
        self._positions: dict[Partition, int] = {}
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
            on_revoke=lambda _, partitions: self._gave(Kind.REVOKED, partitions),
            on_lost=lambda _, partitions: self._gave(Kind.LOST, partitions),
        )
        next_commit = 0.0
        try:
            while not self._is_closing.is_set():
                self._poll(consumer)
                if self._positions and time.monotonic() >= next_commit:
                    self._commit_positions(consumer)
                    next_commit = time.monotonic() + self._commit_pause_s
            self._commit_positions(consumer)
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
            if self._is_an_end(error):
                raise KafkaException(error)
            return
        topic, index, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        value = (message.value() or b"").decode()
        self._say(Kind.RECORD, [TopicPartition(topic, index)], offset=offset, value=value)
        if self._commit != "none":
            self._positions[topic, index] = offset + 1

    def _is_an_end(self, error: KafkaError) -> bool:
        if self._endures:
            return error.fatal() or error.code() in DAMNING
        return not error.retriable() and error.code() not in NOT_AN_END

    def _commit_positions(self, consumer: Consumer) -> None:
        if not self._positions:
            return
        wanted = [TopicPartition(*partition, offset) for partition, offset in self._positions.items()]
        self._positions.clear()
        try:
            done = consumer.commit(offsets=wanted, asynchronous=self._commit == "async")
        except KafkaException as refused:
            self._say(Kind.REFUSED, error=str(refused))
            return
        refusals = [place.error for place in done or () if place.error is not None]
        if refusals:
            self._say(Kind.REFUSED, error=str(refusals[0]))
        else:
            self._say(Kind.COMMITTED)

    def _gave(self, kind: Kind, partitions: Iterable[TopicPartition]) -> None:
        partitions = list(partitions)
        for one in partitions:
            self._positions.pop((one.topic, one.partition), None)
        self._say(kind, partitions)

    def _say(self, kind: Kind, partitions: Iterable[TopicPartition] = (), **more: Any) -> None:
        places = tuple((one.topic, one.partition) for one in partitions)
        self._log(Event(self.name, time.monotonic_ns(), kind, places, **more))
