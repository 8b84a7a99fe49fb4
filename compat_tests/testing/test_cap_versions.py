"""Clients of today with a broker that serves what Kafka served years ago."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import KafkaException

from compat_tests.support.waiting import eventually
from kpybroker.testing import Broker, Release

OLDEST_OF_CONFLUENT, OLDEST = "0.11.0", "0.10.2"
RELEASES = (OLDEST_OF_CONFLUENT, "1.1", "2.4", "2.8", "3.5", "3.9")


@pytest.fixture
def own() -> Iterator[Broker]:
    with Broker(topics=["orders"]) as running:
        yield running


def confluent(broker: Broker) -> list[bytes | None]:
    producer = broker.producer(library="confluent-kafka")
    producer.produce("orders", b"1")
    assert producer.flush(60) == 0
    consumer = broker.consumer("billing", "orders", library="confluent-kafka")
    found = consumer.consume(1, 60)
    consumer.commit(asynchronous=False)
    consumer.close()
    return [message.value() for message in found]


def kafka_python(broker: Broker) -> list[bytes | None]:
    producer = broker.producer(library="kafka-python")
    producer.send("orders", b"1").get(60)
    producer.close()
    consumer = broker.consumer("billing", "orders", library="kafka-python")
    found = next(consumer)
    consumer.commit()
    consumer.close()
    return [found.value]


def aiokafka(broker: Broker) -> list[bytes | None]:
    async def run() -> list[bytes | None]:
        async with broker.aio_producer() as producer:
            await producer.send_and_wait("orders", b"1")
        async with broker.aio_consumer("billing", "orders") as consumer:
            message = await consumer.getone()
            await consumer.commit()
            return [message.value]

    return asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize(
    ("client", "release"),
    [
        pytest.param(
            client,
            release,
            id=f"{client.__name__}-{release}",
            marks=[] if client is confluent or release == OLDEST_OF_CONFLUENT else pytest.mark.wide,
        )
        for client in (confluent, kafka_python, aiokafka)
        for release in RELEASES
    ],
)
def test_a_client_does_with_what_the_release_serves(
    own: Broker, client: Callable[[Broker], list[bytes | None]], release: Release
) -> None:
    own.cap_versions(release)
    assert client(own) == [b"1"]
    assert own.committed("billing") == {"orders": {0: 1}}
    newest = own.channel.call("cap_versions", as_version=release)
    used = {(one.api, one.version) for one in own.requests()}
    assert {api for api, _ in used} >= {"Produce", "Fetch", "OffsetCommit"}
    assert all(version <= newest[api][1] for api, version in used if api != "ApiVersions"), used


def test_what_the_release_does_not_have_fails(own: Broker) -> None:
    own.cap_versions("0.10.2")
    producer = own.producer(library="confluent-kafka", enable_idempotence=True, log_level=0)
    producer.produce("orders", b"1")
    with pytest.raises(KafkaException, match="Idempotent producer not supported"):
        producer.flush(60)
    assert own.requests(api="InitProducerId") == []


def test_a_single_api_can_be_capped_while_a_client_is_connected(own: Broker) -> None:
    consumer = own.consumer("billing", "orders", library="confluent-kafka")
    own.produce("orders", ["1"])
    assert [message.value() for message in consumer.consume(1, 60)] == [b"1"]
    own.clear_requests()
    own.cap_versions(apis={"Fetch": (0, 11)})
    found: list[bytes | None] = []

    def read_on(value: str) -> bool:
        found.extend(message.value() for message in consumer.consume(1, 1) if message.error() is None)
        return found[-1:] == [value.encode()]

    for value in ("2", "3"):  # the first one may be the response to a fetch that was there before
        own.produce("orders", [value])
        eventually(partial(read_on, value), "the client reads on")
    assert found == [b"2", b"3"]
    assert {one.version for one in own.requests(api="Fetch")} >= {11}
    consumer.close()
