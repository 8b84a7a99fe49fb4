"""One request to another broker: its own connection, one attempt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.peers.peers import Directory, Peers
from kpybroker.config.broker import BrokerConfig
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.brokers.host import FakeHost
from tests.support.brokers.peer import HOST, PORT, Peer
from tests.support.network.memory_transport import MemoryTransport

CONTROLLER_TIMEOUT_S = 2


async def no_response(api_key: ApiKey, message: Any, version: int) -> Any:
    await trio.sleep_forever()


@asynccontextmanager
async def peers_of_1(controller_id: int = -1) -> AsyncIterator[tuple[Peers, Peer]]:
    """Broker 2 is a `Peer`, broker 3 is registered where nothing listens, there is no broker 4."""
    addresses = {2: (HOST, PORT), 3: ("nowhere", PORT)}
    config = BrokerConfig({"broker.id": "1", "controller.socket.timeout.ms": str(CONTROLLER_TIMEOUT_S * 1000)})
    async with trio.open_nursery() as nursery:
        transport = MemoryTransport()
        directory = Directory(addresses.get, lambda: controller_id)
        peer = Peer(transport)
        nursery.start_soon(peer.serve)
        yield Peers(FakeHost(nursery, config), transport, directory, no_response), peer
        nursery.cancel_scope.cancel()


def request(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=1, controller_epoch=number)


async def test_a_request_has_a_connection_of_its_own() -> None:
    async with peers_of_1() as (peers, peer):
        for number in range(2):
            response = await peers.ask(2, ApiKey.UPDATE_METADATA, request(number), 8)
            assert isinstance(response, UpdateMetadataResponse)
        assert peer.received == [0, 1]


async def test_a_request_is_sent_once(autojump_clock: trio.testing.MockClock) -> None:
    """The caller decides what happens after a failure."""
    async with peers_of_1() as (peers, peer):
        for broker_id, how, expected in (
            (2, "hang up", OSError),
            (2, "say nothing", OSError),
            (2, "wrong id", ProtocolError),
            (3, "", OSError),
            (4, "", OSError),
        ):
            peer.misbehave = [how] if how else []
            with pytest.raises(expected):
                await peers.ask(broker_id, ApiKey.UPDATE_METADATA, request(0), 8)
        assert peer.received == [0, 0, 0]


async def test_the_controller_is_asked_wherever_it_is(autojump_clock: trio.testing.MockClock) -> None:
    async with peers_of_1(controller_id=2) as (peers, peer):
        await peers.ask_controller_once(ApiKey.UPDATE_METADATA, request(7), 8)
        assert peer.received == [7]
    async with peers_of_1(controller_id=-1) as (peers, _):
        with pytest.raises(OSError, match="no controller"):
            await peers.ask_controller_once(ApiKey.UPDATE_METADATA, request(7), 8)
    async with peers_of_1(controller_id=1) as (peers, peer):
        started = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await peers.ask_controller_once(ApiKey.UPDATE_METADATA, request(7), 8)
        assert trio.current_time() - started == pytest.approx(CONTROLLER_TIMEOUT_S)
        assert peer.received == []
