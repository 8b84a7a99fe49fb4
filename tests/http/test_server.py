"""The HTTP server over a real socket: what it refuses, what it keeps open, what it bounds."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kpybroker.http import server as http_server
from kpybroker.http.messages import HttpError, Request, Response, host_name
from kpybroker.http.server import DRAIN_S, HEADER_BYTES_MAX, HttpServer, Limits

BODY_BYTES_MAX = 10
CONNECTIONS_MAX = 2


async def echo(request: Request) -> Response:
    if request.path != "/":
        raise HttpError("there is nothing here", "GET /", 404)
    return Response(200, f"{request.verb} {request.query} ".encode() + request.body)


def refused(error: HttpError) -> Response:
    return Response(error.status, f"{error.cause}\n{error.fix}\n".encode())


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, int]]:
    limits = Limits(CONNECTIONS_MAX, BODY_BYTES_MAX)
    server = HttpServer(echo, refused, limits, "The test's port", logging.getLogger("test"))
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


async def test_one_connection_too_many_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as address:
        streams = [await trio.open_tcp_stream(*address) for _ in range(CONNECTIONS_MAX)]
        for stream in streams:
            await stream.send_all(request("GET /"))
            assert b" 200 " in await stream.receive_some(1000)
        async with await trio.open_tcp_stream(*address) as one_more:
            assert await read_to_end(one_more) == b""
        assert "has 2 connections: one more is closed" in caplog.text
        for stream in streams:
            await stream.aclose()


@pytest.mark.parametrize(("host", "name"), [("a:1", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("", "")])
def test_the_name_of_a_host_has_no_port(host: str, name: str) -> None:
    assert host_name({"host": host}) == name
