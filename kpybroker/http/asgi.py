"""The rules of `doors` for an ASGI application: middleware in front of everything else.

What is refused is refused before its body is read. A body above the limit of the door, which no header announced, ends
its request; so does one for which there is no room, since bodies of all requests together have a limit too. A client
that leaves within its body is no error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.requests import ClientDisconnect

from kpybroker.http import doors
from kpybroker.http.doors import Door
from kpybroker.http.messages import HttpError

BODIES_BYTES_MAX: Final = 64 << 20
"""Of all requests that are in progress."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class AtTheDoor:
    """Middleware. `refused` makes the application that sends a refusal."""

    def __init__(self, app: App, door: Door, refused: Callable[[HttpError], App]) -> None:
        self._app = app
        self._door = door
        self._refused = refused
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or refuse it. What is not a request of HTTP passes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = doors.refusal(self._door, scope["method"], scope["path"], headers)
        if refusal is not None:
            await self._refused(refusal)(scope, receive, send)
            return
        body = _Body(self, receive, send)
        try:
            await self._app(scope, body.receive, body.send)
        except _Refused as error:
            if not body.has_response:
                await self._refused(error.refusal)(scope, receive, send)
        except ClientDisconnect:
            pass
        finally:
            self._held_bytes -= body.size

    def admit(self, more: int, size: int) -> HttpError | None:
        """Count so many more bytes of a body that has `size` with them; why they are too many, if they are."""
        self._held_bytes += more
        if size > self._door.body_bytes:
            return doors.too_large(self._door)
        if self._held_bytes > BODIES_BYTES_MAX:
            return HttpError("the bodies of other requests take all room", "try again in a moment", 503)
        return None


class _Refused(Exception):
    """Raised where the application reads its body."""

    def __init__(self, refusal: HttpError) -> None:
        super().__init__(refusal.cause)
        self.refusal = refusal


class _Body:
    """The body of one request, as the application reads it."""

    def __init__(self, door: AtTheDoor, receive: Receive, send: Send) -> None:
        self._door = door
        self._receive = receive
        self._send = send
        self.size = 0
        self.has_response = False

    async def receive(self) -> Message:
        """Raises _Refused."""
        message = await self._receive()
        more = len(message.get("body", b""))
        self.size += more
        refusal = self._door.admit(more, self.size)
        if refusal is not None:
            raise _Refused(refusal)
        return message

    async def send(self, message: Message) -> None:
        """As it is."""
        self.has_response = True
        await self._send(message)
