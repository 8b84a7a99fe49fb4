"""Messages into a topic, acknowledged by all in-sync replicas."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from kpybroker.client.connect.admin import Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, kafka_error, usage
from kpybroker.client.records.record import Headers
from kpybroker.console.queries.topics import find

POLL_S: Final = 0.05
MESSAGE_BYTES_MAX: Final = 16 << 20


class Message(NamedTuple):
    """What to send; without a partition the key decides."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None
    timestamp_ms: int | None = None


def produce(cluster: Cluster, message: Message) -> tuple[int, int]:
    """The partition and offset that the message got. Raises CommandError."""
    return produce_all(cluster, [message])[0]


def produce_all(cluster: Cluster, messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The partition and offset of each message of one topic. Raises CommandError if one was not acknowledged."""
    topic = find(cluster, messages[0].topic)
    for message in messages:
        if message.partition is not None and message.partition >= len(topic.partitions):
            raise usage(f"topic {topic.name} has no partition {message.partition}", "its page shows the partitions")
    watch = ErrorWatch()
    timeout_s = cluster.settings.timeout_s
    keys: dict[str, Any] = {
        "acks": "all",
        "partitioner": "murmur2_random",
        "message_max_bytes": MESSAGE_BYTES_MAX,
        "message_timeout_ms": int(timeout_s * 1000),
    }
    producer = make(Producer, cluster.settings, watch, **keys)
    done: dict[int, tuple[Any, Any]] = {}
    try:
        for number, message in enumerate(messages):
            _begin(producer, message, partial(_keep, done, number))
    except KafkaException as error:
        raise kafka_error(error) from None
    deadline = time.monotonic() + timeout_s + 1
    while len(done) < len(messages) and time.monotonic() < deadline:
        producer.poll(POLL_S)
        watch.check()
    return _acknowledged(done, len(messages))


def _keep(done: dict[int, tuple[Any, Any]], number: int, error: Any, sent: Any) -> None:
    done[number] = error, sent


def _begin(producer: Any, message: Message, on_delivery: Callable[[Any, Any], None]) -> None:
    timestamp = {} if message.timestamp_ms is None else {"timestamp": message.timestamp_ms}
    producer.produce(
        message.topic,
        message.value,
        message.key,
        -1 if message.partition is None else message.partition,
        headers=message.headers,
        on_delivery=on_delivery,
        **timestamp,
    )


def _acknowledged(done: Mapping[int, tuple[Any, Any]], count: int) -> list[tuple[int, int]]:
    found = [sent for error, sent in done.values() if error is None]
    if len(found) == count:
        return [(done[number][1].partition(), done[number][1].offset()) for number in range(count)]
    what = "the message was" if count == 1 else f"{count - len(found)} of {count} messages were"
    failed = next((error for error, _ in done.values() if error is not None), None)
    if failed is not None:
        error = kafka_error(failed)
        raise error if count == 1 else CommandError(f"{what} not produced: {error.cause}", error.fix)
    raise CommandError(f"{what} not acknowledged in time", "look whether it arrived before sending it again")


def parse_headers(text: str) -> Headers:
    """A header a line, NAME=VALUE; NAME alone has a null value. Raises CommandError."""
    found: Headers = []
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = line.partition("=")
        if not name.strip():
            raise usage(f"{line[:100]!r} has no name", "write a header a line: NAME=VALUE")
        found.append((name.strip(), value.encode() if equals else None))
    return found
