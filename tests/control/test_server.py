"""The channel over real sockets: HTTP as it is specified, and clean errors for what is not."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio

from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.control import server as control_server
from kpybroker.control.errors import ControlError
from kpybroker.control.hosted import Hosted
from kpybroker.control.registry import JSON, Group, Registry, methods
from kpybroker.control.server import ControlServer

EVENTS: list[str] = []


async def echo(hosted: Hosted, value: JSON = None) -> JSON:
    """Return the argument."""
    return value


async def wait(hosted: Hosted) -> JSON:
    """Wait until the client goes away."""
    EVENTS.append("waits")
    try:
        await trio.sleep_forever()
    finally:
        EVENTS.append("ended")


async def refuse(hosted: Hosted) -> JSON:
    """Refuse."""
    raise ControlError("it is down", "start it", status=409)


async def fail_to_start(hosted: Hosted) -> JSON:
    """Fail as the start of a broker does."""
    raise StartupError("port 1 is taken", "choose another", 5)


async def crash(hosted: Hosted) -> JSON:
    """Fail as code with a mistake does."""
    raise KeyError("secret")


async def no_json(hosted: Hosted) -> JSON:
    """Return what is not JSON."""
    return object()


REGISTRY = Registry([Group.of(*methods(echo, wait, refuse, fail_to_start, crash, no_json))])


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, int]]:
    server = ControlServer(cast(Hosted, None), REGISTRY)
    address = server.listen(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        yield address
        nursery.cancel_scope.cancel()


class Client:
    """Bytes out, responses in."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.data = b""

    async def send(self, text: str, body: bytes = b"") -> None:
        await self.stream.send_all(text.replace("\n", "\r\n").encode() + body)

    async def response(self) -> tuple[int, dict[str, str], Any]:
        head = await self._until(b"\r\n\r\n")
        status, *lines = head.decode().splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await self._exactly(int(headers.get("content-length", 0)))
        return int(status.split()[1]), headers, json.loads(body) if body else None

    async def _until(self, end: bytes) -> bytes:
        while end not in self.data:
            self.data += await self._some()
        head, _, self.data = self.data.partition(end)
        return head

    async def _exactly(self, count: int) -> bytes:
        while len(self.data) < count:
            self.data += await self._some()
        body, self.data = self.data[:count], self.data[count:]
        return body

    async def _some(self) -> bytes:
        data = await self.stream.receive_some()
        if not data:
            raise EOFError
        return data

    async def ends(self) -> bool:
        try:
            return self.data == b"" and await self.stream.receive_some() == b""
        except trio.BrokenResourceError:
            return True


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    with trio.fail_after(60):
        async with serving() as (host, port), await trio.open_tcp_stream(host, port) as stream:
            yield Client(stream)


def post(path: str, body: bytes = b"", *headers: str) -> str:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\n".join(lines)


async def error_of(one: Client) -> tuple[int, str, str]:
    status, headers, body = await one.response()
    assert headers["content-type"] == "application/json"
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"cause", "fix"}
    return status, body["error"]["cause"], body["error"]["fix"]


async def test_requests_of_one_connection_get_responses_in_order_also_if_they_arrive_together() -> None:
    async with client() as one:
        requests = b""
        for number in range(5):
            body = json.dumps({"value": number}).encode()
            requests += post("/v1/echo", body).replace("\n", "\r\n").encode() + body
        await one.stream.send_all(requests)
        assert [(await one.response())[::2] for _ in range(5)] == [(200, number) for number in range(5)]


async def test_the_methods_are_listed() -> None:
    async with client() as one:
        await one.send("GET /v1 HTTP/1.1\nHost: localhost\n\n")
        status, _, body = await one.response()
        assert status == 200
        assert body["methods"]["echo"] == {
            "doc": "Return the argument.",
            "arguments": {"value": {"type": "any value", "default": None}},
        }


@pytest.mark.parametrize("value", [None, "é\ud800", [1, {"a": None}], 2**70, ""])
async def test_any_json_passes(value: JSON) -> None:
    async with client() as one:
        body = json.dumps({"value": value}).encode()
        await one.send(post("/v1/echo", body), body)
        assert (await one.response())[::2] == (200, value)


@pytest.mark.parametrize(
    ("request_text", "body", "status", "cause", "fix"),
    [
        (post("/v1/ecko"), b"", 404, "there is no method `ecko`", "did you mean `echo`?"),
        (post("/"), b"", 404, "there is nothing at /", "POST /v1/<method>; GET /v1 lists them"),
        (post("/v2/echo"), b"", 404, "there is nothing at /v2/echo", "POST /v1/<method>; GET /v1 lists them"),
        (post("/v1"), b"", 405, "/v1 lists the methods by GET", "use GET"),
        ("GET /v1/echo HTTP/1.1\nHost: localhost:1\n\n", b"", 405, "echo is called by POST", "use POST"),
        (post("/v1/echo", b"[1]"), b"[1]", 400, "the body is not a JSON object", "send the arguments by name"),
        (post("/v1/echo", b"{"), b"{", 400, "the body is not JSON", "send a JSON object"),
        (post("/v1/echo", b"\xff"), b"\xff", 400, "the body is not JSON", "send a JSON object"),
        (post("/v1/echo", b"[" * 99_999), b"[" * 99_999, 400, "the body is not JSON", "send a JSON object"),
        (post("/v1/echo", b'{"valu":1}'), b'{"valu":1}', 400, "echo has no argument `valu`", "did you mean `value`?"),
        (post("/v1/refuse"), b"", 409, "it is down", "start it"),
        (post("/v1/fail_to_start"), b"", 409, "port 1 is taken", "choose another"),
        (post("/v1/crash"), b"", 500, "the method failed: KeyError: 'secret'", "report it"),
        (post("/v1/no_json"), b"", 500, "the method failed: TypeError", "report it"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_cause_and_fix_and_the_connection_goes_on(
    request_text: str, body: bytes, status: int, cause: str, fix: str
) -> None:
    async with client() as one:
        for _ in range(2):
            await one.send(request_text, body)
            got = await error_of(one)
            assert (got[0], got[1].startswith(cause), got[2].startswith(fix)) == (status, True, True), got
        await one.send(post("/v1/echo"))
        assert (await one.response())[::2] == (200, None)


async def test_a_failure_is_logged_with_its_traceback_which_the_response_does_not_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with client() as one:
        await one.send(post("/v1/crash"))
        assert "Traceback" not in (await error_of(one))[1]
    assert "The control method of /v1/crash failed" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("nonsense\n\n", 400),
        ("POST /v1/echo HTTP/1.1\n\n", 400),
        ("POST /v1/echo HTTP/1.1\nHost: localhost\nContent-Length: x\n\n", 400),
        (f"POST /v1/echo HTTP/1.1\nHost: localhost\nX: {'x' * 40_000}\n\n", 431),
        (post("/v1/echo").replace("Content-Length: 0", f"Content-Length: {1 << 40}"), 413),
        (post("/v1/echo", b"", "Origin: http://evil.example"), 403),
        ("POST /v1/echo HTTP/1.1\nHost: evil.example\n\n", 421),
    ],
)
async def test_what_is_not_http_gets_one_response_and_the_connection_ends(text: str, status: int) -> None:
    async with client() as one:
        await one.send(text)
        assert (await error_of(one))[0] == status
        assert await one.ends()


async def test_a_body_without_a_length_is_refused_once_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_server, "DOOR", control_server.DOOR._replace(body_bytes=100_000))
    async with client() as one:
        await one.send("POST /v1/echo HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n")
        for _ in range(2):
            await one.send("C350\n" + "x" * 50_000 + "\n")
        await one.send("1\nx\n")
        assert (await error_of(one))[0] == 413
        assert await one.ends()


async def test_a_client_that_asks_first_whether_it_may_send_gets_a_response() -> None:
    async with client() as one:
        await one.send(post("/v1/echo", b"{}", "Expect: 100-continue"))
        assert (await one.response())[0] == 100
        await one.send("", b"{}")
        assert (await one.response())[::2] == (200, None)


async def test_a_connection_that_the_client_does_not_want_to_keep_ends() -> None:
    async with client() as one:
        await one.send(post("/v1/echo", b"", "Connection: close"))
        assert (await one.response())[0] == 200
        assert await one.ends()


async def test_a_method_whose_client_goes_away_is_cancelled_and_others_go_on() -> None:
    EVENTS.clear()
    with trio.fail_after(60):
        async with serving() as (host, port):
            first = await trio.open_tcp_stream(host, port)
            async with await trio.open_tcp_stream(host, port) as second:
                await Client(first).send(post("/v1/wait"))
                while EVENTS != ["waits"]:
                    await trio.lowlevel.checkpoint()
                other = Client(second)
                await other.send(post("/v1/echo"))
                assert (await other.response())[0] == 200
                await first.aclose()
                while EVENTS != ["waits", "ended"]:
                    await trio.lowlevel.checkpoint()


async def test_one_connection_too_many_ends_the_one_that_was_quiet_for_longest_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_server, "LIMITS", control_server.LIMITS._replace(connections=3))
    with trio.fail_after(60):
        async with serving() as (host, port):
            streams = [await trio.open_tcp_stream(host, port) for _ in range(3)]
            for stream in streams:
                await Client(stream).send(post("/v1/echo"))
                assert (await Client(stream).response())[0] == 200
            extra = Client(await trio.open_tcp_stream(host, port))
            assert await Client(streams[0]).ends()
            for one in (Client(streams[1]), Client(streams[2]), extra):
                await one.send(post("/v1/echo"))
                assert (await one.response())[0] == 200
            for stream in [*streams, extra.stream]:
                await stream.aclose()


async def test_only_loopback_is_bound() -> None:
    server = ControlServer(cast(Hosted, None), REGISTRY)
    host, port = server.listen(0)
    assert host == "127.0.0.1"
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port), timeout=5)


async def test_a_port_that_is_taken_is_an_error_that_leaves_no_socket_open() -> None:
    first = ControlServer(cast(Hosted, None), REGISTRY)
    _, port = first.listen(0)
    with pytest.raises(OSError, match="in use"):
        ControlServer(cast(Hosted, None), REGISTRY).listen(port)
    first.close()
