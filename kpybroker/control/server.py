"""The channel: HTTP/1.1 on loopback, `POST /v1/<method>` with a JSON object of arguments.

The response is the JSON of the result, or `{"error": {"cause": ..., "fix": ...}}`. `GET /v1` lists the methods.

Rules
- Only loopback: a program that reaches the channel may do anything to the broker. A request with an `Origin` is from a
  web page and is refused; so is one whose `Host` is not this address, which a page could have had resolved to it.
- Bodies, headers and the number of connections are bounded.
- A method whose client goes away is cancelled.
- A failure is a JSON error and a log line, never a traceback in a response.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import h11
import trio

from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.control.errors import ControlError
from kpybroker.control.registry import Registry

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

logger = logging.getLogger("kafka.server.KafkaServer")

HOST = "127.0.0.1"
PREFIX = "/v1"
BODY_BYTES_MAX = 64 << 20
HEADER_BYTES_MAX = 16 << 10
CONNECTIONS_MAX = 256
CHUNK_BYTES = 8 << 10
BACKLOG = 128


class Request(NamedTuple):
    """A request whose body has arrived."""

    verb: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Response(NamedTuple):
    """A status and the JSON of the body, encoded."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def answered(status: int, value: Any) -> Response:
    """A response. Raises ValueError or TypeError for what is no JSON."""
    return Response(status, json.dumps(value, allow_nan=False).encode())


def refused(error: ControlError) -> Response:
    """The response to a request that was refused."""
    return answered(error.status, {"error": {"cause": error.cause, "fix": error.fix}})


class ControlServer:
    """Bind with `listen`, then run `serve` until it is cancelled."""

    def __init__(self, hosted: Hosted, registry: Registry) -> None:
        self._hosted = hosted
        self._registry = registry
        self._sock: socket.socket | None = None
        self._connections = trio.CapacityLimiter(CONNECTIONS_MAX)

    def listen(self, port: int) -> tuple[str, int]:
        """Bind; the address. 0 takes a free port. Raises OSError."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((HOST, port))
            sock.listen(BACKLOG)
        except BaseException:
            sock.close()
            raise
        self._sock = sock
        address: tuple[str, int] = sock.getsockname()
        return address

    async def serve(self) -> None:
        """Serve until cancelled."""
        assert self._sock is not None
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._sock))
        await trio.serve_listeners(self._serve_connection, [listener])

    def close(self) -> None:
        """Close the socket of a server that was never served."""
        if self._sock is not None:
            self._sock.close()

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        try:
            async with stream:
                self._connections.acquire_nowait()
                try:
                    await _Connection(stream, self._respond).serve()
                finally:
                    self._connections.release()
        except trio.WouldBlock:
            logger.warning("The control channel has %d connections: one more is closed", CONNECTIONS_MAX)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client went away
        except Exception:
            logger.exception("A connection of the control channel failed")

    async def _respond(self, request: Request) -> Response:
        try:
            self._check_origin(request.headers)
            if request.path.rstrip("/") == PREFIX:
                return self._listed(request)
            name = _method_name(request.path)
            method = self._registry[name]
            if request.verb != "POST":
                return _wrong_verb("POST", f"{name} is called by POST")
            return answered(200, await method.call(self._hosted, _arguments(request.body)))
        except ControlError as error:
            return refused(error)
        except StartupError as error:
            return refused(ControlError(error.cause, error.fix, status=409))
        except Exception as error:
            logger.exception("The control method of %s failed", request.path)
            cause = f"the method failed: {type(error).__name__}: {error}"
            return refused(ControlError(cause, "report it with the broker's log", status=500))

    def _listed(self, request: Request) -> Response:
        if request.verb != "GET":
            return _wrong_verb("GET", f"{PREFIX} lists the methods by GET")
        return answered(200, self._registry.described())

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        if "origin" in headers:
            raise ControlError("the request is from a web page", "call the channel from a program", status=403)
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        if host not in ("127.0.0.1", "localhost"):
            raise ControlError(f"`Host` is {host!r}", "call the channel at 127.0.0.1", status=403)


def _wrong_verb(allowed: str, cause: str) -> Response:
    response = refused(ControlError(cause, f"use {allowed}", status=405))
    return response._replace(headers=(("Allow", allowed),))


def _method_name(path: str) -> str:
    prefix, _, name = path.rpartition("/")
    if prefix != PREFIX:
        raise ControlError(
            f"there is nothing at {path}", f"POST {PREFIX}/<method>; GET {PREFIX} lists them", status=404
        )
    return name


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ControlError(f"the body is not JSON: {error}", "send a JSON object of arguments") from error
    if not isinstance(arguments, dict):
        raise ControlError("the body is not a JSON object", "send the arguments by name, as an object")
    return arguments


def _check_size(size: int) -> None:
    if size > BODY_BYTES_MAX:
        raise ControlError(f"the body is larger than {BODY_BYTES_MAX} bytes", "send less at once", status=413)


class _Connection:
    """One client: requests one after the other, as long as it likes."""

    def __init__(self, stream: trio.SocketStream, respond: Any) -> None:
        self._stream = stream
        self._respond = respond
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES_MAX)

    async def serve(self) -> None:
        """Until the client leaves or breaks the protocol."""
        http = self._http
        while True:
            try:
                request = await self._next_request()
            except h11.RemoteProtocolError as error:
                await self._send(self._refusal(str(error), error.error_status_hint))
                return
            except ControlError as error:
                await self._send(refused(error))
                return
            if request is None:
                return
            response = await self._while_connected(request)
            if response is None:
                return
            await self._send(response)
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    def _refusal(self, cause: str, status: int) -> Response:
        return refused(ControlError(f"not a request of HTTP/1.1: {cause}", "POST /v1/<method> with JSON", status))

    async def _next_request(self) -> Request | None:
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head.headers}
        _check_size(int(headers.get("content-length", 0)))
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self._stream.send_all(self._http.send(go_on) or b"")
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            _check_size(len(body))
        if not isinstance(event, h11.EndOfMessage):
            return None
        path = head.target.decode("latin-1").partition("?")[0]
        return Request(head.method.decode("latin-1"), path, headers, bytes(body))

    async def _next_event(self) -> Any:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._stream.receive_some(CHUNK_BYTES))

    async def _while_connected(self, request: Request) -> Response | None:
        """The response; None if the client goes away before it is there, which cancels the method."""
        response: Response | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_at_the_end, nursery.cancel_scope)
            response = await self._respond(request)
            nursery.cancel_scope.cancel()
        return response

    async def _cancel_at_the_end(self, scope: trio.CancelScope) -> None:
        """Data of a next request is left where it is: then the end of the stream is not noticed before its turn."""
        sock = self._stream.socket
        try:
            if await sock.recv(1, socket.MSG_PEEK) == b"":
                scope.cancel()
        except OSError:
            scope.cancel()

    async def _send(self, response: Response) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            *response.headers,
        ]
        http = self._http
        head = http.send(h11.Response(status_code=response.status, headers=headers)) or b""
        data = (http.send(h11.Data(data=response.body)) or b"") + (http.send(h11.EndOfMessage()) or b"")
        await self._stream.send_all(head + data)
