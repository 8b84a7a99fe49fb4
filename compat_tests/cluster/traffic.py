"""What clients do while brokers come and go, and what must be true of it afterwards.

A `Writer` numbers its records in each partition and remembers what was acknowledged at which offset; a `Reader` follows
and remembers what it saw. `verify` reads everything once more and holds the three against each other.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from compat_tests.support.security.logins import reach
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

QUIET = {"log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}
DELIVERY_MS = 120_000
IN_FLIGHT_MAX = 500
READ_DEADLINE_S = 180.0
IMPLICITLY = -1
"""The offset of a record that librdkafka acknowledges because a later one of its partition was (its function
``rd_kafka_dr_implicit_ack``): it learns that the first one timed out, or nothing, and the sequence numbers say that it
is in the log all the same, but not where. Kafka's brokers cause it as kpybroker does: while a follower stands still for
a moment, one batch gets REQUEST_TIMED_OUT and the next one with success."""


class _Client(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.failures: list[str] = []
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ask it to end, wait until it has, and fail for what it met."""
        self._stopping.set()
        self.join(READ_DEADLINE_S + DELIVERY_MS / 1000)
        assert not self.is_alive(), f"{type(self).__name__} does not end"
        assert not self.failures, self.failures[:5]


class Writer(_Client):
    """An idempotent producer with acks=all; one number after the other into each partition in turn."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, size: int = 200, **config: object) -> None:
        super().__init__()
        self.topic, self.partitions = topic, partitions
        self.sent = [0] * partitions
        self.acked: list[dict[int, int]] = [{} for _ in range(partitions)]
        """By partition: number -> offset."""
        self._padding = "." * size
        self._producer = Producer(
            {
                **reach(bootstrap),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": DELIVERY_MS,
                **QUIET,
                **{key.replace("_", "."): value for key, value in config.items()},
            }
        )

    @property
    def acked_count(self) -> int:
        return sum(map(len, self.acked))

    def run(self) -> None:
        while not self._stopping.is_set():
            for partition in range(self.partitions):
                self._write(partition)
            self._producer.poll(0.005 if len(self._producer) < IN_FLIGHT_MAX else 0.1)
        left = self._producer.flush(DELIVERY_MS / 1000)
        if left:
            self.failures.append(f"{left} records were neither acknowledged nor refused")

    def _write(self, partition: int) -> None:
        if len(self._producer) >= IN_FLIGHT_MAX:
            return
        number = self.sent[partition]

        def reported(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(f"{partition}:{number}: {error}")
            else:
                offset = message.offset()
                self.acked[partition][number] = IMPLICITLY if offset is None else offset

        self._producer.produce(
            self.topic, f"{partition}:{number}:{self._padding}", partition=partition, on_delivery=reported
        )
        self.sent[partition] += 1

    def wait_for_more(self, count: int, deadline_s: float = 60.0) -> None:
        """Until so many more records are acknowledged."""
        goal = self.acked_count + count
        eventually(lambda: self.acked_count >= goal, f"{count} more acknowledged records", deadline_s)


class Reader(_Client):
    """A member of a group that reads all along, and commits.

    `kafka_restarts`: one of the brokers is Kafka, which knows no topics for a moment after each start.
    """

    def __init__(self, bootstrap: str, topic: str, group: str, *, kafka_restarts: bool = False) -> None:
        super().__init__()
        self.seen: dict[tuple[int, int], bytes] = {}
        self.twice = 0
        self._expected = {KafkaError._MAX_POLL_EXCEEDED}
        if kafka_restarts:
            self._expected.add(KafkaError.UNKNOWN_TOPIC_OR_PART)
        self._consumer = Consumer(
            {
                **reach(bootstrap),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "session.timeout.ms": 10_000,
                "check.crcs": True,
                **QUIET,
            }
        )
        self._topic = topic

    def run(self) -> None:
        self._consumer.subscribe([self._topic])
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, 0.2):
                self._take(message)
        self._consumer.close()

    def _take(self, message: Message) -> None:
        if message.error() is not None:
            if message.error().code() not in self._expected:
                self.failures.append(str(message.error()))
            return
        at = (message.partition(), message.offset())
        if at in self.seen:
            self.twice += 1  # read again after a rebalance
        if self.seen.setdefault(at, message.value()) != message.value():
            self.failures.append(f"{at} was {self.seen[at]!r} and is {message.value()!r}")


def verify(
    bootstrap: str, writer: Writer, reader: Reader | None = None, *, is_lossless: bool = True, is_exact: bool = True
) -> None:
    """Nothing acknowledged is lost, nothing is there twice or out of order, and no reader saw anything else.

    Not `is_exact`: a producer that is not idempotent may write twice, or change the order, when it tries again. Not
    `is_lossless`: it asked for less than all replicas.
    """
    for partition in range(writer.partitions):
        found = _read(bootstrap, writer.topic, partition)
        numbers = [int(value.split(b":")[1]) for value in found.values()]
        assert numbers == sorted(set(numbers)) or not is_exact, f"partition {partition}: twice or out of order"
        assert set(numbers) <= set(range(writer.sent[partition])), f"partition {partition}: never sent"
        acked = writer.acked[partition]
        lost = sorted(set(acked) - set(numbers))
        assert not lost or not is_lossless, f"partition {partition} lost {len(lost)} acknowledged records, {lost[:5]}"
        at = dict(zip(found, numbers, strict=True))
        reported = {number: offset for number, offset in acked.items() if offset != IMPLICITLY}
        is_reported = max(acked, default=0) == max(reported, default=0)
        assert is_reported or not is_lossless, (
            f"partition {partition}: acknowledged without an offset, nothing after it"
        )
        moved = {number: (offset, at.get(offset)) for number, offset in reported.items() if at.get(offset) != number}
        assert not moved or not is_lossless, f"partition {partition}: reported, found {dict(list(moved.items())[:3])}"
        if reader is not None:
            for (index, offset), value in reader.seen.items():
                assert index != partition or found.get(offset) == value, f"{index}@{offset} was read as {value[:40]!r}"


def _read(bootstrap: str, topic: str, partition: int) -> dict[int, bytes]:
    consumer = Consumer(
        {**reach(bootstrap), "group.id": "verify", "enable.auto.commit": False, "check.crcs": True, **QUIET}
    )
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=READ_DEADLINE_S)
        consumer.assign([TopicPartition(topic, partition, low)])
        found: dict[int, bytes] = {}
        end = time.monotonic() + READ_DEADLINE_S
        while found.keys() != set(range(low, high)):
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None, message.error()
                if message.offset() < high:
                    found[message.offset()] = message.value()
            position = consumer.position([TopicPartition(topic, partition)])[0].offset
            if position >= high:
                break
            assert time.monotonic() < end, f"read up to {position} of {high} only"
        return found
    finally:
        consumer.close()


def log_bytes(broker: Broker, topic: str, partition: int) -> bytes:
    """All of a replica's segments, one after the other."""
    directory = log_directory(broker, topic, partition)
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def log_directory(broker: Broker, topic: str, partition: int) -> Path:
    """The one place where the broker has the replica."""
    places = [Path(log_dir) / f"{topic}-{partition}" for log_dir in broker.properties["log.dirs"].split(",")]
    (found,) = [place for place in places if place.exists()]
    return found


def wait_for_equal_logs(brokers: list[Broker], topic: str, partition: int) -> None:
    """Every replica holds the same bytes."""

    def equal() -> bool:
        logs = [log_bytes(broker, topic, partition) for broker in brokers]
        assert logs[0], "the log is empty"
        assert [len(log) for log in logs] == [len(logs[0])] * len(logs), [len(log) for log in logs]
        return all(log == logs[0] for log in logs)

    eventually(equal, f"equal logs of {topic}-{partition}")
