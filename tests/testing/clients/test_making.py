"""Clients that a broker makes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from kpybroker.testing import Broker, Codec
from kpybroker.testing.clients.libraries import SYNC, SyncLibrary

TEXT = b"the same again, " * 100


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics=["orders"], in_thread=True) as running:
        yield running


def produced_bytes(broker: Broker) -> int:
    """Of the batch that was produced last, as it was sent."""
    (partition,) = _last(broker)["topic_data"][0]["partition_data"]
    size: int = partition["records"]["bytes"]
    return size


def _last(broker: Broker) -> Any:
    return broker.requests("Produce")[-1].request


@pytest.mark.parametrize("codec", get_args(Codec))
@pytest.mark.parametrize("library", SYNC)
def test_a_producer_compresses_as_it_is_asked_to(broker: Broker, library: SyncLibrary, codec: Codec) -> None:
    producer: Any = broker.producer(library=library, compression_type=codec)
    if library == "kafka-python":
        producer.send("orders", TEXT)
    else:
        producer.produce("orders", TEXT)
    producer.flush()
    assert (produced_bytes(broker) < len(TEXT)) is (codec != "none")


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_producer_of_aiokafka_does_so_too(broker: Broker, codec: Codec) -> None:
    async def run() -> None:
        async with broker.aio_producer(compression_type=codec) as producer:
            await producer.send_and_wait("orders", TEXT)

    asyncio.run(run())
    assert (produced_bytes(broker) < len(TEXT)) is (codec != "none")
