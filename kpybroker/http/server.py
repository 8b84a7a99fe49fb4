"""Sockets and connections: requests one after the other on each, as long as the client likes.

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

from kpybroker.core.line_limit import about_client
from kpybroker.http.messages import HttpError, Request, Response
from kpybroker.system import listening

HEADER_BYTES_MAX = 16 << 10
CHUNK_BYTES = 8 << 10
DRAIN_BYTES_MAX: Final = 16 << 20
"""Of a request that is refused. The client of a larger one may see a reset instead of the response."""
DRAIN_S: Final = 2.0
"""For the client to receive the response and close."""
CLOSE: Final = ("Connection", "close")

Respond = Callable[[Request], Awaitable[Response]]
Refuse = Callable[[HttpError], Response]


class Limits(NamedTuple):
    """`idle_s`: how long a client may take for its next request, or for a piece of the response."""

    connections: int
    body_bytes: int
    idle_s: float = float("inf")


class HttpServer:
    """Bind with `listen`, then run `serve` until it is cancelled.

    `respond` may raise HttpError. `refuse` makes the response to that, and to what is no HTTP. `name` is for the log.
    """

    def __init__(self, respond: Respond, refuse: Refuse, limits: Limits, name: str, logger: logging.Logger) -> None:
        self._respond = respond
        self._refuse = refuse
        self._limits = limits
        self._name = name
        self._logger = logger
        self._sock: socket.socket | None = None
        self._connections = trio.CapacityLimiter(limits.connections)

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
        extra = about_client(_address(stream))
        try:
            async with stream:
                self._connections.acquire_nowait()
                try:
                    await _Connection(stream, self._respond, self._refuse, self._limits).serve()
                finally:
                    self._connections.release()
        except trio.WouldBlock:
            text = "%s has %d connections: one more is closed"
            self._logger.warning(text, self._name, self._limits.connections, extra=extra)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client went away, or does not read
        except Exception:
            self._logger.exception("A connection of %s failed", self._name, extra=extra)


def _address(stream: trio.SocketStream) -> str:
    """Of a client, whose connection may have ended."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return "unknown"


class _Connection:
    """One client."""

    def __init__(self, stream: trio.SocketStream, respond: Respond, refuse: Refuse, limits: Limits) -> None:
        self._stream = stream
        self._respond = respond
        self._refuse = refuse
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES_MAX)

    async def serve(self) -> None:
        """Until the client leaves, is too slow, or breaks the protocol."""
        http = self._http
        while True:
            try:
                with trio.fail_after(self._limits.idle_s):
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
            response = await self._while_connected(request)
            if response is None:
                return
            await self._send(response, with_body=request.verb != "HEAD")
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    async def _refuse_and_close(self, error: HttpError) -> None:
        """The response to a request that is not read to its end; then wait, within bounds, for the client to close."""
        refused = self._refuse(error)
        await self._send(refused._replace(headers=(*refused.headers, CLOSE)))
        dropped = 0
        with trio.move_on_after(DRAIN_S):
            await self._stream.send_eof()
            while dropped < DRAIN_BYTES_MAX and (data := await self._stream.receive_some(CHUNK_BYTES)):
                dropped += len(data)

    async def _next_request(self) -> Request | None:
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head.headers}
        self._check_size(int(headers.get("content-length", 0)))
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self._stream.send_all(self._http.send(go_on) or b"")
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            self._check_size(len(body))
        if not isinstance(event, h11.EndOfMessage):
            return None
        path, _, query = head.target.decode("latin-1").partition("?")
        return Request(head.method.decode("latin-1"), path, headers, bytes(body), query)

    def _check_size(self, size: int) -> None:
        if size > self._limits.body_bytes:
            raise HttpError(f"the body is larger than {self._limits.body_bytes} bytes", "send less at once", status=413)

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
                response = await self._respond(request)
            except HttpError as error:
                response = self._refuse(error)
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
        with trio.fail_after(self._limits.idle_s):
            await self._stream.send_all(data)
