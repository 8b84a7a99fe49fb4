"""A TLS stream on both ends of a pipe: bytes, handshakes that fail, limits. With a server on it: `test_server`."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from kpybroker.broker.network import tls_stream
from kpybroker.broker.network.handshakes import HandshakeFailed
from kpybroker.broker.network.other_protocols import OtherProtocolError
from kpybroker.broker.network.sending import Progress
from kpybroker.broker.network.tls_stream import FED_BYTES, TlsStream, new_scratch
from tests.support.network.certificates import Authority
from tests.support.network.memory_transport import MemoryStream, Pipe
from tests.support.network.tls_transport import authority, client_context, server_context

ADDRESS = ("127.0.0.1", 9093)


def raw_ends(capacity: int = 65536) -> tuple[MemoryStream, MemoryStream]:
    """(the server's, the client's)."""
    there, back = Pipe(capacity), Pipe(capacity)
    return MemoryStream(there, back, ADDRESS, ADDRESS), MemoryStream(back, there, ADDRESS, ADDRESS)


async def both(first: TlsStream, second: TlsStream) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.handshake, trio.Lock())
        nursery.start_soon(second.handshake, trio.Lock())


@asynccontextmanager
async def ends(capacity: int = 65536) -> AsyncIterator[tuple[TlsStream, TlsStream]]:
    """(server, client) after the handshake."""
    here, there = raw_ends(capacity)
    server = TlsStream(here, server_context(), new_scratch())
    made = TlsStream(there, client_context(), new_scratch(), "127.0.0.1")
    await both(server, made)
    yield server, made
    made.close()
    server.close()


async def read_all(stream: TlsStream, size: int, pace: int = 100_000) -> bytes:
    got, scratch = b"", memoryview(bytearray(pace))
    while len(got) < size:
        count = await stream.receive_into(scratch)
        if not count:
            break
        got += scratch[:count]
    return got


@pytest.mark.parametrize("capacity", [100, 5_000, 1_000_000])
@pytest.mark.parametrize("size", [1, 16_384, 16_385, 300_000])
async def test_bytes_arrive_as_they_were_sent_whatever_the_socket_takes(capacity: int, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    async with ends(capacity) as (server, client), trio.open_nursery() as nursery:
        nursery.start_soon(partial(client.send_parts, [data[: size // 2], data[size // 2 :]]))
        assert await read_all(server, size) == data
        nursery.start_soon(server.send_parts, [data])
        assert await read_all(client, size, pace=777) == data


async def test_what_could_not_be_sent_at_once_is_sent_by_the_next_call_without_repetition() -> None:
    data = bytes(range(256)) * 1000
    async with ends(10_000) as (server, client):
        sent = server.send_now(data)
        assert sent < len(data)
        assert server.send_now(data[sent:]) == 0, "the socket is full"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(server.send_parts, [memoryview(data)[sent:], b"end"]))
            assert await read_all(client, len(data) + 3) == data + b"end"


async def test_a_response_is_sent_in_steps_and_stops_while_the_socket_is_full() -> None:
    async with ends(20_000) as (server, client):
        sending = server.begin_sending([bytes(50_000)] * 4)
        assert sending.resume() is Progress.FULL
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sending.finish)
            assert await read_all(client, 200_000) == bytes(200_000)


async def test_plaintext_that_waits_inside_openssl_is_served_although_the_socket_is_silent() -> None:
    async with ends() as (server, client):
        await client.send_parts([b"x" * 10_000])
        scratch, got = memoryview(bytearray(1000)), 0

        def on_ready() -> bool:
            nonlocal got
            count = server.receive_now(scratch)
            got += count or 0
            return got < 10_000

        with trio.fail_after(60):
            await server.watch(on_ready)
        assert got == 10_000


async def test_a_muted_stream_calls_no_one_before_it_is_poked() -> None:
    async with ends() as (server, client):
        await client.send_parts([b"x" * 3000])
        calls = []

        def on_ready() -> bool:
            calls.append(server.receive_now(memoryview(bytearray(1000))))
            server.mute(lambda _: None)
            return len(calls) < 2

        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.watch, on_ready)
            await trio.testing.wait_all_tasks_blocked()
            assert calls == [1000]
            server.poke()
        assert calls == [1000, 1000]


async def test_the_end_is_seen_though_it_came_with_the_last_bytes() -> None:
    async with ends() as (server, client):
        await client.send_parts([b"last"])
        client.close()
        scratch = memoryview(bytearray(100))
        assert await server.receive_into(scratch) == 4
        assert await server.receive_into(scratch) == 0


async def test_memory_for_ciphertext_stays_near_the_size_of_a_record() -> None:
    """However much arrives at once: OpenSSL's buffers never shrink, and every idle connection keeps its own."""
    async with ends(1_000_000) as (server, client):
        await client.send_parts([bytes(400_000)])
        fed: list[int] = []
        original = server._in

        class Counting:
            @property
            def pending(self) -> int:
                return original.pending

            def write(self, data: memoryview) -> int:
                written = original.write(data)
                fed.append(original.pending)
                return written

        server._in = Counting()  # type: ignore[assignment]
        assert await read_all(server, 400_000) == bytes(400_000)
        assert max(fed) <= 2 * FED_BYTES


# --- handshakes that fail


async def fails(sent: bytes, then_close: bool = False) -> str:
    """Why the server ends a handshake in which the client sends only this."""
    here, there = raw_ends(1_000_000)
    server = TlsStream(here, server_context(), new_scratch())
    await there.send_parts([sent])
    if then_close:
        there.close()
    with pytest.raises((HandshakeFailed, OtherProtocolError)) as raised:
        await server.handshake(trio.Lock())
    return raised.value.text("SSL") if isinstance(raised.value, OtherProtocolError) else str(raised.value)


async def test_a_plain_client_is_reported_with_what_to_do() -> None:
    reported = await fails(b"\0\0\0\x2a\0\x12\0\x03")
    assert reported.startswith("plain-text Kafka request on a SSL listener, which is encrypted: set security.protocol")
    assert "HTTP request" in await fails(b"GET / HTTP/1.1\r\n")
    assert "not a TLS handshake" in await fails(b"\x80\x2e\x01")


async def test_a_handshake_has_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_stream, "HANDSHAKE_BYTES_MAX", 50_000)
    hello = b"\x01" + (100_000).to_bytes(3, "big") + bytes(100_000)
    parts = [hello[at : at + 16384] for at in range(0, len(hello), 16384)]
    records = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)
    assert await fails(records) == "more than 50000 bytes in a TLS handshake"


async def test_a_client_that_leaves_ends_the_handshake() -> None:
    assert "closed the connection" in await fails(b"\x16\x03\x01\x02\x00\x01", then_close=True)


async def test_reasons_are_sentences(tmp_path_factory: pytest.TempPathFactory) -> None:
    async def reason(client: ssl.SSLContext, server: ssl.SSLContext) -> str:
        here, there = raw_ends()
        ours = TlsStream(here, server, new_scratch())
        theirs = TlsStream(there, client, new_scratch(), "127.0.0.1")
        reasons: list[str] = []

        async def shake() -> None:
            try:
                await ours.handshake(trio.Lock())
                await ours.receive_into(memoryview(bytearray(10)))
            except HandshakeFailed as error:
                reasons.append(str(error))
            here.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(shake)
            try:
                await theirs.handshake(trio.Lock())
                await theirs.receive_into(memoryview(bytearray(10)))
            except (HandshakeFailed, OSError):
                pass
            there.close()
        return reasons[0]

    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    stranger.issue("other")
    unknown = ssl.create_default_context(cafile=str(stranger.certificate))
    assert "does not trust the issuer" in await reason(unknown, server_context())
    demanding = server_context()
    demanding.verify_mode = ssl.CERT_REQUIRED
    assert "shows no certificate" in await reason(client_context(), demanding)
    wrong = client_context()
    wrong.load_cert_chain(stranger.directory / "other.pem")
    assert "certificate is not accepted: " in await reason(wrong, demanding)
    old = client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    new = server_context()
    new.minimum_version = ssl.TLSVersion.TLSv1_3
    assert "ssl.enabled.protocols" in await reason(old, new)


async def test_a_crowd_in_handshakes_lets_others_run_between_the_steps() -> None:
    """Two handshakes share a slot: no step begins before the other task has yielded."""
    slot = trio.Lock()
    passes = 0

    async def other() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with trio.open_nursery() as handshakes:
            for _ in range(5):
                here, there = raw_ends()
                handshakes.start_soon(TlsStream(here, server_context(), new_scratch()).handshake, slot)
                client = TlsStream(there, client_context(), new_scratch(), "127.0.0.1")
                handshakes.start_soon(client.handshake, trio.Lock())
        nursery.cancel_scope.cancel()
    assert passes >= 10


async def test_a_client_certificate_is_known_to_the_server() -> None:
    context = server_context()
    here, there = raw_ends()
    context.load_verify_locations(authority().certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = TlsStream(here, context, new_scratch())
    client = TlsStream(there, client_context("client"), new_scratch(), "127.0.0.1")
    await both(server, client)
    assert server.peer_certificate is not None
    assert server.protocol[0] == "TLSv1.3"
