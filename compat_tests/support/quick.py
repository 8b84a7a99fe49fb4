"""Setting the scene from inside the test process with librdkafka, where the client is not what is under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.support.security.logins import reach

DEADLINE_S = 120.0
# librdkafka talks to stderr when a broker goes away; here brokers go away on purpose
QUIET = {"log_level": 0}


def admin_client(bootstrap: str) -> AdminClient:
    """Keep it in a variable: the futures it returns never complete once it is collected."""
    return AdminClient({**reach(bootstrap), **QUIET})


def create_topic(bootstrap: str, topic: str, partitions: int = 1, replicas: int = 1, **config: Any) -> None:
    """Make a topic; keys of `config` have `_` for `.`."""
    keys = {key.replace("_", "."): str(value) for key, value in config.items()}
    admin = admin_client(bootstrap)
    made = admin.create_topics(
        [NewTopic(topic, partitions, replicas, config=keys)], operation_timeout=DEADLINE_S, request_timeout=DEADLINE_S
    )
    made[topic].result(timeout=DEADLINE_S)


def fill(
    bootstrap: str, topic: str, values: Sequence[str], partition: int = 0, timestamps: Sequence[int] | None = None
) -> None:
    """Write `values` in order into one partition and wait until they are acknowledged."""
    producer = Producer({**reach(bootstrap), "linger.ms": 5, **QUIET})
    failures: list[str] = []

    def report(error: object, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    for n, value in enumerate(values):
        stamp = {} if timestamps is None else {"timestamp": timestamps[n]}
        producer.produce(topic, value.encode(), partition=partition, on_delivery=report, **stamp)
    left = producer.flush(DEADLINE_S)
    assert (left, failures) == (0, []), f"{left} not delivered, {failures[:3]}"


def read(bootstrap: str, partitions: Sequence[tuple[str, int]], count: int, group: str | None = None) -> list[Message]:
    """Read `count` records from the start of `partitions`; with `group`, commit there what was read."""
    consumer = Consumer(
        {
            **reach(bootstrap),
            "group.id": group or "none",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in partitions])
    messages: list[Message] = []
    try:
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), DEADLINE_S)
            assert batch, f"{len(messages)} of {count} records within {DEADLINE_S} s"
            for message in batch:
                assert message.error() is None, message.error()
            messages += batch
        if group is not None:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return messages


def committed(bootstrap: str, group: str, partitions: Sequence[tuple[str, int]]) -> list[int]:
    """The offsets that `group` has committed."""
    consumer = Consumer({**reach(bootstrap), "group.id": group, **QUIET})
    try:
        found = consumer.committed([TopicPartition(*part) for part in partitions], timeout=DEADLINE_S)
        return [part.offset for part in found]
    finally:
        consumer.close()


def end_offset(bootstrap: str, topic: str, partition: int) -> int:
    consumer = Consumer({**reach(bootstrap), "group.id": "none", **QUIET})
    try:
        end: int = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=DEADLINE_S)[1]
        return end
    finally:
        consumer.close()
