"""A whole broker in this process on a tree in memory: requests go in as frames and come back as messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker, Seams
from kpybroker.broker.cluster.metadata_cache import MetadataCache, MetadataSnapshot
from kpybroker.broker.loop.clock import Clock, SystemClock
from kpybroker.broker.requests.context import ConnectionInfo, PlainConnectionInfo
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.network.memory_transport import MemoryTransport

SEAMS = [field.name for field in fields(Seams)]
SHARE_STATES: dict[str, Any] = {
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
    "share_coordinator_state_topic_num_partitions": "2",
}
"""Keys with which one broker keeps states of share groups. Without them what asks for one tries for 15 s."""
CLIENT = PlainConnectionInfo(connection_id="test")


def settings(directory: Path, **keys: str) -> dict[str, str]:
    """Keys are Kafka's with `.` written as `_`; nothing is delayed."""
    props = {
        "broker.id": "0",
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    return props | {name.replace("_", "."): value for name, value in keys.items()}


@asynccontextmanager
async def running_broker(
    directory: Path,
    *,
    topics: Sequence[str] = (),
    keeps: bool = False,
    tree_clock: Clock | None = None,
    **options: Any,
) -> AsyncIterator[Broker]:
    """A broker with these `topics`. `options` are `Seams` of the broker, and keys as of `settings`. Nothing listens on
    a port, unless a `transport` does. With `keeps` the directory has all that the broker needs to start again.
    """
    seams = {name: options.pop(name) for name in SEAMS if name in options}
    tree = None if keeps else EmbeddedStore.in_memory((tree_clock or SystemClock()).time_ms).session()
    seams = {"transport": MemoryTransport(), "tree": tree, "seed": 1} | seams
    async with Broker.open(BrokerConfig(settings(directory, **options)), **seams) as broker:
        for topic in topics:
            await create_topic(broker, topic)
        yield broker


async def ask(
    broker: Broker, request: Any, version: int, client_id: str = "test", connection: ConnectionInfo | None = None
) -> Any:
    """The decoded response; None when there is none (acks=0). Without a `connection`, on one of its own."""
    key = next(key for key in ApiKey if key.name.replace("_", "").lower() + "request" == type(request).__name__.lower())
    frame = encode_request_header(RequestHeader(key, version, 7, client_id)) + encode(request, version)
    response = await broker.dispatcher.respond(
        bytearray(frame), connection or PlainConnectionInfo(connection_id="test")
    )
    received = response.read()
    response.sent()
    if not received:
        return None
    assert int.from_bytes(received[:4], "big") == len(received) - 4
    from kpybroker.wire.api import API_INFO

    correlation_id, position = parse_response_header(received[4:], key, version)
    assert correlation_id == 7
    return decode(API_INFO[key].response_class(), received[4 + position :], version)


def forget_metadata(metadata: MetadataCache) -> UpdateMetadataRequest:
    """Reset it to the state after the broker's start; `update` with the returned request restores it."""
    known = metadata.snapshot
    topics = [
        UpdateMetadataRequest.UpdateMetadataTopicState(
            topic_name=name, topic_id=known.topic_id(name), partition_states=list(partitions.values())
        )
        for name, partitions in known.topics.items()
    ]
    alive = [UpdateMetadataRequest.UpdateMetadataBroker(id=node) for node in known.brokers]
    metadata.snapshot, metadata.received_update = MetadataSnapshot(features=known.features), False
    return UpdateMetadataRequest(topic_states=topics, live_brokers=alive)


async def create_topic(broker: Broker, name: str, partitions: int = 1, **configs: str) -> bytes:
    """Returns the topic id."""
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    response = await ask(broker, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    assert response.topics[0].error_code == 0, response
    topic_id: bytes = response.topics[0].topic_id
    return topic_id
