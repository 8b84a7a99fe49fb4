"""Connections: their limits, and that whatever goes wrong on one leaves the others alone."""

from __future__ import annotations

import contextlib
import errno
import logging
import random

import pytest
import trio
import trio.testing

from kpybroker.broker.network.transport import SocketTransport, Transport
from kpybroker.broker.requests import connection_limits
from kpybroker.control.levers.transport import HeldTransport, Network
from tests.support.network.echo_server import HOST, Client, Config, House
from tests.support.network.memory_transport import MemoryListener, MemoryTransport
from tests.support.network.tls_transport import TlsTransport


def held_sockets() -> HeldTransport:
    return HeldTransport(SocketTransport(), 0, Network())


@pytest.fixture(params=[SocketTransport, MemoryTransport, held_sockets])
def plain_transport(request: pytest.FixtureRequest) -> Transport:
    """For tests whose clients send before they are accepted, or something that is not TLS."""
    made: Transport = request.param()
    return made


def encrypted_sockets() -> TlsTransport:
    return TlsTransport(SocketTransport())


def encrypted_memory() -> TlsTransport:
    return TlsTransport(MemoryTransport())


@pytest.fixture(params=[SocketTransport, MemoryTransport, held_sockets, encrypted_sockets, encrypted_memory])
def transport(request: pytest.FixtureRequest) -> Transport:
    made: Transport = request.param()
    return made


async def test_requests_on_one_connection_get_responses_in_order(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        for number in range(100):
            await client.send(b"%d" % number)
        assert [await client.receive() for _ in range(100)] == [b"%d" % number for number in range(100)]
        assert house.echo.sent == 100

    await House(transport, Config()).run(scenario)


@pytest.mark.parametrize("seed", range(10))
async def test_requests_that_wait_and_those_that_do_not_get_responses_in_order(transport: Transport, seed: int) -> None:
    """However many come at once, in whatever pieces, whether or not the client reads before it has sent all."""
    chance = random.Random(seed)
    words = [b"now%d" % n if chance.random() < 0.7 else b"%d" % n for n in range(200)]
    words += [b"now" + bytes(chance.choice([10, 30_000, 400_000])) for _ in range(4)]
    chance.shuffle(words)
    sent = b"".join(len(word).to_bytes(4, "big") + word for word in words)

    async def scenario(house: House) -> None:
        client = await house.connect()

        async def send() -> None:
            left = sent
            while left:
                size = chance.choice([3, 20, 1000, 100_000])
                await client.stream.send_parts([left[:size]])
                left = left[size:]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            assert [await client.receive() for _ in words] == words
        assert await client.ask(b"now") == b"now"

    await House(transport, Config()).run(scenario)


async def test_what_was_responded_before_a_broken_request_arrives(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        await client.stream.send_parts([b"\0\0\0\4now1\0\0\0\x09malformed\0\0\0\4now2"])
        assert [await client.receive(), await client.receive()] == [b"now1", None]

    await House(transport, Config()).run(scenario)


async def test_a_busy_connection_does_not_keep_the_others_waiting(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        busy, other = await house.connect(), await house.connect()

        async def flood() -> None:
            while True:
                await busy.stream.send_parts([b"\0\0\0\4now1" * 100])
                await busy.receive()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            for _ in range(50):
                assert await other.ask(b"now") == b"now"
                assert await other.ask(b"x") == b"x"
            nursery.cancel_scope.cancel()

    await House(transport, Config()).run(scenario)


async def test_a_request_without_a_response_leaves_the_next_ones_in_order(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        await client.send(b"silent")
        assert await client.ask(b"x") == b"x"

    await House(transport, Config()).run(scenario)


@pytest.mark.parametrize("word", [b"raise", b"malformed"])
async def test_a_broken_request_ends_its_connection_only(transport: Transport, word: bytes) -> None:
    async def scenario(house: House) -> None:
        other, client = await house.connect(), await house.connect()
        assert await client.ask(word) is None
        assert await other.ask(b"x") == b"x"
        assert house.server.connection_count == 1

    await House(transport, Config()).run(scenario)


async def test_an_absurd_size_ends_the_connection(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        await client.stream.send_parts([b"\x7f\xff\xff\xff"])
        assert await client.receive() is None

    await House(transport, Config()).run(scenario)


async def send_and_read_to_the_end(house: House, sent: bytes) -> bytes:
    client = await house.connect()
    await client.stream.send_parts([sent])
    received, scratch = b"", memoryview(bytearray(4096))
    with contextlib.suppress(OSError):
        while count := await client.stream.receive_into(scratch):
            received += scratch[:count]
    return received


async def test_clients_of_other_protocols_are_logged_once_and_http_gets_a_response(
    plain_transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(house: House) -> None:
        for _ in range(2):
            received = await send_and_read_to_the_end(house, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, body = received.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
            assert b"Kafka" in body
        for _ in range(2):
            assert await send_and_read_to_the_end(house, b"\x16\x03\x01\x02\x05\x01") == b""
        first, second = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
        assert first.endswith(": HTTP request on a Kafka port: connect with a Kafka client")
        assert "TLS handshake on a PLAINTEXT listener: set security.protocol=PLAINTEXT in the client" in second

    await House(plain_transport, Config()).run(scenario)


async def test_a_warning_names_the_client(transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(house: House) -> None:
        client = await house.connect()
        assert await client.ask(b"malformed") is None

    await House(transport, Config()).run(scenario)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "client_id=echoing software=echo-1: not a request" in warning


async def test_more_connections_from_one_address_than_allowed_are_closed(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        clients = [await house.connect() for _ in range(2)]
        for client in clients:
            assert await client.ask(b"x") == b"x"
        assert await (await house.connect()).receive() is None
        assert house.server.refused_total == 1
        clients[0].stream.close()
        while house.server.connection_count > 1:
            await trio.testing.wait_all_tasks_blocked(0.001)
        assert await (await house.connect()).ask(b"y") == b"y"

    await House(transport, Config(max_connections_per_ip=2)).run(scenario)


async def test_an_address_may_have_its_own_limit(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        assert await (await house.connect()).receive() is None

    config = Config()
    config.values["max.connections.per.ip.overrides"] = ["10.0.0.1:5", f"{HOST}:0"]
    await House(transport, config).run(scenario)


async def test_an_override_may_name_a_host_and_one_without_an_address_is_left_out(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    async def resolve(name: str) -> str:
        asked.append(name)
        if name == "gone.example":
            raise OSError("no such host")
        return HOST

    monkeypatch.setattr(connection_limits, "resolve", resolve)

    async def scenario(house: House) -> None:
        assert await (await house.connect()).receive() is None
        assert await (await house.connect()).receive() is None
        config.values["max.connections.per.ip.overrides"] = ["here.example:1"]
        assert await (await house.connect()).ask(b"x") == b"x"

    config = Config()
    config.values["max.connections.per.ip.overrides"] = ["gone.example:5", "here.example:0"]
    await House(transport, config).run(scenario)
    assert asked == ["gone.example", "here.example", "here.example"]
    assert "Cannot limit the connections of gone.example" in caplog.text


async def test_accepting_pauses_at_the_limit_of_all_connections(plain_transport: Transport) -> None:
    async def scenario(house: House) -> None:
        first = await house.connect()
        assert await first.ask(b"x") == b"x"
        second = await house.connect()
        await second.send(b"y")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert house.server.connection_count == 1
        first.stream.close()
        assert await second.receive() == b"y"

    await House(plain_transport, Config(max_connections=1)).run(scenario)


async def test_each_listener_accepts_again_after_the_limit_was_reached(plain_transport: Transport) -> None:
    async def scenario(house: House) -> None:
        await trio.testing.wait_all_tasks_blocked(0.01)  # both listeners accept
        first = [await house.connect(listener) for listener in (0, 1)]
        for client in first:
            assert await client.ask(b"x") == b"x"
        waiting = [await house.connect(listener) for listener in (0, 1)]
        for client in waiting:
            await client.send(b"y")
        await trio.testing.wait_all_tasks_blocked(0.01)
        for client in first:
            client.stream.close()

        async def finish(client: Client) -> None:
            assert await client.receive() == b"y"
            client.stream.close()

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for client in waiting:  # in either order
                    nursery.start_soon(finish, client)

    await House(plain_transport, Config(max_connections=1), listeners=2).run(scenario)


async def test_a_higher_limit_of_connections_applies_at_once(plain_transport: Transport) -> None:
    config = Config(max_connections=1)

    async def scenario(house: House) -> None:
        first = await house.connect()
        assert await first.ask(b"x") == b"x"
        second = await house.connect()
        await second.send(b"y")
        await trio.testing.wait_all_tasks_blocked(0.01)
        config.values["max.connections"] = 2
        config.announce_change()
        with trio.fail_after(60):
            assert await second.receive() == b"y"

    await House(plain_transport, config).run(scenario)


async def test_an_idle_connection_is_closed_and_one_whose_request_is_carried_out_is_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(house: House) -> None:
        idle, waiting = await house.connect(), await house.connect()
        await waiting.send(b"hold")
        started = trio.current_time()
        assert await idle.receive() is None
        assert 60 <= trio.current_time() - started <= 70
        await trio.sleep(300)
        house.echo.hold.set()
        assert await waiting.receive() == b"hold"

    await House(MemoryTransport(), Config(connections_max_idle_ms=60_000)).run(scenario)


async def test_a_client_that_does_not_read_is_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(house: House) -> None:
        slow, other = await house.connect(), await house.connect()
        await slow.send(b"big1000000")
        assert await other.ask(b"x") == b"x"
        await trio.sleep(50)
        assert await other.ask(b"x") == b"x"
        await trio.sleep(20)
        assert house.server.connection_count == 1
        assert house.echo.sent == 3  # the slow one's slices were given back too
        assert await other.ask(b"x") == b"x"

    await House(MemoryTransport(), Config(connections_max_idle_ms=60_000)).run(scenario)


async def test_reading_pauses_while_requests_hold_too_many_bytes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(house: House) -> None:
        clients = [await house.connect() for _ in range(3)]
        for client in clients:
            assert await client.ask(b"x") == b"x"
        for client in clients:
            await client.send(b"hold")
            await trio.testing.wait_all_tasks_blocked()
        assert house.echo.in_progress == 2
        house.echo.hold.set()
        assert [await client.receive() for client in clients] == [b"hold"] * 3

    await House(MemoryTransport(), Config(queued_max_request_bytes=5)).run(scenario)


async def test_after_a_stop_no_request_is_in_progress_and_every_connection_has_ended(transport: Transport) -> None:
    async def scenario(house: House) -> None:
        idle, waiting, behind = [await house.connect() for _ in range(3)]
        assert await idle.ask(b"x") == b"x"
        await waiting.send(b"hold")
        await behind.send(b"park")
        await behind.send(b"x")
        while house.echo.in_progress < 2:
            await trio.testing.wait_all_tasks_blocked(0.01)
        house.listener.close()
        await house.server.stop()
        assert not house.echo.waits
        assert house.echo.in_progress == house.server.connection_count == 0
        assert [await client.receive() for client in (idle, waiting, behind)] == [None] * 3

    await House(transport, Config()).run(scenario)


async def test_a_server_that_never_served_stops_at_once(transport: Transport) -> None:
    await House(transport, Config()).server.stop()


async def test_running_out_of_descriptors_pauses_accepting_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(house: House) -> None:
        first = await house.connect()
        assert await first.ask(b"x") == b"x"
        assert isinstance(house.listener, MemoryListener)
        house.listener.accept_errors += [OSError(errno.EMFILE, "Too many open files")] * 3
        second = await house.connect()
        assert await first.ask(b"x") == b"x"
        assert await second.ask(b"y") == b"y"
        assert not house.listener.accept_errors

    await House(MemoryTransport(), Config()).run(scenario)
