"""The HTTP server over a real socket: what it refuses, what it keeps open, what it bounds."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kpybroker.http import server as http_server
from kpybroker.http.doors import Door
from kpybroker.http.messages import HttpError, Request, Response
from kpybroker.http.server import DRAIN_S, HEADER_BYTES_MAX, HttpServer, Limits, Served

BODY_BYTES_MAX = 10
CONNECTIONS_MAX = 2


MUCH = 64 << 20
WAITING = 0
SENDING: list[int] = []


async def much() -> AsyncGenerator[bytes, None]:
    SENDING.append(1)
    try:
        for _ in range(MUCH >> 20):
            yield bytes(1 << 20)
    finally:
        SENDING.clear()


async def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        await trio.sleep(0.01)
    raise AssertionError("it has not become true")


async def echo(request: Request) -> Response:
    global WAITING
    if request.path == "/wait":
        WAITING += 1
        try:
            await trio.sleep_forever()
        finally:
            WAITING -= 1
    if request.path == "/much":
        return Response(200, stream=much())
    if request.path != "/":
        raise HttpError("there is nothing here", "GET /", 404)
    return Response(200, f"{request.verb} {request.query} ".encode() + request.body)


def refused(error: HttpError) -> Response:
    return Response(error.status, f"{error.cause}\n{error.fix}\n".encode())


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, int]]:
    served = Served(Door(frozenset(("h",)), body_bytes=BODY_BYTES_MAX), echo, refused)
    server = HttpServer(served, Limits(CONNECTIONS_MAX), "The test's port", logging.getLogger("test"))
    address = server.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        yield address
        nursery.cancel_scope.cancel()


async def read_to_end(stream: trio.SocketStream) -> bytes:
    found = b""
    while piece := await stream.receive_some(65536):
        found += piece
    return found


async def sent(address: tuple[str, int], data: bytes) -> tuple[int, bytes]:
    """The status and the body, of a connection that the server closes."""
    async with await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(data)
        head, _, body = (await read_to_end(stream)).partition(b"\r\n\r\n")
        return int(head.split()[1]), body


async def send_without_end(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(bytes(65536))


async def send_slowly(stream: trio.SocketStream) -> None:
    while True:
        await trio.sleep(1)
        await stream.send_all(b"x")


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "Host: h", *headers, "", ""]).encode() + body


CLOSE = "Connection: close"


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        (request("GET /?a=b", CLOSE), 200, b"GET a=b "),
        (request("POST /", CLOSE, "Content-Length: 10", body=b"0123456789"), 200, b"POST  0123456789"),
        (request("HEAD /", CLOSE), 200, b""),
        (request("GET /other", CLOSE), 404, b"there is nothing here\nGET /\n"),
        (request("POST /", "Content-Length: 11"), 413, b"the body is larger than 10 bytes\nsend less at once\n"),
        (request("POST /", "Transfer-Encoding: chunked", body=b"b\r\n0123456789a\r\n"), 413, b"larger than 10 bytes"),
        (b"GET / HTTP/1.1\r\nX: ".ljust(HEADER_BYTES_MAX + 1, b"x"), 431, b"send HTTP/1.1"),
        (request("POST /", "Content-Length: ten"), 400, b"send HTTP/1.1"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, b"send HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400, b"send HTTP/1.1"),
    ],
)
async def test_each_request_has_its_status(data: bytes, status: int, text: bytes) -> None:
    async with serving() as address:
        found, body = await sent(address, data)
        assert found == status
        assert text in body if text else body == b""
        assert (await sent(address, request("GET /", CLOSE)))[0] == 200, "the server goes on"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (request("POST /", f"Content-Length: {4 << 20}"), 413),
        (request("POST /", "Transfer-Encoding: chunked", body=b"400000\r\n"), 413),
        (b"GET / HTTP/1.1\r\nX: ", 431),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
    ],
)
async def test_a_client_that_sends_all_of_a_refused_request_gets_the_response(head: bytes, status: int) -> None:
    """Without what is received after the refusal, the connection is reset while the client sends."""
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(head + bytes(4 << 20))
        found = await read_to_end(stream)
        assert int(found.split()[1]) == status
        assert b"connection: close" in found.lower()


async def test_a_refused_client_that_stays_holds_its_connection_for_a_while_only(autojump_clock: object) -> None:
    async with serving() as address:
        streams = [await trio.open_tcp_stream(*address) for _ in range(CONNECTIONS_MAX)]
        for stream in streams:
            await stream.send_all(request("POST /", "Content-Length: 11"))
            assert b" 413 " in await read_to_end(stream)
        assert trio.current_time() < DRAIN_S
        await trio.sleep(DRAIN_S)
        await trio.testing.wait_all_tasks_blocked()
        assert (await sent(address, request("GET /", CLOSE)))[0] == 200
        for stream in streams:
            await stream.aclose()


async def test_a_refused_client_that_sends_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "DRAIN_BYTES_MAX", 100_000)
    monkeypatch.setattr(http_server, "DRAIN_S", float("inf"))
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(request("POST /", "Content-Length: 11"))
        with pytest.raises(trio.BrokenResourceError):
            await send_without_end(stream)


async def test_requests_follow_each_other_on_a_connection() -> None:
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(
            request("GET /?1") + request("HEAD /?2") + request("GET /none") + request("GET /?3", CLOSE)
        )
        found = await read_to_end(stream)
        assert found.count(b"HTTP/1.1 200") == 3
        assert found.count(b"HTTP/1.1 404") == 1
        assert found.endswith(b"GET 3 ")


async def test_a_body_is_asked_for_where_the_client_waits() -> None:
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(request("POST /", CLOSE, "Content-Length: 2", "Expect: 100-continue"))
        assert b" 100 " in await stream.receive_some(1000)
        await stream.send_all(b"ab")
        assert (await read_to_end(stream)).endswith(b"POST  ab")


async def test_a_quiet_connection_gives_its_seat_to_a_new_one() -> None:
    async with serving() as address:
        streams = [await trio.open_tcp_stream(*address) for _ in range(CONNECTIONS_MAX)]
        for stream in streams:
            await stream.send_all(request("GET /"))
            assert b" 200 " in await stream.receive_some(1000)
        assert (await sent(address, request("GET /", CLOSE)))[0] == 200
        assert await read_to_end(streams[0]) == b""
        for stream in streams:
            await stream.aclose()


async def test_one_connection_too_many_is_closed_while_all_others_get_responses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line says so, not one for each."""
    async with serving() as address:
        streams = [await trio.open_tcp_stream(*address) for _ in range(CONNECTIONS_MAX)]
        for stream in streams:
            await stream.send_all(request("GET /wait"))
        await wait_until(lambda: WAITING == CONNECTIONS_MAX)
        for _ in range(5):
            async with await trio.open_tcp_stream(*address) as one_more:
                assert await read_to_end(one_more) == b""
        assert len(caplog.messages) == 1
        assert "has 2 connections, all with a request in progress" in caplog.text
        for stream in streams:
            await stream.aclose()
        await wait_until(lambda: WAITING == 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: y",
        b"\r\n",
        request("POST /", "Content-Length: 10"),
        request("POST /", "Transfer-Encoding: chunked", body=b"5\r\n012"),
        request("GET /") + b"GET /?half",
    ],
)
async def test_what_is_not_sent_to_its_end_has_a_deadline(data: bytes, autojump_clock: object) -> None:
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(data)
        with trio.fail_after(100):
            await read_to_end(stream)


async def test_a_head_that_comes_a_byte_at_a_time_has_the_same_deadline(autojump_clock: object) -> None:
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: h\r\nX: ")
        with pytest.raises(trio.BrokenResourceError), trio.fail_after(100):
            await send_slowly(stream)


async def test_a_client_that_does_not_read_its_response_is_closed(autojump_clock: object) -> None:
    async with serving() as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(request("GET /much"))
        await wait_until(lambda: bool(SENDING))
        await wait_until(lambda: not SENDING)
        assert len(await read_to_end(stream)) < MUCH


async def test_pages_of_other_sites_are_refused_before_their_body_is_read() -> None:
    async with serving() as address:
        for header in ("Origin: http://evil.example", "Sec-Fetch-Site: cross-site"):
            head = request("POST /", header, "Content-Length: 5")
            assert (await sent(address, head))[0] == 403
        assert (await sent(address, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))[0] == 421
        assert (await sent(address, request("POST /", "Content-Type: text/plain", "Content-Length: 5")))[0] == 415
