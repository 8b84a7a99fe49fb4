"""The controller's queues: order, repetition until answered, and nothing left of a removed broker."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.cluster.metadata_cache import Node
from kpybroker.broker.network.transport import Stream
from kpybroker.broker.peers.broker_channels import Channels, ControlRequest, ask_once
from kpybroker.config.broker import BrokerConfig
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import encode_response_header, parse_request_header
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kpybroker.wire.znodes import BrokerRegistration, Endpoint
from tests.support.memory_transport import MemoryTransport

HOST, PORT = "peer", 9092
REGISTRATION = BrokerRegistration((Endpoint(HOST, PORT, "PLAINTEXT", "PLAINTEXT"),), 0)


class Controller:
    """What the channels ask of a broker."""

    def __init__(self) -> None:
        self.config = BrokerConfig({"broker.id": "1"})
        self.node_id = 1
        self.transport = MemoryTransport()


class Peer:
    """Broker 2: answers UpdateMetadata, or does something else about it first."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.listener = transport.listen(HOST, PORT, 5)
        self.received: list[int] = []
        self.misbehave: list[str] = []

    async def serve(self) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(self._serve_connection, await self.listener.accept())

    async def _serve_connection(self, stream: Stream) -> None:
        while (frame := await self._frame(stream)) is not None:
            header = parse_request_header(frame)
            assert header.api_key == ApiKey.UPDATE_METADATA
            body = memoryview(frame)[header.body_offset :]
            request = decode(UpdateMetadataRequest, body, header.api_version)
            self.received.append(request.controller_epoch)
            how = self.misbehave.pop(0) if self.misbehave else "answer"
            if how == "hang up":
                stream.close()
                return
            if how == "say nothing":
                await trio.sleep_forever()
            correlation_id = header.correlation_id + (how == "wrong id")
            response = encode_response_header(ApiKey.UPDATE_METADATA, header.api_version, correlation_id)
            response += encode(UpdateMetadataResponse(), header.api_version)
            await stream.send_parts([struct.pack(">i", len(response)) + response])

    async def _frame(self, stream: Stream) -> bytes | None:
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
            buffer = bytearray(4096)
            count = await stream.receive_into(memoryview(buffer))
            if count == 0:
                return None
            data += buffer[:count]
        return data[4:]


def request(number: int) -> ControlRequest:
    return ControlRequest(UpdateMetadataRequest(controller_id=1, controller_epoch=number), 8)


@asynccontextmanager
async def channel_to_peer() -> AsyncIterator[tuple[Channels, Peer, list[int], trio.Nursery]]:
    controller = Controller()
    answered: list[int] = []

    def on_response(broker_id: int, sent: ControlRequest, response: Any) -> None:
        assert broker_id == 2
        assert isinstance(response, UpdateMetadataResponse)
        answered.append(sent.message.controller_epoch)

    channels = Channels(controller, on_response)  # type: ignore[arg-type]
    peer = Peer(controller.transport)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.serve)
        channels.add(2, REGISTRATION, nursery)
        yield channels, peer, answered, nursery
        nursery.cancel_scope.cancel()


async def test_requests_arrive_in_order_and_are_answered() -> None:
    async with channel_to_peer() as (channels, peer, answered, _):
        for number in range(5):
            channels.send(2, request(number))
        await channels.flush(2)
        assert peer.received == answered == [0, 1, 2, 3, 4]


async def test_a_request_is_repeated_until_it_is_answered(autojump_clock: trio.testing.MockClock) -> None:
    async with channel_to_peer() as (channels, peer, answered, _):
        peer.misbehave = ["hang up", "wrong id", "say nothing", "answer"]
        channels.send(2, request(0))
        channels.send(2, request(1))
        await channels.flush(2)
        assert peer.received == [0, 0, 0, 0, 1]
        assert answered == [0, 1]


async def test_a_removed_broker_gets_nothing_more(autojump_clock: trio.testing.MockClock) -> None:
    async with channel_to_peer() as (channels, peer, answered, nursery):
        peer.misbehave = ["say nothing"]
        channels.send(2, request(0))
        channels.send(2, request(1))
        await trio.testing.wait_all_tasks_blocked()
        channels.remove(2)
        channels.send(2, request(2))
        await trio.sleep(100)
        assert peer.received == [0]
        assert answered == []
        # Under its next registration it starts afresh.
        channels.add(2, REGISTRATION, nursery)
        channels.send(2, request(3))
        await channels.flush(2)
        assert (peer.received, answered) == ([0, 3], [3])


async def test_who_waits_for_a_removed_brokers_queue_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    async with channel_to_peer() as (channels, peer, _, _):
        peer.misbehave = ["say nothing"]
        channels.send(2, request(1))
        with trio.fail_after(1):
            async with trio.open_nursery() as waiting:
                waiting.start_soon(channels.flush, 2)
                await trio.testing.wait_all_tasks_blocked()
                channels.remove(2)


# -- one question ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def asker_and_peer() -> AsyncIterator[tuple[Any, Peer]]:
    broker: Any = Controller()
    nodes = {2: Node(2, HOST, PORT), 3: Node(3, "nowhere", PORT)}
    broker.metadata = SimpleNamespace(broker_endpoint=lambda broker_id, listener: nodes.get(broker_id))
    peer = Peer(broker.transport)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.serve)
        yield broker, peer
        nursery.cancel_scope.cancel()


async def test_one_question_is_answered_on_its_own_connection() -> None:
    async with asker_and_peer() as (broker, peer):
        for number in range(2):
            answer = await ask_once(broker, 2, ApiKey.UPDATE_METADATA, request(number).message, 8)
            assert isinstance(answer, UpdateMetadataResponse)
        assert peer.received == [0, 1]


async def test_a_question_is_asked_once(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever asks decides what comes next."""
    async with asker_and_peer() as (broker, peer):
        for broker_id, how, expected in (
            (2, "hang up", OSError),
            (2, "say nothing", OSError),
            (2, "wrong id", ProtocolError),
            (3, "", OSError),
            (4, "", OSError),
        ):
            peer.misbehave = [how] if how else []
            with pytest.raises(expected):
                await ask_once(broker, broker_id, ApiKey.UPDATE_METADATA, request(0).message, 8)
        assert peer.received == [0, 0, 0]
