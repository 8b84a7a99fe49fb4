"""Who writes while the cluster suffers: idempotent producers of librdkafka and Java, and a transactional one.

Each numbers its records and says in the history what it received. None may meet a fatal error: with nothing lost, no
producer loses its place.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from compat_tests.faults.history import Acknowledged, History, Outcome, Partition, Record, Transaction
from compat_tests.support.services import write_properties
from compat_tests.support.tools import Tools

CLIENT = {
    "log_level": 0,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 5_000,
    "topic.metadata.refresh.interval.ms": 2_000,
    # with `rebootstrap` librdkafka 2.16 loses its coordinator when all brokers have gone for a moment
    "metadata.recovery.strategy": "none",
}
DELIVERY_MS = 90_000
END_DEADLINE_S = 120.0
IN_FLIGHT_MAX = 1_000
STEP_S = 5.0
STEP_TRIES_MAX = 6
"""Longer than a transaction may take: by then it is aborted, and a client library that stands still is given up."""
ABORTS = 0.2


class Task(threading.Thread):
    """A client in a thread of its own; `stop` asks it to end, and waits."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(daemon=True, name=name)
        self.history = history
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.history.failures.append(f"{self.name} ended: {error!r}")

    def work(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.stopping.set()
        self.join(END_DEADLINE_S)
        if self.is_alive():
            self.history.failures.append(f"{self.name} does not end")


class Target(NamedTuple):
    """Where a writer writes: `partitions` are the first ones of the topic."""

    bootstrap: str
    topic: str
    partitions: int


class Writer(Task):
    """librdkafka, idempotent, one record after the other into each partition in turn."""

    def __init__(self, name: str, history: History, target: Target, rate: float) -> None:
        super().__init__(name, history)
        self.acknowledged = 0
        self._topic, self._partitions, self._pause_s = target.topic, target.partitions, 1 / rate
        self._producer = Producer(
            {
                "bootstrap.servers": target.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": DELIVERY_MS,
                **CLIENT,
            }
        )
        history.idempotent.add(name)

    def work(self) -> None:
        number = 0
        while not self.stopping.wait(self._pause_s):
            self._producer.poll(0)
            if len(self._producer) < IN_FLIGHT_MAX:
                self._write(Record(self.name, number), number % self._partitions)
                number += 1
        left = self._producer.flush(DELIVERY_MS / 1000)
        if left:
            self.history.failures.append(f"{self.name}: {left} records were neither acknowledged nor refused")

    def _write(self, record: Record, partition: int) -> None:
        sent_ns = time.monotonic_ns()

        def reported(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                place = -1 if offset is None else offset
                ack = Acknowledged(record, place, sent_ns, time.monotonic_ns())
                self.history.acknowledged[self._topic, partition].append(ack)
                self.acknowledged += 1
                return
            self.history.refused[record] = str(error)
            if error.fatal():
                self.history.failures.append(f"{self.name} met a fatal error: {error}")

        value = record.value(50 + record.number * 37 % 400)
        try:
            self._producer.produce(self._topic, value, partition=partition, on_delivery=reported)
        except KafkaException as error:
            # A broker that has just started knows of no topics yet; librdkafka believes it, until it hears better.
            self.history.refused[record] = str(error)


class JavaWriter(Task):
    """Kafka's VerifiableProducer, made idempotent."""

    def __init__(self, number: int, history: History, target: Target, rate: int, directory: Path) -> None:
        """Its name is `number`: VerifiableProducer's prefix of values can be nothing else."""
        super().__init__(str(number), history)
        self.acknowledged = 0
        config = directory / f"producer-{number}.properties"
        settings = {
            "enable.idempotence": "true",
            "retries": str(2**31 - 1),
            "delivery.timeout.ms": str(DELIVERY_MS),
            "request.timeout.ms": "5000",
            "max.block.ms": str(DELIVERY_MS),
            "reconnect.backoff.max.ms": "500",
            "metadata.max.age.ms": "2000",
            "linger.ms": "2",
        }
        write_properties(config, settings)
        options = ["--topic", target.topic, "--throughput", str(rate), "--value-prefix", str(number)]
        options += ["--acks", "-1", "--repeating-keys", "50", "--producer.config", str(config)]
        self._said: list[str] = []
        self._process = subprocess.Popen(
            Tools("3.9.1", target.bootstrap).command("verifiable-producer", *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        history.idempotent.add(self.name)

    def work(self) -> None:
        """Its lines. When a record was sent it does not tell, so that acknowledgements have no time."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line) if line.startswith("{") else {}
            match event.get("name"):
                case "producer_send_success":
                    reported = Acknowledged(self._record(event), event["offset"], 0, time.monotonic_ns())
                    self.history.acknowledged[event["topic"], event["partition"]].append(reported)
                    self.acknowledged += 1
                case "producer_send_error":
                    self.history.refused[self._record(event)] = event["message"]
                    if "OutOfOrderSequence" in event["exception"] or "UnknownProducerId" in event["exception"]:
                        self.history.failures.append(f"the Java producer received {event['exception']}")

    def _record(self, event: dict[str, str]) -> Record:
        return Record(self.name, int(event["value"].partition(".")[2]))

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.history.failures.append("the Java producer does not end")
            self._process.kill()
            self._process.wait()
        super().stop()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class TransactionalWriter(Task):
    """librdkafka: transactions over several partitions, some of them aborted."""

    def __init__(
        self, name: str, history: History, target: Target, rate: float, seed: int, say: Callable[[str], None]
    ) -> None:
        super().__init__(name, history)
        self.ended = 0
        self.say = say
        self._target, self._pause_s = target, 1 / rate
        self._random = Random(seed)
        self._number = 0
        history.idempotent.add(name)

    def work(self) -> None:
        while not self.stopping.is_set():
            try:
                producer = self._new()
                while not self.stopping.wait(self._pause_s):
                    self._one(producer)
            except KafkaException as error:
                # A coordinator that was away for long: the next producer of this id ends what this one left open.
                self.say(f"{self.name} begins again: {error}")
        # What may still be open is ended, so that committed readers come to the end.
        self._new()

    def _new(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._target.bootstrap,
                "transactional.id": self.name,
                "transaction.timeout.ms": 15_000,
                "linger.ms": 1,
                **CLIENT,
            }
        )
        insist(producer.init_transactions)
        return producer

    def _one(self, producer: Producer) -> None:
        records: list[tuple[Partition, Record]] = []
        outcome = Outcome.UNKNOWN
        try:
            producer.begin_transaction()
            for _ in range(self._random.randint(1, 4)):
                partition = self._random.randrange(self._target.partitions)
                record = Record(self.name, self._number)
                self._number += 1
                records.append(((self._target.topic, partition), record))
                producer.produce(self._target.topic, record.value(60), partition=partition)
            outcome = self._end(producer)
        finally:
            self.history.transactions.append(Transaction(outcome, tuple(records)))
            self.ended += 1

    def _end(self, producer: Producer) -> Outcome:
        try:
            if self._random.random() >= ABORTS:
                insist(producer.commit_transaction)
                return Outcome.COMMITTED
            producer.flush(STEP_S)  # so that there is something to be aborted
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        insist(producer.abort_transaction)
        return Outcome.ABORTED


def insist(step: object) -> None:
    """Call `step(timeout)`, again while librdkafka says that the same call may be made again."""
    assert callable(step)
    for attempt in range(STEP_TRIES_MAX):
        try:
            step(STEP_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or attempt + 1 == STEP_TRIES_MAX:
                raise
