"""Every shortcut gives the same responses as the plain path next to it, over real sockets."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.poller import Poller
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.keys.own import FAST_PRODUCE, POLLER, SHORTCUTS
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import build_batch
from tests.support.brokers.running_broker import create_topic, settings

NOW_MS = 1_700_000_000_000
VALUES = [SHORTCUTS, frozenset[str](), *(SHORTCUTS - {name} for name in sorted(SHORTCUTS))]


def frame(correlation_id: int, key: ApiKey, version: int, request: Any) -> bytes:
    body = encode_request_header(RequestHeader(key, version, correlation_id, "test")) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def produce(correlation_id: int, topic: str, value: bytes, acks: int) -> bytes:
    batch = memoryview(bytes(build_batch([(None, value, NOW_MS)])))
    data = ProduceRequest.TopicProduceData(
        name=topic, partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)]
    )
    return frame(correlation_id, ApiKey.PRODUCE, 9, ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[data]))


def fetch(correlation_id: int, topic: str, offset: int) -> bytes:

    make = FetchRequest.FetchPartition
    topics = [
        FetchRequest.FetchTopic(
            topic=topic, partitions=[make(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)]
        )
    ]
    request = FetchRequest(replica_id=-1, max_wait_ms=50, min_bytes=1, max_bytes=1 << 20, topics=topics)
    return frame(correlation_id, ApiKey.FETCH, 11, request)


REQUESTS = [
    produce(1, "t", b"small", 1),
    produce(2, "t", b"m" * 20_000, -1),
    produce(3, "t", b"L" * 700_000, 1),
    produce(4, "nowhere", b"refused", 1),
    fetch(5, "t", 0),
    fetch(6, "t", 2),
    fetch(7, "t", 3),
]


async def responses(directory: Path, shortcuts: frozenset[str]) -> list[bytes]:
    keys = settings(directory, listeners="PLAINTEXT://127.0.0.1:0", log_message_timestamp_type="CreateTime")
    config = BrokerConfig(keys | {"kpybroker.shortcuts": ",".join(sorted(shortcuts)) or "none"})
    tree = EmbeddedStore.in_memory(lambda: NOW_MS).session()
    found: list[bytes] = []
    async with Broker.open(config, tree=tree, seed=1) as broker:
        await create_topic(broker, "t")
        port = broker.bound[0].listener.address[1]
        poller = Poller.of_this_run()
        assert (poller is not None and poller.is_running) == (POLLER in shortcuts and poller is not None)
        client = await trio.open_tcp_stream("127.0.0.1", port)
        buffer = bytearray()
        with trio.fail_after(60):
            for request in REQUESTS:
                await client.send_all(request)
                while len(buffer) < 4 or len(buffer) < 4 + int.from_bytes(buffer[:4], "big"):
                    received = await client.receive_some()
                    assert received
                    buffer += received
                found.append(bytes(buffer))
                buffer.clear()
        await client.aclose()
        is_fast = [route.handle_fast is not None for route in broker.dispatcher._routes.values()]
        assert any(is_fast) == (FAST_PRODUCE in shortcuts)
    return found


@pytest.mark.parametrize("shortcuts", VALUES[1:], ids=lambda value: "+".join(sorted(value)) or "none")
async def test_responses_are_the_same_without_a_shortcut(tmp_path: Path, shortcuts: frozenset[str]) -> None:
    expected = await responses(tmp_path / "all", SHORTCUTS)
    assert [len(response) > 20 for response in expected] == [True] * len(REQUESTS)
    assert sum(map(len, expected)) > 2 * 700_000
    assert await responses(tmp_path / "without", shortcuts) == expected
