"""The same producer and consumer in three client libraries, for tests that make requests fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kpybroker.testing import Broker

LIBRARIES = ("confluent-kafka", "kafka-python", "aiokafka")
DELIVERY_S = 120
IDLE_S = 120
POLL_S = 0.1


def produce(
    broker: Broker, library: str, topic: str, values: Sequence[str], *, request_timeout_s: float = 10, **options: Any
) -> None:
    """Send the values to partition 0, each in a batch of its own, one after the other; raises what the client raises.

    Every client is idempotent unless `options` say otherwise.
    """
    PRODUCERS[library](broker, topic, values, request_timeout_s, **options)


def _confluent(broker: Broker, topic: str, values: Sequence[str], timeout_s: float, *, idempotent: bool = True) -> None:
    from confluent_kafka import KafkaError, KafkaException

    producer = broker.producer(
        library="confluent-kafka",
        linger_ms=0,
        enable_idempotence=idempotent,
        request_timeout_ms=round(timeout_s * 1000),
        socket_timeout_ms=round(timeout_s * 1000),
        message_timeout_ms=DELIVERY_S * 1000,
        retry_backoff_ms=20,
        retry_backoff_max_ms=100,
        reconnect_backoff_ms=10,
        topic_metadata_refresh_fast_interval_ms=20,
    )
    for value in values:
        errors: list[KafkaError] = []
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _, errors=errors: errors.append(error))
        assert producer.flush(DELIVERY_S + 5) == 0, "not delivered"
        if errors[0] is not None:
            raise KafkaException(errors[0])


def _kafka_python(
    broker: Broker, topic: str, values: Sequence[str], timeout_s: float, *, idempotent: bool = True
) -> None:
    producer = broker.producer(
        library="kafka-python",
        enable_idempotence=idempotent,
        acks="all",
        retries=1000,
        max_in_flight_requests_per_connection=1,
        request_timeout_ms=round(timeout_s * 1000),
        delivery_timeout_ms=DELIVERY_S * 1000,
        retry_backoff_ms=20,
        reconnect_backoff_ms=10,
    )
    try:
        for value in values:
            producer.send(topic, value.encode(), partition=0).get(DELIVERY_S + 5)
    finally:
        producer.close(timeout=1)


def _aiokafka(broker: Broker, topic: str, values: Sequence[str], timeout_s: float, *, idempotent: bool = True) -> None:
    async def run() -> None:
        producer = broker.aio_producer(
            enable_idempotence=idempotent,
            acks="all",
            request_timeout_ms=round(timeout_s * 1000),
            retry_backoff_ms=20,
        )
        await producer.start()
        try:
            for value in values:
                await asyncio.wait_for(producer.send_and_wait(topic, value.encode(), partition=0), DELIVERY_S)
        finally:
            await producer.stop()

    asyncio.run(run())


PRODUCERS: dict[str, Callable[..., None]] = {
    "confluent-kafka": _confluent,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}


@dataclass(slots=True)
class Goal:
    """What it reads for: so many different values, and `until` is true; `IDLE_S` without anything new is too long."""

    count: int
    until: Callable[[], bool] = lambda: True
    commits: bool = True
    values: list[str] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def take(self, value: bytes) -> None:
        self.values.append(value.decode())
        self.since = time.monotonic()

    def goes_on(self) -> bool:
        assert time.monotonic() < self.since + IDLE_S, f"nothing new for {IDLE_S} s after {self.values}"
        return not self.until() or len(set(self.values)) < self.count


def consume(broker: Broker, library: str, topic: str, group: str, wanted: Goal, **options: Any) -> list[str]:
    """Values of a topic, in a group that commits them in the end; raises what the client raises."""
    CONSUMERS[library](broker, topic, group, wanted, {"enable_auto_commit": False, **options})
    return wanted.values


def _confluent_consumer(broker: Broker, topic: str, group: str, wanted: Goal, options: dict[str, Any]) -> None:
    from confluent_kafka import KafkaException

    quick: dict[str, Any] = {"fetch_error_backoff_ms": 20, "reconnect_backoff_ms": 10}
    consumer = broker.consumer(group, topic, library="confluent-kafka", check_crcs=True, **quick, **options)
    try:
        while wanted.goes_on():
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            wanted.take(message.value())
        if wanted.commits:
            consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def _kafka_python_consumer(broker: Broker, topic: str, group: str, wanted: Goal, options: dict[str, Any]) -> None:
    quick: dict[str, Any] = {"retry_backoff_ms": 20, "reconnect_backoff_ms": 10}
    consumer = broker.consumer(group, topic, library="kafka-python", **quick, **options)
    try:
        while wanted.goes_on():
            # With a shorter timeout it sometimes stalls for minutes after a join that had to be repeated.
            for messages in consumer.poll(timeout_ms=1000).values():
                for message in messages:
                    wanted.take(message.value)
        if wanted.commits:
            consumer.commit()
    finally:
        consumer.close()


def _aiokafka_consumer(broker: Broker, topic: str, group: str, wanted: Goal, options: dict[str, Any]) -> None:
    async def run() -> None:
        consumer = broker.aio_consumer(group, topic, retry_backoff_ms=20, **options)
        await consumer.start()
        try:
            while wanted.goes_on():
                for messages in (await consumer.getmany(timeout_ms=round(POLL_S * 1000))).values():
                    for message in messages:
                        wanted.take(message.value)
            if wanted.commits:
                await consumer.commit()
        finally:
            await consumer.stop()

    asyncio.run(run())


CONSUMERS: dict[str, Callable[[Broker, str, str, Goal, dict[str, Any]], None]] = {
    "confluent-kafka": _confluent_consumer,
    "kafka-python": _kafka_python_consumer,
    "aiokafka": _aiokafka_consumer,
}
