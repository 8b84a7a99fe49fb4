"""Who reads while the cluster suffers: two that follow every partition from its start, and a group that commits.

At the end `read_log` reads everything once more; what the others got is held against it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from compat_tests.eos.readers import messages_to_end
from compat_tests.faults.clients.writers import CLIENT, Task
from compat_tests.faults.history import History, Partition, Read, Reader, Stored, record_of
from compat_tests.support.groups.logged_members import DAMNING
from compat_tests.support.waiting import eventually

COMMIT_S = 0.4

COMMON = {
    **CLIENT,
    "enable.auto.commit": False,
    "check.crcs": True,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
}


class _Reading(Task):
    def __init__(self, name: str, history: History, reader: Reader) -> None:
        super().__init__(name, history)
        self.reader = reader

    def has_all(self, log: dict[Partition, list[Stored]]) -> bool:
        """Whether the last record of every partition has come."""
        return all(
            not stored or any(read.offset == stored[-1].offset for read in reversed(self.reader.reads[partition]))
            for partition, stored in log.items()
        )

    def take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            read = Read(message.offset(), record_of(message.value()))
            self.reader.reads[message.topic(), message.partition()].append(read)
        elif error.code() in DAMNING:
            self.history.failures.append(f"{self.name} received: {error}")


class Follower(_Reading):
    """Assigned to all partitions from offset 0."""

    def __init__(self, history: History, bootstrap: str, partitions: Sequence[Partition], isolation: str) -> None:
        reads: dict[Partition, list[Read]] = {partition: [] for partition in partitions}
        super().__init__(isolation, history, Reader(isolation, isolation == "read_committed", reads))
        history.readers.append(self.reader)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                **COMMON,
            }
        )
        self._consumer.assign([TopicPartition(topic, index, 0) for topic, index in partitions])

    def work(self) -> None:
        while not self.stopping.is_set():
            for message in self._consumer.consume(500, 0.1):
                self.take(message)
        self._consumer.close()


class Member(_Reading):
    """One of a group; all of its members share one `Reader`. It commits what it has got, and waits for the response."""

    def __init__(self, name: str, history: History, bootstrap: str, topic: str, group: str, reader: Reader) -> None:
        super().__init__(name, history, reader)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                **COMMON,
                # longer than any cut: a commit that is late must not come after a later one
                "socket.timeout.ms": 15_000,
            }
        )
        self.member_id: str | None = None
        """As of the last commit: asked for by another thread, `memberid` waits for a `consume` that never ends."""
        self._topic = topic
        self._positions: dict[int, int] = {}

    def work(self) -> None:
        self._consumer.subscribe([self._topic], on_revoke=self._forget, on_lost=self._forget)
        next_commit = time.monotonic()
        while not self.stopping.is_set():
            for message in self._consumer.consume(200, 0.1):
                self.take(message)
                if message.error() is None:
                    self._positions[message.partition()] = message.offset() + 1
            if time.monotonic() > next_commit and self._positions:
                self._commit()
                next_commit = time.monotonic() + COMMIT_S
        self._commit()
        self._consumer.close()

    def _forget(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._positions.clear()

    def _commit(self) -> None:
        if not self._positions:
            return
        self.member_id = self._consumer.memberid()
        wanted = [TopicPartition(self._topic, index, offset) for index, offset in self._positions.items()]
        try:
            responses = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return  # the group is shared again, or its coordinator is away: nothing was promised
        now = time.monotonic_ns()
        for place in responses:
            if place.error is None:
                self.history.commits_acknowledged[place.topic, place.partition].append((now, place.offset))


def wait_for_reader(reader: Reader, committed: Mapping[Partition, set[int]], within_s: float) -> None:
    """Until a group has read all offsets that are committed."""

    def has_all() -> bool:
        for partition, offsets in committed.items():
            missing = offsets.difference(read.offset for read in reader.reads[partition])
            assert not missing, f"{len(missing)} of {partition} are missing, from {min(missing)}"
        return True

    eventually(has_all, f"{reader.name} has read all", within_s)
    reader.finished = True


def read_log(bootstrap: str, topic: str, partitions: int, isolation: str) -> dict[Partition, list[Stored]]:
    """Everything from the start to the end of the log, or to the last stable offset."""
    found = messages_to_end(bootstrap, topic, range(partitions), isolation)
    return {
        (topic, index): [Stored(m.offset(), record_of(m.value()), m.leader_epoch()) for m in messages]
        for index, messages in found.items()
    }
