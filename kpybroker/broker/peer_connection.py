"""A connection that this broker keeps to another one and asks one request at a time on: Kafka's `BlockingSender`.

It is made when it is first needed, to wherever the other broker is registered at that time, and thrown away after any
failure. Long answers are received and decoded in turns with the rest of the loop.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, decode_steps, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.transport import Stream

_SIZE = struct.Struct(">i")
LARGE_FRAME_BYTES = 16 * 1024
RECEIVE_STEP_BYTES = 1024 * 1024

PEER_FAILURES = (OSError, EOFError, trio.TooSlowError, trio.ClosedResourceError, ProtocolError)
"""What `ask` raises where there is no answer; the connection is closed then."""


class PeerConnection:
    def __init__(self, broker: Broker, peer_id: int, client_id: str) -> None:
        self._broker = broker
        self._peer_id = peer_id
        self._client_id = client_id
        self._stream: Stream | None = None
        self._correlation_id = 0

    async def ask(self, api_key: ApiKey, message: Any, version: int, timeout_s: float) -> Any:
        """The answer. Raises PEER_FAILURES."""
        try:
            with trio.fail_after(timeout_s):
                return await self._ask(api_key, message, version, timeout_s)
        except BaseException:  # cancelled, too: half an answer may be under way
            self.close()
            raise

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    async def _ask(self, api_key: ApiKey, message: Any, version: int, timeout_s: float) -> Any:
        stream = self._stream = self._stream or await self._connect(timeout_s)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(RequestHeader(api_key, version, self._correlation_id, self._client_id))
        body = encode(message, version)
        await stream.send_parts([_SIZE.pack(len(header) + len(body)) + header + body])
        (size,) = _SIZE.unpack(await _receive(stream, _SIZE.size))
        if not 4 <= size <= 0x7FFFFFFF:
            raise ProtocolError(f"a response of {size} bytes")
        frame = await _receive(stream, size)
        answered, position = parse_response_header(frame, api_key, version)
        if answered != self._correlation_id:
            raise ProtocolError(f"correlation id {answered}, expected {self._correlation_id}")
        response_class, body_view = API_INFO[api_key].response_class(), memoryview(frame)[position:]
        if size <= LARGE_FRAME_BYTES:
            return decode(response_class, body_view, version)
        steps = decode_steps(response_class, body_view, version)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                return finished.value
            await trio.lowlevel.checkpoint()

    async def _connect(self, timeout_s: float) -> Stream:
        broker = self._broker
        node = broker.metadata.broker_endpoint(self._peer_id, broker.config.inter_broker_listener_name)
        if node is None:
            raise OSError(f"broker {self._peer_id} is not available")
        return await broker.transport.connect(node.host, node.port, timeout_s)


async def _receive(stream: Stream, size: int) -> bytearray:
    buffer = bytearray(size)
    view = memoryview(buffer)
    received = turn_at = 0
    while received < size:
        count = await stream.receive_into(view[received:])
        if count == 0:
            raise EOFError("the broker closed the connection")
        received += count
        if received - turn_at >= RECEIVE_STEP_BYTES:
            turn_at = received
            await trio.lowlevel.checkpoint()
    return buffer
