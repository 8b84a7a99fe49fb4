"""What is in a topic, to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from compat_tests.connect.workers import DEADLINE_S
from compat_tests.support.quick import QUIET
from compat_tests.support.waiting import eventually

T = TypeVar("T")


def read_to_end(bootstrap: str, topic: str, partition: int = 0) -> list[Message]:
    """All committed records of a partition; none if there is no such topic yet."""
    settings = {"group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", **settings, **QUIET})
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages: list[Message] = []
    try:
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{topic}: {len(messages)} records, and then no more"
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return messages
            else:
                assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART, error
                return []
    finally:
        consumer.close()


def becomes(read: Callable[[], list[T]], expected: list[T], what: str) -> None:
    """Wait until as many are there as expected, and compare: what is wrong in a log, or there twice, stays so."""

    def enough() -> list[list[T]]:
        found = read()
        assert len(found) >= len(expected), f"{len(found)} of {len(expected)}, {_difference(found, expected)}"
        return [found]

    (found,) = eventually(enough, what, DEADLINE_S)
    assert found == expected, f"{what}: {_difference(found, expected)}"


def _difference(found: list[T], expected: list[T]) -> str:
    pairs = enumerate(zip(found, expected, strict=False))
    first = next((f"the first difference at {n}: {a} for {b}" for n, (a, b) in pairs if a != b), None)
    return first or f"then {found[len(expected) :][:3]} for {expected[len(found) :][:3]}"
