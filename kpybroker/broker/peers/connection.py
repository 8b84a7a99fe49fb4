"""A connection to another broker with one request at a time on it: Kafka's ``BlockingSender``.

It is opened by the first request, and closed after any failure. The poller drives a conversation, one request after the
other: between a response and the next request no task wakes up, unless the response is so large that it is decoded in
steps.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Generator
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import trio

from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.loop.yielding import paced
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import LARGE_FRAME_BYTES, decode, decode_steps, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header

if TYPE_CHECKING:
    from kpybroker.broker.network.transport import Stream

_SIZE = struct.Struct(">i")
FIRST_BUFFER_BYTES = 64 * 1024
KEPT_BUFFER_BYTES = 2 * 1024 * 1024

PEER_FAILURES = (OSError, EOFError, trio.TooSlowError, trio.ClosedResourceError, ProtocolError)
"""What `ask` and `converse` raise if there is no valid response; the connection is closed then."""


class Request(NamedTuple):
    """One request: its message is encoded for `version` when it is sent."""

    api_key: ApiKey
    message: Any
    version: int


RespondLocally = Callable[[ApiKey, Any, int], Awaitable[Any]]
"""This broker's own response to (API, message, version): the handler is called without a socket."""

OnResponse = Callable[[Any], Request | None]
"""Takes a response and returns the next request, or None at the end. It must not wait. The records in the response are
borrowed from the connection's buffer: valid until the next request.
"""

Connect = Callable[[float], Awaitable["Stream"]]
"""Opens a stream to the peer within this many seconds. Raises OSError."""

Open = Callable[[str, str, int, float], Awaitable["Stream"]]
"""(listener, host, port, seconds) -> a stream that requests can be sent on, encrypted where the listener is. Raises
OSError.
"""

Secure = Callable[[str, str, "Stream", float], Awaitable["Stream"]]
"""(listener, host, connected stream, seconds) -> the stream to use. Raises OSError, and closes the stream then."""


async def not_secured(listener: str, host: str, stream: Stream, timeout_s: float) -> Stream:
    """A `Secure` for listeners without TLS."""
    return stream


LogIn = Callable[["Stream", float], Awaitable[float]]
"""Logs in on a stream where nothing is in flight, within this many seconds; returns when to do so again, on trio's
clock. Raises PEER_FAILURES.
"""


class Login(Protocol):
    """How this broker logs in on a listener of others (`security.client_logins.PeerLogin`)."""

    async def log_in(self, stream: Stream, client_id: str, timeout_s: float, host: str) -> float:
        """As `LogIn`. `host`: the name of the other broker's machine."""


LoginOn = Callable[[str], Login | None]
"""The login on a listener, by its name; None where none is needed."""


async def no_login(stream: Stream, timeout_s: float) -> float:
    """A `LogIn` for peers that need none."""
    return inf


class PeerConnection:
    """Reconnects by itself: after a failure the next request opens a new stream."""

    def __init__(self, connect: Connect, client_id: str, log_in: LogIn = no_login) -> None:
        self._connect = connect
        self._client_id = client_id
        self._log_in = log_in
        self._log_in_at = inf
        self._stream: Stream | None = None
        self._correlation_id = 0
        self._conversation: _Conversation | None = None

    @property
    def correlation_id(self) -> int:
        """Of the last request that was sent."""
        return self._correlation_id if self._conversation is None else self._conversation.correlation_id

    async def ask(self, request: Request, timeout_s: float) -> Any:
        """The response to one request. Raises PEER_FAILURES."""
        responses: list[Any] = []
        await self.converse(request, responses.append, timeout_s)
        return responses[0]

    async def converse(self, request: Request, on_response: OnResponse, timeout_s: float) -> None:
        """Send `request` and every request that `on_response` returns, until it returns None.

        `timeout_s` applies to each response. Raises PEER_FAILURES, and what `on_response` raises.
        """
        try:
            following: Request | None = request
            while following is not None:
                stream = await self._logged_in(timeout_s)
                conversation = _Conversation(stream, self._correlation_id, self._client_id, on_response, timeout_s)
                conversation.ends_at = self._log_in_at
                self._conversation = conversation
                try:
                    following = await conversation.run(following)
                finally:
                    self._correlation_id, self._conversation = conversation.correlation_id, None
        except BaseException:  # cancellation included: half a response may be in flight
            self.close()
            raise

    async def _logged_in(self, timeout_s: float) -> Stream:
        """The stream, opened and logged in where that is necessary."""
        if self._stream is None:
            self._stream = await self._connect(timeout_s)
        elif trio.current_time() < self._log_in_at:
            return self._stream
        self._log_in_at = await self._log_in(self._stream, timeout_s)
        return self._stream

    def close(self) -> None:
        """Close the stream, if there is one. The connection may be used again."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


class _Conversation:
    """`_on_readable` does as much as it can without waiting, and leaves the rest to the task."""

    def __init__(
        self, stream: Stream, correlation_id: int, client_id: str, on_response: OnResponse, timeout_s: float
    ) -> None:
        self.correlation_id = correlation_id
        self._stream = stream
        self._client_id = client_id
        self._on_response = on_response
        self._timeout_s = timeout_s
        self._asked: Request
        self._asked_at = 0.0
        self._buffer = bytearray(FIRST_BUFFER_BYTES)
        self._filled = 0
        self._unsent = b""
        self._decoding: Generator[None, None, Any] | None = None
        self.ends_at = inf
        self._postponed: Request | None = None

    async def run(self, request: Request) -> Request | None:
        """None at the end of the conversation; a request if the session is to be renewed before it is sent."""
        following: Request | None = request
        while following is not None:
            self._unsent = self._frame(following)
            while self._unsent:
                with trio.fail_after(self._timeout_s):
                    unsent, self._unsent = self._unsent, b""
                    await self._stream.send_parts([unsent])
                await self._watch()
            following = None
            if self._decoding is not None:
                following = self._on_response(await self._decode_in_slices(self._decoding))
                if following is not None and self._asked_at >= self.ends_at:
                    self._postponed = following
            if self._postponed is not None:
                return self._postponed
        return None

    async def _watch(self) -> None:
        while True:
            with trio.CancelScope(deadline=self._asked_at + self._timeout_s) as timer:
                await self._stream.watch(self._on_readable)
            if not timer.cancelled_caught:
                return
            if trio.current_time() >= self._asked_at + self._timeout_s:
                raise trio.TooSlowError

    def _on_readable(self) -> bool:
        if not self._receive():
            return True
        steps = self._decode()
        try:
            next(steps)
        except StopIteration as finished:
            following = self._on_response(finished.value)
        else:
            self._decoding = steps
            return False
        if following is None:
            return False
        if self._asked_at >= self.ends_at:  # of the last request: the next one is sent after a login
            self._postponed = following
            return False
        frame = self._frame(following)
        self._unsent = frame[self._stream.send_now(frame) :]
        return not self._unsent

    def _frame(self, request: Request) -> bytes:
        self._asked = request
        self._asked_at = trio.current_time()
        self._filled = 0
        if len(self._buffer) > KEPT_BUFFER_BYTES:
            self._buffer = bytearray(FIRST_BUFFER_BYTES)
        self.correlation_id = (self.correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(
            RequestHeader(request.api_key, request.version, self.correlation_id, self._client_id)
        )
        body = encode(request.message, request.version)
        return b"".join((_SIZE.pack(len(header) + len(body)), header, body))

    def _receive(self) -> bool:
        """Whether the response is complete. The buffer grows with the bytes received, not with the size they claim."""
        if self._filled == len(self._buffer):
            self._buffer = self._buffer + bytes(self._filled)
        received = self._stream.receive_now(memoryview(self._buffer)[self._filled :])
        if received is None:
            return False
        if not received:
            raise EOFError("the broker closed the connection")
        self._filled += received
        if self._filled < _SIZE.size:
            return False
        size: int
        (size,) = _SIZE.unpack_from(self._buffer)
        if size < 4:
            raise ProtocolError(f"a response of {size} bytes")
        if self._filled > _SIZE.size + size:
            raise ProtocolError("two responses to one request")
        return self._filled == _SIZE.size + size

    def _decode(self) -> Generator[None, None, Any]:
        asked, frame = self._asked, memoryview(self._buffer)[_SIZE.size : self._filled]
        correlation_id, position = parse_response_header(frame, asked.api_key, asked.version)
        if correlation_id != self.correlation_id:
            raise ProtocolError(f"correlation id {correlation_id}, expected {self.correlation_id}")
        response_class = API_INFO[asked.api_key].response_class()
        if len(frame) <= LARGE_FRAME_BYTES:
            return decode(response_class, frame[position:], asked.version)
        return (yield from decode_steps(response_class, frame[position:], asked.version))

    async def _decode_in_slices(self, steps: Generator[None, None, Any]) -> Any:
        self._decoding = None
        await trio.lowlevel.checkpoint()
        return await run_to_end(paced(steps))
