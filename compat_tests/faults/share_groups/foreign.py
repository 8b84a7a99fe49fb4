"""Members of other clients in the storm's share group, and what they say that they were given and have accepted.

What is known of a moment is less than of our own member: a client may have asked for a record some polls before it
hands it out, and what another process says is read later. Both widen the intervals of the history, so that nothing is
reported that need not be wrong. No hold of another process is without doubt. A delivery count that a client does not
give is `UNKNOWN`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

from compat_tests.faults.share_groups.history import UNKNOWN, Acknowledgement, Delivery, Kind, ShareHistory
from compat_tests.faults.share_groups.member import Settings
from compat_tests.support.tools import Tools
from kpybroker.wire.errors import ErrorCode

ASKS_BACK: Final = 4
"""A record was asked for at most so many polls before it is handed out: there are three brokers."""
POLL_S, END_S, COMMIT_S = 0.2, 60.0, 30.0
GO_CLIENTS: Final = Path(__file__).parents[1] / "go_clients"
KINDS: Final = {
    Kind.ACCEPT: (AcknowledgeType.ACCEPT, 90),
    Kind.RELEASE: (AcknowledgeType.RELEASE, 7),
    Kind.REJECT: (AcknowledgeType.REJECT, 3),
}


class Foreign(threading.Thread):
    """One member, as a `Member`: `drains` makes it accept everything, `ends` makes it leave."""

    def __init__(self, name: str, settings: Settings, history: ShareHistory) -> None:
        super().__init__(name=name, daemon=True)
        self.drains = threading.Event()
        self.ends = threading.Event()
        self.count = 0
        """Records that it was given."""
        self._settings = settings
        self._history = history
        self._asks: deque[int] = deque([time.monotonic_ns()], maxlen=ASKS_BACK)

    def run(self) -> None:
        """Until `ends` is set."""
        try:
            self.work()
        except Exception as error:
            self._history.failures.append(f"member {self.name}: {error!r}")

    def work(self) -> None:
        """What the client does."""
        raise NotImplementedError

    def polls(self) -> None:
        """It asks for records."""
        self._asks.append(time.monotonic_ns())

    def now_ns(self) -> int:
        """When what is being noted has happened at the latest, as far as that is known."""
        return time.monotonic_ns()

    def delivered(self, partition: int, offset: int, value: bytes, times: int = UNKNOWN) -> None:
        """It was given a record."""
        span = (self._asks[0], self.now_ns())
        self.count += 1
        self._history.deliveries.append(
            Delivery(self.name, (self._settings.topic, partition), offset, value, times, *span)
        )

    def said(self, partition: int, offsets: Iterable[int], kind: Kind, sent_ns: int, done: bool | None) -> None:
        """It has acknowledged records; whether that was done or refused, None if that is not known."""
        done_ns = None if done is None else time.monotonic_ns()
        part = (self._settings.topic, partition)
        for offset in offsets:
            self._history.acknowledgements.append(
                Acknowledgement(self.name, part, offset, kind, sent_ns, done_ns, done is False)
            )


class Confluent(Foreign):
    """confluent-kafka's share consumer, which accepts most records and releases or rejects some."""

    def work(self) -> None:
        """As `Foreign.work`."""
        drawn = random.Random(self.name)
        bootstrap = ",".join(f"{host}:{port}" for host, port in self._settings.addresses)
        settings = {"bootstrap.servers": bootstrap, "group.id": self._settings.group, "log_level": 0}
        consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
        consumer.subscribe([self._settings.topic])
        while not self.ends.is_set():
            self.polls()
            try:
                self._finish(consumer, [one for one in consumer.poll(POLL_S) if not one.error()], drawn)
            except KafkaException as error:  # a leader has changed, or a lock has run out
                if error.args[0].fatal():
                    raise
        consumer.close()

    def _finish(self, consumer: ShareConsumer, messages: Sequence[Any], drawn: random.Random) -> None:
        for message in messages:
            self.delivered(message.partition(), message.offset(), message.value(), message.delivery_count())
        kinds = list(KINDS) if not self.drains.is_set() else [Kind.ACCEPT]
        chosen = drawn.choices(kinds, [KINDS[kind][1] for kind in kinds], k=len(messages))
        sent_ns = time.monotonic_ns()
        for message, kind in zip(messages, chosen, strict=True):
            consumer.acknowledge(message, KINDS[kind][0])
        results: dict[int, bool | None] = {}
        try:
            if messages:
                results = {one.partition: _done(error) for one, error in consumer.commit_sync(COMMIT_S).items()}
        finally:
            for message, kind in zip(messages, chosen, strict=True):
                done = results.get(message.partition())
                self.said(message.partition(), [message.offset()], kind, sent_ns, done)


def _done(error: KafkaException | None) -> bool | None:
    if error is None:
        return True
    return False if error.args[0].code() == ErrorCode.INVALID_RECORD_STATE else None


class Program(Foreign):
    """A process that says in lines of JSON what it does, and leaves the group at SIGTERM."""

    def __init__(self, name: str, settings: Settings, history: ShareHistory, command: Sequence[str], log: Path) -> None:
        super().__init__(name, settings, history)
        self._first_ns: int | None = None
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def polls(self) -> None:
        """As `Foreign.polls`."""
        super().polls()
        self._first_ns = None

    def now_ns(self) -> int:
        """The time of the first line of a poll, for all that it gave and for what was said of that."""
        if self._first_ns is None:
            self._first_ns = time.monotonic_ns()
        return self._first_ns

    def work(self) -> None:
        """As `Foreign.work`."""
        threading.Thread(target=self._end_process, daemon=True).start()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self.heard(json.loads(line))
        if not self.ends.is_set():
            raise RuntimeError("it has ended by itself: see its .log")

    def _end_process(self) -> None:
        self.ends.wait()
        self._process.terminate()

    def heard(self, said: dict[str, Any]) -> None:
        """One line."""
        raise NotImplementedError


class Franz(Program):
    """franz-go, by `go_clients/share.go`."""

    def heard(self, said: dict[str, Any]) -> None:
        """As `Program.heard`."""
        match said["event"]:
            case "polls":
                self.polls()
            case "delivered":
                self.delivered(said["partition"], said["offset"], said["value"].encode(), said["times"])
            case "acknowledged":
                self.said(said["partition"], said["offsets"], Kind.ACCEPT, self.now_ns(), said.get("done"))


class Verifiable(Program):
    """VerifiableShareConsumer of Kafka 4.3.1, which accepts all of what each poll gave."""

    def heard(self, said: dict[str, Any]) -> None:
        """As `Program.heard`."""
        match said["name"]:
            case "record_data":
                self.delivered(said["partition"], said["offset"], said["value"].encode())
            case "offsets_acknowledged":
                for one in said["partitions"]:
                    done = True if said["success"] else None
                    self.said(one["partition"], one["offsets"], Kind.ACCEPT, self.now_ns(), done)
                self.polls()


def members(settings: Settings, history: ShareHistory, directory: Path) -> list[Foreign]:
    """One of each client, and two of confluent-kafka."""
    bootstrap = ",".join(f"{host}:{port}" for host, port in settings.addresses)
    program = directory / "go_clients"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=GO_CLIENTS, check=True, stdout=sys.stderr)
    go = [str(program), "franz-share", bootstrap, settings.topic, "0", "1", settings.group]
    java = Tools("4.x", bootstrap).command(
        *("verifiable-share-consumer", "--topic", settings.topic, "--group-id", settings.group),
        *("--verbose", "--acknowledgement-mode", "sync"),
    )
    return [
        Confluent("confluent-1", settings, history),
        Confluent("confluent-2", settings, history),
        Franz("franz", settings, history, go, directory / "franz.log"),
        Verifiable("java", settings, history, java, directory / "java.log"),
    ]
