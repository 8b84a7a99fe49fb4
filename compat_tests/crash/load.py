"""Clients that keep a broker busy while it is killed, and write down every response.

Each is a thread with a librdkafka client of its own. A failure that a client may not have (a record given up by an
idempotent producer, a position that is out of range) goes to the history; what a dying broker excuses does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.crash.history import Commit, History, Partition, Sent, Stored, decode_value, encode_value

QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
IN_FLIGHT_MAX = 400
BURST_MAX = 20
PACE_S = 0.03
BATCH_BYTES_MAX = 100_000  # below the smallest segment.bytes in use
MESSAGE_TIMEOUT_MS = 300_000
READ_DEADLINE_S = 180.0
UNKNOWN_FOR_A_MOMENT = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
"""Kafka 3.9 knows no topics for a moment after its start, and librdkafka believes it."""
CHURN_KEPT_MAX = 10
TURNS_BETWEEN_LOOKS = 10


@dataclass(frozen=True, slots=True)
class WriterKind:
    codec: str
    idempotent: bool = True
    value_bytes_max: int = 1500
    excused: frozenset[int] = frozenset()


class Client(threading.Thread):
    """A thread that runs `turn` until it is stopped."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self.is_abandoned = False
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def abandon(self) -> None:
        """Stop in the middle of things: what it had under way is given up, and what it still hears is forgotten."""
        self.history = History()
        self.is_abandoned = True
        self.stop()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self.turn()
            self.finish()
        except Exception as error:
            self.fail(f"{self.name} ended with {error!r}")
            raise

    def turn(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """The last words of a client that was stopped; the broker is up, or the client is abandoned."""

    def pause(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def fail(self, what: str) -> None:
        history = self.history
        with history.lock:
            history.failures.append(what)


class Writer(Client):
    """One producer over all partitions; the numbers of its records rise within each.

    For the `excused` errors of its kind it may give up a record.
    """

    def __init__(
        self,
        number: int,
        kind: WriterKind,
        bootstrap: str,
        partitions: Sequence[Partition],
        history: History,
        seed: int,
    ) -> None:
        super().__init__(f"writer-{number}-{kind.codec}{'' if kind.idempotent else '-acks=1'}", history)
        self.acknowledged = 0
        self._number = number
        self._kind = kind
        self._partitions = partitions
        self._random = Random(seed)
        self._sent = 0
        if kind.idempotent:
            history.idempotent.add(number)
        settings = {"enable.idempotence": True} if kind.idempotent else {"acks": 1}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": kind.codec,
                "message.timeout.ms": MESSAGE_TIMEOUT_MS,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "linger.ms": 3,
                "batch.num.messages": 100,
                "batch.size": BATCH_BYTES_MAX,
                **settings,
                **QUIET,
            }
        )

    def turn(self) -> None:
        if len(self._producer) < IN_FLIGHT_MAX:
            partition = self._random.choice(self._partitions)
            for _ in range(self._random.randint(1, BURST_MAX)):
                self._write(partition)
        self._producer.poll(0)
        self.pause(PACE_S)

    def finish(self) -> None:
        if self.is_abandoned:
            self._producer.purge()
        left = self._producer.flush(READ_DEADLINE_S)
        if left:
            self.fail(f"{self.name}: {left} records got no response")

    def _write(self, partition: Partition) -> None:
        sent = Sent(self._number, self._sent)
        self._sent += 1
        value = encode_value(sent, self._random.randint(0, self._kind.value_bytes_max))
        topic, index = partition
        try:
            self._producer.produce(topic, value, partition=index, on_delivery=self._report(partition, sent))
        except KafkaException as error:
            if error.args[0].code() not in self._kind.excused:
                raise
            self._sent -= 1

    def _report(self, partition: Partition, sent: Sent) -> Callable[[KafkaError | None, Message], None]:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None and error.code() in self._kind.excused:
                return
            if error is not None:
                self.fail(f"{self.name}: {sent} was given up: {error}")
                return
            self.acknowledged += 1
            offset = message.offset()
            assert offset is not None
            history = self.history
            with history.lock:
                history.acknowledge(partition, offset, sent)

        return report


class Reader(Client):
    """Reads everything as it comes and commits what it read; a member of a group, or a reader that assigns itself."""

    def __init__(
        self,
        group: str,
        bootstrap: str,
        partitions: Sequence[Partition],
        history: History,
        *,
        subscribes: bool,
    ) -> None:
        super().__init__(group, history)
        self._group = group
        self._partitions = partitions
        self._commits: dict[Partition, tuple[int, int]] = {}
        self._unsure: set[Partition] = set()
        self._turns = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest" if subscribes else "error",
                "enable.auto.commit": False,
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "session.timeout.ms": 10_000,
                **QUIET,
            }
        )
        if subscribes:
            self._consumer.subscribe(sorted({topic for topic, _ in partitions}))
        else:
            self._consumer.assign([TopicPartition(*partition, 0) for partition in partitions])

    def turn(self) -> None:
        news: dict[Partition, int] = {}
        for message in self._consumer.consume(500, 0.1):
            error = message.error()
            if error is not None:
                self._judge(error)
                continue
            partition, offset = (message.topic(), message.partition()), message.offset()
            assert isinstance(partition[0], str)
            history = self.history
            with history.lock:
                history.observe(partition, offset, decode_value(message.value()))
            news[partition] = offset + 1
        for partition, position in news.items():
            self._commit(partition, position)
        self._turns += 1
        if self._unsure or self._turns % TURNS_BETWEEN_LOOKS == 0:
            self._look(self._unsure or self._partitions, timeout_s=1.0)

    def _judge(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._BAD_MSG):
            self.fail(f"{self.name}: {error}")

    def _commit(self, partition: Partition, position: int) -> None:
        low, high = self._commits.get(partition, (-1001, -1001))
        try:
            done = self._consumer.commit(offsets=[TopicPartition(*partition, position)], asynchronous=False)
            assert done is not None
            known = all(one.error is None for one in done)
        except KafkaException:
            known = False
        if known:
            self._commits[partition] = (position, position)
        else:  # an unknown outcome: either the one or the other
            self._commits[partition] = (min(low, position), max(high, position))
            self._unsure.add(partition)

    def _look(self, partitions: Iterable[Partition], timeout_s: float) -> None:
        """Ask what is committed, of partitions that this client has committed."""
        wanted = [TopicPartition(*partition) for partition in partitions if partition in self._commits]
        if not wanted:
            return
        try:
            found = self._consumer.committed(wanted, timeout=timeout_s)
        except KafkaException:
            return
        for one in found or ():
            if one.error is not None:
                return
            low, high = self._commits[one.topic, one.partition]
            history = self.history
            with history.lock:
                history.commits.append(Commit(f"{self._group} {one.topic}-{one.partition}", low, high, one.offset))
        self._unsure.clear()

    def finish(self) -> None:
        looks = len(self.history.commits)
        self._look(self._partitions, READ_DEADLINE_S)
        if self._commits and len(self.history.commits) == looks:
            self.fail(f"{self.name}: the committed offsets could not be read at the end")
        self._consumer.close()


class TopicMaker(Client):
    """Makes and deletes topics, and keeps book of what was acknowledged."""

    def __init__(self, bootstrap: str, history: History, seed: int) -> None:
        super().__init__("topic-maker", history)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        self._random = Random(seed)
        self._made = 0

    def turn(self) -> None:
        kept = self.history.created
        if len(kept) >= CHURN_KEPT_MAX or (kept and self._random.random() < 0.3):
            self._remove_topic(self._random.choice(sorted(kept)))
        else:
            self._create_topic(f"churn-{self._made}")
            self._made += 1
        self.pause(0.1)

    def _create_topic(self, name: str) -> None:
        try:
            self._admin.create_topics([NewTopic(name, 2, 1)], request_timeout=2.0)[name].result()
        except KafkaException:
            return  # made or not: nothing was promised
        self.history.created.add(name)

    def _remove_topic(self, name: str) -> None:
        self.history.created.discard(name)
        try:
            self._admin.delete_topics([name], request_timeout=2.0)[name].result()
        except KafkaException:
            return
        self.history.deleted.add(name)


def log_ends(bootstrap: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The log end of every partition that responds within a second."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", **QUIET})
    ends: dict[Partition, int] = {}
    try:
        for partition in partitions:
            try:
                found = consumer.get_watermark_offsets(TopicPartition(*partition), timeout=1.0)
            except KafkaException:
                continue
            if found is not None:
                ends[partition] = found[1]
    finally:
        consumer.close()
    return ends


def read_all(bootstrap: str, partitions: Sequence[Partition]) -> dict[Partition, list[Stored]]:
    """Every record of every partition, with a fresh stock consumer that checks CRCs."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            **QUIET,
        }
    )
    stored: dict[Partition, list[Stored]] = {partition: [] for partition in partitions}
    unfinished = set(partitions)
    consumer.assign([TopicPartition(*partition, 0) for partition in partitions])
    try:
        progress = time.monotonic()
        while unfinished:
            messages = consumer.consume(2000, 0.2)
            progress = time.monotonic() if messages else progress
            late = time.monotonic() > progress + READ_DEADLINE_S
            assert not late, f"nothing more came of {unfinished} within {READ_DEADLINE_S} s"
            for message in messages:
                partition = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is None:
                    offset = message.offset()
                    assert offset is not None
                    sent, epoch = decode_value(message.value()), message.leader_epoch()
                    stored[partition].append(Stored(offset, sent, -1 if epoch is None else epoch))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(partition)
                else:
                    raise AssertionError(f"{partition}: {error}")
    finally:
        consumer.close()
    return stored
