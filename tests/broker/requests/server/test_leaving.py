"""A client that has left: what waits for it ends, what it has sent is still served, what is carried out goes on."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from kpybroker.broker.loop import alone
from kpybroker.broker.network.transport import SocketStream, SocketTransport, Transport
from kpybroker.broker.requests import connection
from tests.support.brokers.hosted import until
from tests.support.network.echo_server import Client, Config, House
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.tls_transport import TlsTransport

SHORTCUTS = pytest.mark.parametrize("shortcuts", ["all", "none", "inline-requests", "poller"])
NEVER_S = 1e6


@pytest.fixture(params=[SocketTransport, MemoryTransport, TlsTransport])
def transport(request: pytest.FixtureRequest) -> Transport:
    made: Transport = TlsTransport(SocketTransport()) if request.param is TlsTransport else request.param()
    return made


def config(shortcuts: str) -> Config:
    return Config(kpybroker_shortcuts=[shortcuts])


def sockets(shortcuts: str) -> SocketTransport:
    return SocketTransport(shortcuts=frozenset({"poller"}) if shortcuts in {"all", "poller"} else frozenset())


def end_sending(client: Client) -> None:
    """The client closes its side, and goes on to read."""
    assert isinstance(client.stream, SocketStream)
    client.stream._sock.shutdown(socket.SHUT_WR)


@SHORTCUTS
@pytest.mark.parametrize("word", [b"park", b"alone"])
@pytest.mark.parametrize("pipelined", [True, False])
async def test_what_waits_for_a_client_ends_when_it_leaves(
    transport: Transport, shortcuts: str, word: bytes, pipelined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its descriptor, its wait, whatever it has sent after it; the others hear nothing of it."""
    monkeypatch.setattr(connection, "LEFT_S", 0.001)
    monkeypatch.setattr(alone, "LOOK_S", 0.001)

    async def scenario(house: House) -> None:
        staying = await house.connect()
        await staying.send(word)
        await until(lambda: house.echo.in_progress == 1)
        for number in range(5):
            leaving = await house.connect()
            await leaving.send(word + b"%d" % number)
            if pipelined:
                await leaving.send(b"now" + bytes(100))
            await until(lambda: house.echo.in_progress == 2)
            leaving.stream.close()
            await until(lambda: house.server.connection_count == 1)
            assert house.echo.in_progress == 1
        house.echo.hold.set()
        for wait in list(house.echo.waits.values()):
            wait.end()
        assert await staying.receive() == word

    await House(transport, config(shortcuts)).run(scenario)


@SHORTCUTS
@pytest.mark.parametrize("word", [b"park", b"alone"])
async def test_a_reset_ends_it_at_once(shortcuts: str, word: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No peer reads after that. Without a poller it is like any other end."""
    has_poller = shortcuts in {"all", "poller"}
    monkeypatch.setattr(connection, "LEFT_S", NEVER_S if has_poller else 0.0)

    async def scenario(house: House) -> None:
        leaving = await house.connect()
        await leaving.send(word)
        await until(lambda: house.echo.in_progress == 1)
        leaving.stream.reset_on_close()
        leaving.stream.close()
        await until(lambda: house.server.connection_count == 0)

    await House(sockets(shortcuts), config(shortcuts)).run(scenario)


@SHORTCUTS
async def test_a_client_that_only_stops_sending_gets_its_response(
    shortcuts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Kafka: all that it has sent before, also what has to wait, as long as that takes no longer than LEFT_S."""
    monkeypatch.setattr(connection, "LEFT_S", 60.0)
    words = [b"now1", b"park1/0.02", b"now2", b"park2/0.02", b"x", *(b"now%d" % number for number in range(50))]

    async def scenario(house: House) -> None:
        client = await house.connect()
        for word in words:
            await client.send(word)
        end_sending(client)
        assert [await client.receive() for _ in words] == words
        assert await client.receive() is None
        await until(lambda: house.server.connection_count == 0)

    await House(sockets(shortcuts), config(shortcuts)).run(scenario)


@SHORTCUTS
@pytest.mark.parametrize("has_more", [True, False])
async def test_what_a_client_has_sent_after_joining_a_group_is_served(
    shortcuts: str, has_more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes in a rebalance: its JoinGroup waits, and LeaveGroup comes after it."""
    monkeypatch.setattr(connection, "LEFT_S", 0.001)
    monkeypatch.setattr(alone, "LOOK_S", 0.001)

    async def scenario(house: House) -> None:
        leaving = await house.connect()
        await leaving.send(b"rest")
        await until(lambda: house.echo.in_progress == 1)
        if has_more:
            await leaving.send(b"x" + bytes(200))
        leaving.stream.close()
        if has_more:
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert house.echo.in_progress == 1
            house.echo.hold.set()
        await until(lambda: house.server.connection_count == 0)
        assert house.echo.sent == (2 if has_more else 0)

    await House(sockets(shortcuts), config(shortcuts)).run(scenario)


@SHORTCUTS
async def test_what_a_request_has_begun_is_carried_out(transport: Transport, shortcuts: str) -> None:
    async def scenario(house: House) -> None:
        leaving, other = await house.connect(), await house.connect()
        await leaving.send(b"hold")
        await until(lambda: house.echo.in_progress == 1)
        leaving.stream.close()
        assert await other.ask(b"x") == b"x"
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert house.echo.in_progress == 1
        house.echo.hold.set()
        await until(lambda: house.server.connection_count == 1)
        assert house.echo.in_progress == 0

    await House(transport, config(shortcuts)).run(scenario)


@SHORTCUTS
async def test_a_muted_client_that_leaves_keeps_nothing(
    transport: Transport, shortcuts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LEFT_S", NEVER_S)

    async def scenario(house: House) -> None:
        leaving = await house.connect()
        assert await leaving.ask(b"mute/100000") == b"mute/100000"
        leaving.stream.close()
        await until(lambda: house.server.connection_count == 0)

    await House(transport, config(shortcuts)).run(scenario)


@SHORTCUTS
async def test_what_a_muted_client_has_sent_before_it_left_is_served(transport: Transport, shortcuts: str) -> None:
    """A producer with acks=0 that is throttled, and ends: its last records are there when the mute is over."""

    async def scenario(house: House) -> None:
        leaving = await house.connect()
        assert await leaving.ask(b"mute/0.2") == b"mute/0.2"
        sent = house.echo.sent
        await leaving.send(b"x" + bytes(200))
        await leaving.send(b"y" + bytes(200))
        leaving.stream.close()
        await until(lambda: house.server.connection_count == 0)
        assert house.echo.sent > sent

    await House(transport, config(shortcuts)).run(scenario)


@pytest.mark.parametrize("word", [b"park", b"alone", b"mute/1000000"])
@pytest.mark.parametrize("shortcuts", ["all", "none"])
async def test_a_client_that_waits_without_traffic_is_idle(
    autojump_clock: trio.testing.MockClock, shortcuts: str, word: bytes
) -> None:
    """As on Kafka, and for the same reason: no one may ever notice that its machine is gone."""

    async def scenario(house: House) -> None:
        client = await house.connect()
        await client.send(word)
        began = trio.current_time()
        if word.startswith(b"mute"):
            assert await client.receive() == word
        assert await client.receive() is None
        assert 60 <= trio.current_time() - began <= 72
        assert house.echo.in_progress == 0

    settings = Config(kpybroker_shortcuts=[shortcuts], connections_max_idle_ms=60_000)
    await House(MemoryTransport(), settings).run(scenario)
