"""Consume, transform, produce with confluent-kafka: copies one partition, or its share of a topic as a group's member.

    python confluent_copier.py '{"bootstrap": ..., "group": ..., "source": ..., "partition": 0, "count": ...,
        "target": ..., "transactional_id": ..., "transaction_size": 20, "timeout_ms": ..., "seed": ...}'

It copies `count` records of a partition and ends with 0; without "partition" it subscribes and goes on until it is
killed. One transaction in ten it aborts on purpose, one in thirty it leaves open for a moment before the commit. What
it does it says in JSON lines; "commit" comes before the commit is asked for. It knows nothing of the tests.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

STEP_S = 30.0
STEP_TRIES_MAX = 4
HOLD_S = 0.2
FENCED = 3
LOST_ITS_PLACE = 4
STANDSTILL_S = 20.0


def say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def insist(step: Callable[[float], Any]) -> Any:
    """Call `step(timeout)`, again while librdkafka says that the same call may be made again."""
    for attempt in range(STEP_TRIES_MAX):
        try:
            return step(STEP_S)
        except KafkaException as error:
            if not error.args[0].retriable() or attempt + 1 == STEP_TRIES_MAX:
                raise
    raise AssertionError("not reached")


@contextmanager
def ends_at_standstill() -> Iterator[None]:
    """End the process when this takes too long; its parent starts another.

    librdkafka 2.16 remembers who coordinates the group. When that broker leaves the metadata between two calls of
    send_offsets_to_transaction, the second one waits forever for a connection to it, whatever its timeout. The same
    happens on real Kafka.
    """

    def end() -> None:
        say(event="ended", error="_TIMED_OUT: send_offsets_to_transaction stands still")
        os._exit(LOST_ITS_PLACE)

    timer = threading.Timer(STANDSTILL_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Copier:
    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.partition: int | None = spec.get("partition")
        self.positions: dict[int, int] = {}
        self.batch: list[Message] = []
        self.random = Random(spec["seed"])
        common = {
            "bootstrap.servers": spec["bootstrap"],
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
            # librdkafka 2.16 with `rebootstrap`, its default, forgets its only broker when that goes away, but not
            # that it was the group's coordinator: on real Kafka too, the next send_offsets_to_transaction never ends
            "metadata.recovery.strategy": "none",
        }
        self.producer = Producer(
            {
                **common,
                "transactional.id": spec["transactional_id"],
                "transaction.timeout.ms": spec["timeout_ms"],
                "batch.num.messages": 5,
                "linger.ms": 1,
            }
        )
        self.consumer = Consumer(
            {
                **common,
                "group.id": spec["group"],
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "fetch.wait.max.ms": 50,
            }
        )

    def run(self) -> None:
        # what a predecessor left open is aborted first, so that the offsets to start from are settled
        insist(self.producer.init_transactions)
        say(event="initialized")
        if self.partition is None:
            drop = self.drop
            self.consumer.subscribe([self.spec["source"]], on_revoke=drop, on_lost=drop)
        else:
            self.go_to_committed([self.partition])
        while not self.is_done():
            self.gather()
            if self.batch:
                self.copy(self.batch)
                self.batch.clear()
        self.consumer.close()

    def is_done(self) -> bool:
        return self.partition is not None and self.positions[self.partition] >= self.spec["count"]

    def gather(self) -> None:
        """The next transaction's records: as many as there are, at most what belongs into one."""
        while len(self.batch) < self.spec["transaction_size"]:
            message = self.consumer.poll(0.1)
            if message is None:
                return
            if message.error() is None:
                self.batch.append(message)

    def drop(self, _consumer: Consumer, _places: list[TopicPartition]) -> None:
        """The group is shared again: the member that gets these partitions copies these records."""
        self.batch.clear()

    def go_to_committed(self, partitions: Iterable[int]) -> None:
        """Back to what the group has committed, or to the start."""
        wanted = [TopicPartition(self.spec["source"], partition) for partition in partitions]
        for place in insist(lambda timeout: self.consumer.committed(wanted, timeout)):
            place.offset = max(0, place.offset)
            self.positions[place.partition] = place.offset
            if self.partition is None:
                self.consumer.seek(place)
            else:
                self.consumer.assign([place])

    def copy(self, messages: list[Message]) -> None:
        try:
            self.producer.begin_transaction()
            for message in messages:
                self.producer.produce(
                    self.spec["target"], message.value(), message.key(), partition=message.partition()
                )
                self.positions[message.partition()] = message.offset() + 1
            copied = {message.partition() for message in messages}
            places = [TopicPartition(self.spec["source"], part, self.positions[part]) for part in copied]
            metadata = self.consumer.consumer_group_metadata()
            with ends_at_standstill():
                insist(lambda timeout: self.producer.send_offsets_to_transaction(places, metadata, timeout))
            self.end(messages)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            say(event="failed", error=str(error))
            self.abort(messages)

    def end(self, messages: list[Message]) -> None:
        chance = self.random.random()
        if chance < 0.1:
            self.producer.flush(STEP_S)  # so that there is something in the log to be aborted
            self.abort(messages)
            return
        if chance < 0.13:
            self.producer.flush(STEP_S)
            time.sleep(HOLD_S)
        copied = [[message.partition(), message.offset()] for message in messages]
        say(event="commit", records=copied, time_ns=time.monotonic_ns())
        insist(self.producer.commit_transaction)
        say(event="committed", count=len(copied))

    def abort(self, messages: list[Message]) -> None:
        insist(self.producer.abort_transaction)
        say(event="aborted")
        self.go_to_committed({message.partition() for message in messages})


def main() -> int:
    try:
        Copier(json.loads(sys.argv[1])).run()
    except KafkaException as error:
        cause = error.args[0]
        say(event="ended", error=f"{cause.name()}: {cause.str()}")
        return FENCED if cause.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED) else LOST_ITS_PLACE
    return 0


if __name__ == "__main__":
    sys.exit(main())
