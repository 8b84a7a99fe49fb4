"""One message into a topic, acknowledged by all in-sync replicas."""

from __future__ import annotations

import time
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


def produce(cluster: Cluster, message: Message) -> tuple[int, int]:
    """The partition and offset that the message got. Raises CommandError."""
    topic = find(cluster, message.topic)
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
    done: list[tuple[Any, Any]] = []
    try:
        producer.produce(
            message.topic,
            message.value,
            message.key,
            -1 if message.partition is None else message.partition,
            headers=message.headers,
            on_delivery=lambda error, sent: done.append((error, sent)),
        )
    except KafkaException as error:
        raise kafka_error(error) from None
    deadline = time.monotonic() + timeout_s + 1
    while not done and time.monotonic() < deadline:
        producer.poll(POLL_S)
        watch.check()
    if not done:
        raise CommandError(
            "the message was not acknowledged in time", "look whether it arrived before sending it again"
        )
    failure, sent = done[0]
    if failure is not None:
        raise kafka_error(failure)
    return sent.partition(), sent.offset()


def parse_headers(text: str) -> Headers:
    """A header a line, NAME=VALUE; NAME alone has a null value. Raises CommandError."""
    found: Headers = []
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = line.partition("=")
        if not name.strip():
            raise usage(f"{line[:100]!r} has no name", "write a header a line: NAME=VALUE")
        found.append((name.strip(), value.encode() if equals else None))
    return found
