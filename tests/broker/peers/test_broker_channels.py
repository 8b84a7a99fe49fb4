"""The controller's queues: order, repetition until there is a response, and nothing left of a removed broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from kpybroker.broker.network.transport import Stream
from kpybroker.broker.peers.broker_channels import BrokerChannels, ControlRequest
from kpybroker.config.broker import BrokerConfig
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kpybroker.wire.znodes import BrokerRegistration, Endpoint
from tests.support.brokers.host import FakeHost
from tests.support.brokers.peer import HOST, PORT, Peer
from tests.support.network.memory_transport import MemoryTransport

REGISTRATION = BrokerRegistration((Endpoint(HOST, PORT, "PLAINTEXT", "PLAINTEXT"),), 0)
TWO_PLANES = BrokerRegistration(
    (Endpoint("data", 1, "PLAINTEXT", "PLAINTEXT"), Endpoint(HOST, PORT, "CONTROL", "PLAINTEXT")), 0
)


def request(number: int) -> ControlRequest:
    return ControlRequest(UpdateMetadataRequest(controller_id=1, controller_epoch=number), 8)


async def respond_locally(api_key: ApiKey, message: Any, version: int) -> Any:
    raise LookupError("the handler failed")


@asynccontextmanager
async def channel_to_peer(
    registration: BrokerRegistration = REGISTRATION, **keys: str
) -> AsyncIterator[tuple[BrokerChannels, Peer, list[int], trio.Nursery]]:
    """Channels to broker 2, which is a `Peer`; `keys` of the configuration have `_` for `.`."""
    responded: list[int] = []

    def on_response(broker_id: int, sent: ControlRequest, response: Any) -> None:
        assert broker_id == 2
        assert isinstance(response, UpdateMetadataResponse)
        responded.append(sent.message.controller_epoch)

    async with trio.open_nursery() as nursery:
        transport = MemoryTransport()
        host = FakeHost(
            nursery, BrokerConfig({"broker.id": "1", **{name.replace("_", "."): value for name, value in keys.items()}})
        )

        async def connect(_listener: str, host_name: str, port: int, timeout_s: float) -> Stream:
            return await transport.connect(host_name, port, timeout_s)

        channels = BrokerChannels(host, connect, respond_locally, on_response)
        peer = Peer(transport)
        nursery.start_soon(peer.serve)
        channels.add(2, registration, nursery)
        yield channels, peer, responded, nursery
        nursery.cancel_scope.cancel()


async def test_requests_arrive_in_order_and_get_responses() -> None:
    async with channel_to_peer() as (channels, peer, responded, _):
        for number in range(5):
            channels.send(2, request(number))
        await channels.flush(2)
        assert peer.received == responded == [0, 1, 2, 3, 4]


async def test_requests_go_to_the_control_plane_listener_however_its_name_is_written() -> None:
    keys = {
        "listeners": "PLAINTEXT://:9092,CONTROL://:9093",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
        "control_plane_listener_name": "control",
    }
    async with channel_to_peer(TWO_PLANES, **keys) as (channels, peer, responded, _):
        channels.send(2, request(1))
        await channels.flush(2)
        assert peer.received == responded == [1]


async def test_a_request_is_repeated_until_it_has_a_response(autojump_clock: trio.testing.MockClock) -> None:
    async with channel_to_peer() as (channels, peer, responded, _):
        peer.misbehave = ["hang up", "wrong id", "say nothing", "respond"]
        channels.send(2, request(0))
        channels.send(2, request(1))
        await channels.flush(2)
        assert peer.received == [0, 0, 0, 0, 1]
        assert responded == [0, 1]


async def test_a_removed_broker_gets_nothing_more(autojump_clock: trio.testing.MockClock) -> None:
    async with channel_to_peer() as (channels, peer, responded, nursery):
        peer.misbehave = ["say nothing"]
        channels.send(2, request(0))
        channels.send(2, request(1))
        await trio.testing.wait_all_tasks_blocked()
        channels.remove(2)
        channels.send(2, request(2))
        await trio.sleep(100)
        assert peer.received == [0]
        assert responded == []
        # Its next registration starts a new channel.
        channels.add(2, REGISTRATION, nursery)
        channels.send(2, request(3))
        await channels.flush(2)
        assert (peer.received, responded) == ([0, 3], [3])


async def test_a_flush_returns_when_its_broker_is_removed(autojump_clock: trio.testing.MockClock) -> None:
    async with channel_to_peer() as (channels, peer, _, _):
        peer.misbehave = ["say nothing"]
        channels.send(2, request(1))
        with trio.fail_after(60):
            async with trio.open_nursery() as waiting:
                waiting.start_soon(channels.flush, 2)
                await trio.testing.wait_all_tasks_blocked()
                channels.remove(2)


async def test_a_failure_of_this_brokers_own_handler_is_logged_and_the_next_request_is_delivered() -> None:
    async with channel_to_peer() as (channels, _, responded, nursery):
        channels.add(1, REGISTRATION, nursery)
        channels.send(1, request(0))
        await channels.flush_all()
        assert responded == []
