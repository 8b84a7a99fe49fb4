"""Messages into a topic, acknowledged by all in-sync replicas."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from kpybroker.client.connect.admin import Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, kafka_error, usage
from kpybroker.client.records.exact import ANY_PARTITION, Exact, Sent, is_plain
from kpybroker.client.records.record import Headers, Record
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
    deadline = time.monotonic() + timeout_s + 1
    with closing(Exact(cluster.settings)) as exact:
        for number, message in enumerate(messages):
            record = _record(message)
            if is_plain(record):
                _begin(producer, message, partial(_keep, done, number))
                continue
            _wait(producer, watch, done, number, deadline)
            if len(done) == number:
                done[number] = None, exact.send(message.topic, _partition(message), record)
    _wait(producer, watch, done, len(messages), deadline)
    return _acknowledged(done, len(messages))


def _wait(producer: Any, watch: ErrorWatch, done: dict[int, tuple[Any, Any]], count: int, deadline: float) -> None:
    """Until so many messages are acknowledged or refused, or the time is over."""
    while len(done) < count and time.monotonic() < deadline:
        producer.poll(POLL_S)
        watch.check()


def _keep(done: dict[int, tuple[Any, Any]], number: int, error: Any, sent: Any) -> None:
    done[number] = error, None if sent is None else Sent(sent.partition(), sent.offset())


def _record(message: Message) -> Record:
    return Record(message.topic, message.key, message.value, message.headers, timestamp_ms=message.timestamp_ms)


def _partition(message: Message) -> int:
    return ANY_PARTITION if message.partition is None else message.partition


def _begin(producer: Any, message: Message, on_delivery: Callable[[Any, Any], None]) -> None:
    timestamp = {} if message.timestamp_ms is None else {"timestamp": message.timestamp_ms}
    try:
        producer.produce(
            message.topic,
            message.value,
            message.key,
            _partition(message),
            headers=message.headers,
            on_delivery=on_delivery,
            **timestamp,
        )
    except KafkaException as error:
        raise kafka_error(error) from None
    except (TypeError, ValueError, OverflowError, BufferError) as error:
        raise usage(f"a message cannot be sent: {error}", "correct it; those before it may have been sent") from None


def _acknowledged(done: Mapping[int, tuple[Any, Any]], count: int) -> list[tuple[int, int]]:
    found = [sent for error, sent in done.values() if error is None]
    if len(found) == count:
        return [tuple(done[number][1]) for number in range(count)]
    what = "the message was" if count == 1 else f"{count - len(found)} of {count} messages were"
    failed = next((error for error, _ in done.values() if error is not None), None)
    if failed is not None:
        error = kafka_error(failed)
        raise error if count == 1 else CommandError(f"{what} not produced: {error.cause}", error.fix)
    raise CommandError(f"{what} not acknowledged in time", "look whether it arrived before sending it again")
