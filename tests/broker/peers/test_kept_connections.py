"""Connections that are kept: how many there are, and what happens to a request on one that the other has closed."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kpybroker.broker.peers.kept_connections import KEPT_MAX, KeptConnections
from kpybroker.broker.peers.peers import Peers
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.update_metadata import UpdateMetadataResponse
from tests.broker.peers.test_peers import peers_of_1, request


async def ask(kept: KeptConnections, number: int) -> None:
    response = await kept.ask(2, ApiKey.UPDATE_METADATA, request(number), 8)
    assert isinstance(response, UpdateMetadataResponse)


def counted(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> tuple[KeptConnections, list[int]]:
    """With the brokers to which connections are made."""
    made: list[int] = []
    plain = peers.connection_to

    def connection_to(broker_id: int, client_id: str) -> object:
        made.append(broker_id)
        return plain(broker_id, client_id)

    monkeypatch.setattr(peers, "connection_to", connection_to)
    return peers.kept_connections(), made


async def test_one_request_after_the_other_has_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peers_of_1() as (peers, peer):
        kept, made = counted(peers, monkeypatch)
        for number in range(5):
            await ask(kept, number)
        assert (made, peer.received) == ([2], [0, 1, 2, 3, 4])


async def test_requests_at_a_time_have_a_connection_each_and_some_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peers_of_1() as (peers, _):
        kept, made = counted(peers, monkeypatch)
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for number in range(KEPT_MAX + 2):
                    nursery.start_soon(ask, kept, number)
        assert len(made) == KEPT_MAX + 2 + 2
        kept.close()
        await ask(kept, 0)
        assert len(made) == KEPT_MAX + 2 + 2 + 1


async def test_a_request_on_a_closed_connection_is_sent_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peers_of_1() as (peers, peer):
        kept, made = counted(peers, monkeypatch)
        await ask(kept, 0)
        peer.misbehave = ["hang up"]
        await ask(kept, 1)
        assert (made, peer.received) == ([2, 2], [0, 1, 1])


@pytest.mark.parametrize(
    ("how", "expected"), [("hang up", OSError), ("say nothing", OSError), ("wrong id", ProtocolError)]
)
async def test_a_new_connection_that_fails_is_the_callers_matter(
    autojump_clock: trio.testing.MockClock, how: str, expected: type[Exception]
) -> None:
    async with peers_of_1() as (peers, peer):
        kept = peers.kept_connections()
        peer.misbehave = [how]
        with pytest.raises(expected):
            await ask(kept, 0)
        assert peer.received == [0]
        await ask(kept, 1)


async def test_a_broker_that_is_not_there() -> None:
    async with peers_of_1() as (peers, _):
        for broker_id in (3, 4):
            with pytest.raises(OSError):
                await peers.kept_connections().ask(broker_id, ApiKey.UPDATE_METADATA, request(0), 8)
