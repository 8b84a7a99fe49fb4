"""One request after the other on a connection to another broker, whatever pieces the responses arrive in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.network.transport import Listener, SocketTransport, Stream, Transport
from kpybroker.broker.peers.connection import FIRST_BUFFER_BYTES, LogIn, PeerConnection, Request, no_login
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode_from, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import parse_request_header
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from tests.support.network.memory_transport import MemoryTransport
from tests.support.time_slices import counted_time_slices

VERSION = 12
RESPONSE_TIMEOUT_S = 30.0


def fetch(session_epoch: int) -> Request:
    return Request(ApiKey.FETCH, FetchRequest(session_epoch=session_epoch), VERSION)


def response_frame(session_id: int, correlation_id: int, records: bytes = b"", partitions: int = 1) -> bytes:
    data = [FetchResponse.PartitionData(partition_index=i, records=records) for i in range(partitions)]
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=data)
    body = encode(FetchResponse(session_id=session_id, responses=[topic]), VERSION)
    frame = correlation_id.to_bytes(4, "big") + b"\0" + body
    return len(frame).to_bytes(4, "big") + frame


async def receive_exactly(stream: Stream, size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        buffer = bytearray(size - len(data))
        received = await stream.receive_into(memoryview(buffer))
        assert received
        data += buffer[:received]
    return data


async def next_correlation_id(stream: Stream) -> int:
    size = int.from_bytes(await receive_exactly(stream, 4), "big")
    return int.from_bytes((await receive_exactly(stream, size))[4:8], "big")


Serve = Callable[[Stream], Any]


@asynccontextmanager
async def connection_to(
    serve: Serve, transport: Transport | None = None, log_in: LogIn = no_login
) -> AsyncIterator[PeerConnection]:
    transport = transport or SocketTransport()
    listener: Listener = transport.listen("127.0.0.1", 0, 5)
    host, port = listener.address

    async def accept() -> None:
        stream = await listener.accept()
        try:
            await serve(stream)
        finally:
            stream.close()

    connection = PeerConnection(lambda timeout_s: transport.connect(host, port, timeout_s), "test", log_in)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.poll)
        nursery.start_soon(accept)
        await trio.testing.wait_all_tasks_blocked()
        try:
            yield connection
        finally:
            connection.close()
            nursery.cancel_scope.cancel()
            listener.close()


@pytest.mark.parametrize("piece", [1, 3, 50, 100_000])
async def test_a_conversation_ends_with_the_last_request(piece: int) -> None:
    sizes = [0, 10, 1000, FIRST_BUFFER_BYTES, 5 * FIRST_BUFFER_BYTES, 1]

    async def serve(stream: Stream) -> None:
        for number, size in enumerate(sizes):
            frame = response_frame(number, await next_correlation_id(stream), b"x" * size)
            step = max(piece, size // 50)
            for start in range(0, len(frame), step):
                await stream.send_parts([frame[start : start + step]])
                await trio.lowlevel.checkpoint()

    got: list[tuple[int, int]] = []

    def on_response(response: FetchResponse) -> Request | None:
        records = bytes(response.responses[0].partitions[0].records or b"")
        assert records == b"x" * len(records)
        got.append((response.session_id, len(records)))
        return fetch(len(got)) if len(got) < len(sizes) else None

    async with connection_to(serve) as connection:
        await connection.converse(fetch(0), on_response, RESPONSE_TIMEOUT_S)
    assert got == list(enumerate(sizes))


async def test_a_large_response_is_decoded_in_time_slices_and_the_conversation_continues() -> None:
    async def serve(stream: Stream) -> None:
        for number in range(3):
            await stream.send_parts([response_frame(number, await next_correlation_id(stream), partitions=20_000)])

    got: list[int] = []

    def on_response(response: FetchResponse) -> Request | None:
        got.append(len(response.responses[0].partitions))
        return fetch(len(got)) if len(got) < 3 else None

    async with connection_to(serve) as connection, counted_time_slices() as of_others:
        await connection.converse(fetch(0), on_response, RESPONSE_TIMEOUT_S)
        assert of_others() > 10
    assert got == [20_000] * 3


async def test_the_next_conversation_is_on_the_same_connection() -> None:
    async def serve(stream: Stream) -> None:
        for number in range(3):
            await stream.send_parts([response_frame(number, await next_correlation_id(stream))])

    async with connection_to(serve) as connection:
        asked = [await connection.ask(fetch(0), RESPONSE_TIMEOUT_S) for _ in range(3)]
    assert [response.session_id for response in asked] == [0, 1, 2]


async def test_a_request_larger_than_the_send_buffer_is_sent_completely() -> None:
    capacity = 1000
    large = Request(ApiKey.FETCH, FetchRequest(rack_id="r" * 5 * capacity), VERSION)
    asked: list[str] = []

    async def serve(stream: Stream) -> None:
        await stream.send_parts([response_frame(0, await next_correlation_id(stream))])
        frame = await receive_exactly(stream, int.from_bytes(await receive_exactly(stream, 4), "big"))
        header = parse_request_header(frame)
        request, _ = decode_from(FetchRequest, frame, header.body_offset, VERSION)
        asked.append(request.rack_id)
        await stream.send_parts([response_frame(1, header.correlation_id)])

    got: list[int] = []

    def on_response(response: FetchResponse) -> Request | None:
        got.append(response.session_id)
        return large if len(got) == 1 else None

    async with connection_to(serve, MemoryTransport(pipe_capacity=capacity)) as connection:
        await connection.converse(fetch(0), on_response, RESPONSE_TIMEOUT_S)
    assert got == [0, 1]
    assert asked == [large.message.rack_id]


BROKEN: dict[str, Callable[[int], bytes]] = {
    "another request's": lambda correlation_id: response_frame(0, correlation_id + 1),
    "two": lambda correlation_id: response_frame(0, correlation_id) * 2,
    "too short a size": lambda _: (3).to_bytes(4, "big") + b"abc",
    "a negative size": lambda _: (-5).to_bytes(4, "big", signed=True),
    "no message": lambda correlation_id: (12).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + b"\xff" * 8,
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_an_invalid_response_closes_the_connection(kind: str) -> None:
    async def serve(stream: Stream) -> None:
        await stream.send_parts([BROKEN[kind](await next_correlation_id(stream))])
        await trio.sleep_forever()

    async with connection_to(serve) as connection:
        with pytest.raises(ProtocolError):
            await connection.ask(fetch(0), RESPONSE_TIMEOUT_S)
        assert connection._stream is None


async def test_a_peer_that_hangs_up_during_a_response_is_a_failure() -> None:
    async def serve(stream: Stream) -> None:
        await stream.send_parts([response_frame(0, await next_correlation_id(stream))[:-3]])

    async with connection_to(serve) as connection:
        with pytest.raises(EOFError):
            await connection.ask(fetch(0), RESPONSE_TIMEOUT_S)


async def test_the_timeout_applies_to_each_response(autojump_clock: trio.testing.MockClock) -> None:
    """Five responses together take longer than the timeout of one; a sixth is not sent."""
    begin = trio.current_time()

    async def serve(stream: Stream) -> None:
        for number in range(5):
            correlation_id = await next_correlation_id(stream)
            await trio.sleep(10)
            await stream.send_parts([response_frame(number, correlation_id)])
        await trio.sleep_forever()

    got: list[int] = []

    def on_response(response: FetchResponse) -> Request:
        got.append(response.session_id)
        return fetch(len(got))

    async with connection_to(serve, MemoryTransport()) as connection:
        with pytest.raises(trio.TooSlowError):
            await connection.converse(fetch(0), on_response, RESPONSE_TIMEOUT_S)
    assert got == [0, 1, 2, 3, 4]
    assert trio.current_time() - begin == pytest.approx(5 * 10 + RESPONSE_TIMEOUT_S)


async def test_what_on_response_raises_is_raised_by_the_conversation() -> None:
    async def serve(stream: Stream) -> None:
        await stream.send_parts([response_frame(0, await next_correlation_id(stream))])

    def on_response(_: Any) -> Request | None:
        raise LookupError

    async with connection_to(serve) as connection:
        with pytest.raises(LookupError):
            await connection.converse(fetch(0), on_response, RESPONSE_TIMEOUT_S)


async def serve_in_order(stream: Stream) -> None:
    """Each response has the number of the request as its session id; a login is the byte L."""
    number = 0
    while True:
        first = await receive_exactly(stream, 1)
        if first == b"L":
            await stream.send_parts([b"L"])
            continue
        size = int.from_bytes(first + await receive_exactly(stream, 3), "big")
        correlation_id = int.from_bytes((await receive_exactly(stream, size))[4:8], "big")
        await stream.send_parts([response_frame(number, correlation_id)])
        number += 1


@pytest.mark.parametrize("lifetime_s", [0.0, 1e9])
async def test_a_login_comes_first_and_again_when_its_session_is_nearly_over(lifetime_s: float) -> None:
    """Also within a conversation, between a response and the next request. No request is lost or sent twice."""
    logins = 0

    async def log_in(stream: Stream, timeout_s: float) -> float:
        nonlocal logins
        logins += 1
        await stream.send_parts([b"L"])
        assert await receive_exactly(stream, 1) == b"L"
        return trio.current_time() + lifetime_s

    got: list[int] = []

    def on_response(response: FetchResponse) -> Request | None:
        got.append(response.session_id)
        return fetch(len(got)) if len(got) % 10 else None

    async with connection_to(serve_in_order, log_in=log_in) as connection:
        for _ in range(2):
            await connection.converse(fetch(len(got)), on_response, RESPONSE_TIMEOUT_S)
    assert got == list(range(20))
    assert logins == (20 if lifetime_s == 0 else 1)


async def test_a_login_that_is_refused_closes_the_connection() -> None:
    async def log_in(stream: Stream, timeout_s: float) -> float:
        raise OSError("refused")

    async with connection_to(serve_in_order, log_in=log_in) as connection:
        with pytest.raises(OSError, match="refused"):
            await connection.ask(fetch(0), RESPONSE_TIMEOUT_S)
        assert connection._stream is None
