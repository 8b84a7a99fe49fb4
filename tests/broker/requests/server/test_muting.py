"""A muted connection: the response is sent at once, the next request is served when the time is over (KIP-219)."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kpybroker.broker.network.transport import SocketTransport, Transport
from tests.support.network.echo_server import Config, House
from tests.support.network.memory_transport import MemoryTransport

INLINE = pytest.mark.parametrize("shortcuts", ["all", "none"])
MUTED_S = 100


@INLINE
@pytest.mark.parametrize("word", [b"mute", b"mute-late", b"mute/100 and a long response" + bytes(400_000)])
async def test_the_response_comes_first(autojump_clock: trio.testing.MockClock, shortcuts: str, word: bytes) -> None:
    if b"/" in word:
        word = b"mute/100".ljust(400_000)

    async def scenario(house: House) -> None:
        client = await house.connect()
        began = trio.current_time()
        assert await client.ask(word) == word
        assert trio.current_time() - began < 1
        assert await client.ask(b"now") == b"now"
        assert MUTED_S <= trio.current_time() - began < MUTED_S + 1
        assert await client.ask(b"x") == b"x"
        assert trio.current_time() - began < MUTED_S + 1

    await House(MemoryTransport(), Config(kpybroker_shortcuts=[shortcuts])).run(scenario)


@INLINE
async def test_a_request_without_a_response_mutes_too(autojump_clock: trio.testing.MockClock, shortcuts: str) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        began = trio.current_time()
        await client.send(b"mute-silent")
        assert await client.ask(b"x") == b"x"
        assert trio.current_time() - began >= MUTED_S

    await House(MemoryTransport(), Config(kpybroker_shortcuts=[shortcuts])).run(scenario)


@INLINE
async def test_pipelined_requests_wait_and_stay_in_order(
    autojump_clock: trio.testing.MockClock, shortcuts: str
) -> None:
    """Each of them mutes again, whatever the client has sent since; other connections are served."""

    async def scenario(house: House) -> None:
        client, other = await house.connect(), await house.connect()
        for word in (b"mute", b"now1", b"mute-late", b"x", b"now2"):
            await client.send(word)
        assert [await client.receive(), await other.ask(b"now")] == [b"mute", b"now"]
        began = trio.current_time()
        assert [await client.receive(), await client.receive()] == [b"now1", b"mute-late"]
        assert trio.current_time() - began >= MUTED_S
        assert [await client.receive(), await client.receive()] == [b"x", b"now2"]
        assert trio.current_time() - began >= 2 * MUTED_S

    await House(MemoryTransport(), Config(kpybroker_shortcuts=[shortcuts])).run(scenario)


@INLINE
async def test_a_muted_connection_ends_when_it_is_idle_and_with_the_server(
    autojump_clock: trio.testing.MockClock, shortcuts: str
) -> None:
    config = Config(kpybroker_shortcuts=[shortcuts], connections_max_idle_ms=10_000)

    async def scenario(house: House) -> None:
        client, other = await house.connect(), await house.connect()
        assert await client.ask(b"mute") == b"mute"
        began = trio.current_time()
        assert await client.ask(b"x") is None  # as on Kafka, to which a connection without traffic is idle
        assert 10 <= trio.current_time() - began < 12
        client = await house.connect()
        assert await client.ask(b"mute") == b"mute"
        await trio.testing.wait_all_tasks_blocked()
        await house.server.stop()
        assert [await client.receive(), await other.receive()] == [None, None]

    await House(MemoryTransport(), config).run(scenario)


@INLINE
@pytest.mark.parametrize("transport", [SocketTransport, MemoryTransport])
async def test_a_pipeline_of_requests_that_all_mute(shortcuts: str, transport: type[Transport]) -> None:
    """As a producer sends them: what waits in the broker is served, and muted, by the connection's own task."""
    words = [b"mute/0.002 %d" % number if number % 3 else b"now%d" % number for number in range(60)]

    async def scenario(house: House) -> None:
        client = await house.connect()
        for word in words:
            await client.send(word)
        assert [await client.receive() for _ in words] == words
        assert await client.ask(b"x") == b"x"

    await House(transport(), Config(kpybroker_shortcuts=[shortcuts])).run(scenario)


@INLINE
async def test_sockets_are_muted_too(shortcuts: str) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        for _ in range(2):
            began = trio.current_time()
            assert await client.ask(b"mute/0.05") == b"mute/0.05"
            assert await client.ask(b"now") == b"now"
            assert trio.current_time() - began >= 0.05

    await House(SocketTransport(), Config(kpybroker_shortcuts=[shortcuts])).run(scenario)
