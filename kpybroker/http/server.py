"""Sockets and connections: requests one after the other on each, as long as the client likes.

What is let in at all is decided by `doors`, before a request's body is read. Heads and bodies have deadlines, and while
all connections are taken, a new one gets the seat of one that waits (`core.doors.crowd`).

A handler whose client goes away is cancelled. A failure of a connection is a log line and ends that connection.
A request that is refused before it was read ends its connection. What the client still sends is received and dropped
first, within bounds: closing a socket with unread bytes resets the connection, and the client may lose the response.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, NamedTuple

import h11
import trio

from kpybroker.core.doors.crowd import Crowd, Seat
from kpybroker.core.line_limit import Seldom
from kpybroker.http import doors
from kpybroker.http.doors import Door
from kpybroker.http.messages import HttpError, Request, Response
from kpybroker.system.sockets import listening

HEADER_BYTES_MAX = 16 << 10
CHUNK_BYTES = 8 << 10
DRAIN_BYTES_MAX: Final = 16 << 20
"""Of a request that is refused. The client of a larger one may see a reset instead of the response."""
DRAIN_S: Final = 2.0
"""For the client to receive the response and close."""
CLOSE: Final = ("Connection", "close")


class Served(NamedTuple):
    """What a server serves: `door` decides which requests `respond` sees, which may raise HttpError. `refuse` makes
    the response to that, to what the door refuses, and to what is not HTTP."""

    door: Door
    respond: Callable[[Request], Awaitable[Response]]
    refuse: Callable[[HttpError], Response]


class Limits(NamedTuple):
    """What a client may take.

    `idle_s`: from one request to the next. `head_s`: for a request's head, from its first byte, and for the first one
    from the connection. `body_s`: for its body. `send_s`: until it has received a piece of the response.
    """

    connections: int
    idle_s: float = 120.0
    head_s: float = 10.0
    body_s: float = 60.0
    send_s: float = 60.0


class HttpServer:
    """Bind with `listen`, then run `serve` until it is cancelled. `name` is for the log."""

    def __init__(self, served: Served, limits: Limits, name: str, logger: logging.Logger) -> None:
        self._served = served
        self._limits = limits
        self._name = name
        self._logger = logger
        self._sock: socket.socket | None = None
        self._crowd = Crowd(limits.connections)
        self._refusals = Seldom()

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Bind; the address. Port 0 takes a free one. Raises OSError."""
        self._sock = listening(host, port)
        bound_host, bound_port = self._sock.getsockname()[:2]
        return bound_host, bound_port

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
        scope = trio.CancelScope()
        try:
            async with stream:
                seat = self._crowd.enter(_address(stream), scope.cancel, trio.current_time())
                if seat is None:
                    self._log_refusal()
                    return
                try:
                    with scope:
                        await _Connection(stream, self._served, self._limits, seat).serve()
                finally:
                    self._crowd.leave(seat)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client went away, or is too slow
        except Exception:
            self._logger.exception("A connection of %s failed", self._name)

    def _log_refusal(self) -> None:
        unsaid = self._refusals.may_say(trio.current_time())
        if unsaid is not None:
            text = "%s has %d connections, all with a request in progress: one more is closed (others: %d)"
            self._logger.warning(text, self._name, self._limits.connections, unsaid)


def _address(stream: trio.SocketStream) -> str:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:  # it has gone
        return ""


class _Connection:
    """One client."""

    def __init__(self, stream: trio.SocketStream, served: Served, limits: Limits, seat: Seat) -> None:
        self._stream = stream
        self._served = served
        self._limits = limits
        self._seat = seat
        self._is_first = True
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES_MAX)

    async def serve(self) -> None:
        """Until the client leaves, is too slow, or breaks the protocol."""
        http = self._http
        while True:
            try:
                request = await self._next_request()
            except h11.RemoteProtocolError as error:
                cause = f"not a request of HTTP/1.1: {error}"
                await self._refuse_and_close(HttpError(cause, "send HTTP/1.1", error.error_status_hint))
                return
            except HttpError as error:
                await self._refuse_and_close(error)
                return
            if request is None:
                return
            self._seat.be_busy()
            response = await self._while_connected(request)
            if response is None:
                return
            await self._send(response, with_body=request.verb != "HEAD")
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    async def _refuse_and_close(self, error: HttpError) -> None:
        """The response to a request that is not read to its end; then wait, within bounds, for the client to close."""
        refused = self._served.refuse(error)
        await self._send(refused._replace(headers=(*refused.headers, CLOSE)))
        dropped = 0
        self._seat.wait(trio.current_time())
        with trio.move_on_after(DRAIN_S):
            await self._stream.send_eof()
            while dropped < DRAIN_BYTES_MAX and (data := await self._stream.receive_some(CHUNK_BYTES)):
                dropped += len(data)

    async def _next_request(self) -> Request | None:
        """None at the end of the stream. Raises HttpError, h11.RemoteProtocolError, and TooSlowError."""
        self._seat.wait(trio.current_time())
        if not self._is_first and not self._http.trailing_data[0]:
            with trio.fail_after(self._limits.idle_s):
                self._http.receive_data(await self._stream.receive_some(CHUNK_BYTES))
        self._is_first = False
        with trio.fail_after(self._limits.head_s):
            head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head.headers}
        verb, door = head.method.decode("latin-1"), self._served.door
        path, _, query = head.target.decode("latin-1").partition("?")
        refused = doors.refusal(door, verb, path, headers)
        if refused is not None:
            raise refused
        with trio.fail_after(self._limits.body_s):
            body = await self._body(door)
        return None if body is None else Request(verb, path, headers, body, query)

    async def _body(self, door: Door) -> bytes | None:
        """None at the end of the stream."""
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self._stream.send_all(self._http.send(go_on) or b"")
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > door.body_bytes:
                raise doors.too_large(door)
        return bytes(body) if isinstance(event, h11.EndOfMessage) else None

    async def _next_event(self) -> Any:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._stream.receive_some(CHUNK_BYTES))

    async def _while_connected(self, request: Request) -> Response | None:
        """The response; None if the client goes away before it is there, which cancels the handler."""
        response: Response | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_at_the_end, nursery.cancel_scope)
            try:
                response = await self._served.respond(request)
            except HttpError as error:
                response = self._served.refuse(error)
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

    async def _send(self, response: Response, *, with_body: bool = True) -> None:
        http, stream = self._http, response.stream
        if http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = [("Content-Type", response.content_type), ("Cache-Control", "no-store"), *response.headers]
        if stream is None:
            headers.append(("Content-Length", str(len(response.body))))
        head = http.send(h11.Response(status_code=response.status, headers=headers)) or b""
        if stream is not None and with_body:
            await self._send_all(head)
            async with aclosing(stream):
                async for piece in stream:
                    await self._send_all(http.send(h11.Data(data=piece)) or b"")
            await self._send_all(http.send(h11.EndOfMessage()) or b"")
            return
        body = (http.send(h11.Data(data=response.body)) or b"") if with_body and response.body else b""
        await self._send_all(head + body + (http.send(h11.EndOfMessage()) or b""))

    async def _send_all(self, data: bytes) -> None:
        self._seat.wait(trio.current_time())  # for the client to receive it
        with trio.fail_after(self._limits.send_s):
            await self._stream.send_all(data)
        self._seat.be_busy()
