"""Clients of every kind that work for hours and remember little: each checks what it sees at once.

Threads have a client of librdkafka, kafka-python or aiokafka; Kafka's own tools and kcat are processes that are started
again when they end, as they do when the broker is away for longer than they wait. The broker is restarted in order, so
no acknowledged record may be lost, and a reader sees the numbers of a partition without a gap.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.bench.load.clients import consumer_performance, producer_performance

QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}
NUMBERED, COMPACTED, PAID, JAVA = "hours-numbered", "hours-compacted", "hours-paid", "hours-java"
TOPICS = {
    NUMBERED: {"retention.ms": "300000", "segment.bytes": "4000000"},
    COMPACTED: {
        "cleanup.policy": "compact",
        "segment.bytes": "2000000",
        "min.cleanable.dirty.ratio": "0.2",
        "segment.ms": "60000",
    },
    PAID: {"retention.ms": "300000", "segment.bytes": "4000000"},
    JAVA: {"retention.ms": "300000", "segment.bytes": "8000000"},
}
PARTITIONS = 4
KEYS = 2000
PACE_S = 0.02
AWAY_S = 1.0
PROBLEMS_MAX = 20
ENDLESS = 1_000_000_000
STOP_S = 60.0


class Problems:
    """What went wrong, the first of it in words."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.texts: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        with self._lock:
            self.count += 1
            if len(self.texts) < PROBLEMS_MAX:
                self.texts.append(text)


class Worker(threading.Thread):
    """Calls `step` until it is stopped. `done` counts what it did, so that a line can say that it still works."""

    def __init__(self, name: str, problems: Problems) -> None:
        super().__init__(name=name, daemon=True)
        self.problems = problems
        self.done = 0
        self.is_over = threading.Event()

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                self.step()
            self.finish()
        except Exception as error:
            self.problems.add(f"{self.name} ended: {error!r}")

    def step(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """When it is stopped."""


class Writer(Worker):
    """Numbers its records in each partition; an idempotent producer of librdkafka may lose none, nor swap two."""

    def __init__(self, bootstrap: str, problems: Problems) -> None:
        super().__init__("librdkafka's producer", problems)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": "lz4", **QUIET}
        )
        self._next = [0] * PARTITIONS
        self._random = Random(1)

    def step(self) -> None:
        partition = self._random.randrange(PARTITIONS)
        with suppress(BufferError):
            for _ in range(10):
                value = b"%d " % self._next[partition] + self._random.randbytes(300)
                self._producer.produce(NUMBERED, value, partition=partition, on_delivery=self._reported)
                self._next[partition] += 1
        key = b"key-%d" % self._random.randrange(KEYS)
        with suppress(BufferError):
            self._producer.produce(COMPACTED, self._random.randbytes(200), key, on_delivery=self._reported)
        self._producer.poll(PACE_S)

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        self.done += 1
        if error is not None:
            self.problems.add(f"{self.name} gave up a record of {message.topic()}: {error}")

    def finish(self) -> None:
        if left := self._producer.flush(STOP_S):
            self.problems.add(f"{self.name}: {left} records got no response")


class Reader(Worker):
    """A member of a group that finds the numbers of `Writer` without a gap."""

    def __init__(self, bootstrap: str, problems: Problems, protocol: str) -> None:
        super().__init__(f"a member of a {protocol} group", problems)
        self._last: dict[int, int] = {}
        settings: dict[str, Any] = (
            {"group.protocol": "consumer"} if protocol == "new" else {"session.timeout.ms": 30_000}
        )
        group = {"group.id": f"hours-{protocol}", "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **group, **settings, **QUIET})
        self._consumer.subscribe([NUMBERED])

    def step(self) -> None:
        for message in self._consumer.consume(500, 0.2):
            if message.error() is not None:
                continue  # the broker is away
            self.done += 1
            number, partition = int(message.value().split(b" ", 1)[0]), message.partition()
            last = self._last.get(partition)
            if last is not None and number > last + 1:
                self.problems.add(f"{self.name}: {number} follows {last} in partition {partition}")
            self._last[partition] = number

    def finish(self) -> None:
        self._consumer.close()


class Payer(Worker):
    """Transactions, every fifth of which is aborted."""

    def __init__(self, bootstrap: str, problems: Problems) -> None:
        super().__init__("a transactional producer", problems)
        self._address = bootstrap
        self._producer: Producer | None = None

    def step(self) -> None:
        try:
            if self._producer is None:
                settings = {"transactional.id": "hours-payer", "transaction.timeout.ms": 60_000}
                self._producer = Producer({"bootstrap.servers": self._address, **settings, **QUIET})
                self._producer.init_transactions(STOP_S)
            self._producer.begin_transaction()
            for partition in range(PARTITIONS):
                self._producer.produce(PAID, b"x" * 100, partition=partition)
            if self.done % 5 == 4:
                self._producer.abort_transaction(STOP_S)
            else:
                self._producer.commit_transaction(STOP_S)
            self.done += 1
        except KafkaException as error:
            if error.args[0].fatal():
                self.problems.add(f"{self.name}: {error}")
            self._producer = None  # begins again under its id
            self.is_over.wait(AWAY_S)
        self.is_over.wait(PACE_S)


class Administrator(Worker):
    """Creates a topic, looks at it and deletes it; descriptors and memory of each must go with it."""

    def __init__(self, bootstrap: str, problems: Problems) -> None:
        super().__init__("an administrator", problems)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})

    def step(self) -> None:
        name = f"hours-short-{self.done}"
        try:
            self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(STOP_S)
            self._admin.list_topics(timeout=STOP_S)
            self._admin.delete_topics([name])[name].result(STOP_S)
        except KafkaException:
            self.is_over.wait(AWAY_S)  # the broker is away; a topic that stays is one of few
        self.done += 1
        self.is_over.wait(0.5)


class KafkaPython(Worker):
    """A producer and a consumer of kafka-python, made again now and then: connections end too."""

    def __init__(self, bootstrap: str, problems: Problems) -> None:
        super().__init__("kafka-python", problems)
        self._address = bootstrap

    def step(self) -> None:
        from kafka import KafkaConsumer, KafkaProducer
        from kafka.errors import KafkaError as PythonsError

        with suppress(PythonsError):
            producer = KafkaProducer(bootstrap_servers=self._address, acks="all")
            consumer = KafkaConsumer(JAVA, bootstrap_servers=self._address, consumer_timeout_ms=1000)
            try:
                end = time.monotonic() + 20
                while time.monotonic() < end and not self.is_over.is_set():
                    producer.send(JAVA, b"y" * 100).get(timeout=STOP_S)
                    self.done += len(consumer.poll(timeout_ms=100, max_records=100))
            finally:
                producer.close(5)
                consumer.close()
        self.is_over.wait(AWAY_S)


class Prober(Worker):
    """One record at a time, acks=all: how long each took, for the percentiles of an hour."""

    def __init__(self, bootstrap: str, problems: Problems) -> None:
        super().__init__("the prober", problems)
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, **QUIET})
        self._took_ms: list[float] = []
        self._lock = threading.Lock()

    def step(self) -> None:
        begin = time.perf_counter()
        self._producer.produce(JAVA, b"z" * 100)
        self._producer.flush(STOP_S)
        with self._lock:
            self._took_ms.append((time.perf_counter() - begin) * 1000)
        self.done += 1
        self.is_over.wait(0.2)

    def taken(self) -> list[float]:
        """Since the last call."""
        with self._lock:
            found, self._took_ms = self._took_ms, []
        return found


class Tool(Worker):
    """A program that runs for as long as it can, and is started again when it ends."""

    def __init__(self, name: str, command: list[str], problems: Problems) -> None:
        super().__init__(name, problems)
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def step(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.done += 1
        while not self.is_over.is_set() and self._process.poll() is None:
            self.is_over.wait(0.5)
        self._process.terminate()
        self._process.wait()
        self.is_over.wait(AWAY_S)


def every_client(bootstrap: str, problems: Problems, *, java: bool) -> Iterator[Worker]:
    """All of them, not started."""
    makers: list[Callable[[str, Problems], Worker]] = [Writer, Payer, Administrator, KafkaPython, Prober]
    for make in makers:
        yield make(bootstrap, problems)
    for protocol in ("classic", "new"):
        yield Reader(bootstrap, problems, protocol)
    yield Tool("kcat", ["kcat", "-C", "-q", "-b", bootstrap, "-t", COMPACTED, "-o", "beginning"], problems)
    if java:
        command = producer_performance(bootstrap, JAVA, ENDLESS, 500, {"acks": "all"})
        command[command.index("--throughput") + 1] = "200"
        yield Tool("Kafka's producer", command, problems)
        yield Tool("Kafka's consumer", consumer_performance(bootstrap, JAVA, ENDLESS, "hours-java"), problems)


def make_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for name, config in TOPICS.items():
        admin.create_topics([NewTopic(name, PARTITIONS, 1, config=config)])[name].result(STOP_S)


def ends(bootstrap: str) -> dict[str, int]:
    """The records that each topic has had."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "hours-ends", **QUIET})
    try:
        return {
            name: sum(
                consumer.get_watermark_offsets(TopicPartition(name, number), STOP_S)[1] for number in range(PARTITIONS)
            )
            for name in TOPICS
        }
    finally:
        consumer.close()
