"""Length-prefixed frames off a stream, within bounds that hold before anything is believed.

A frame's size is checked as soon as its four bytes are here: below zero or above `socket.request.max.bytes` ends the
connection, and so does anything but a Produce above `SMALL_FRAME_BYTES_MAX`, which takes the first two bytes of the
header to know. Memory grows with the bytes that really arrived, never with the size a client claims.
"""

from __future__ import annotations

from collections.abc import Callable

from kpybroker.broker.transport import Stream
from kpybroker.wire.errors import ProtocolError

SCRATCH_BYTES = 256 * 1024
SMALL_FRAME_BYTES_MAX = 4 * 1024 * 1024
GROWTH_BYTES_MAX = 4 * 1024 * 1024
_PRODUCE_KEY = b"\x00\x00"


class FrameReader:
    """`scratch` is shared by all connections of a server: its bytes are copied out before the next checkpoint."""

    __slots__ = ("_frame_bytes_max", "_on_bytes", "_pending", "_scratch", "_stream")

    def __init__(
        self, stream: Stream, scratch: memoryview, frame_bytes_max: int, on_bytes: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._scratch = scratch
        self._frame_bytes_max = frame_bytes_max
        self._on_bytes = on_bytes
        self._pending = bytearray()

    @property
    def has_pending(self) -> bool:
        """Bytes of a next frame are here already."""
        return bool(self._pending)

    async def next_frame(self) -> bytearray | None:
        """The next frame without its size; None when the client closed between frames.

        Raises ProtocolError for a size out of bounds, OSError when the stream breaks, EOFError inside a frame.
        """
        while True:
            pending = self._pending
            if len(pending) >= 4:
                size = int.from_bytes(pending[:4], "big", signed=True)
                self._check(size)
                if len(pending) >= 4 + size:
                    if len(pending) == 4 + size:
                        self._pending = bytearray()
                        del pending[:4]
                        return pending
                    frame = pending[4 : 4 + size]
                    del pending[: 4 + size]
                    return frame
                if size > len(self._scratch):
                    return await self._large_frame(size)
            if not await self._receive():
                if self._pending:
                    raise EOFError("connection closed inside a frame")
                return None

    def _check(self, size: int) -> None:
        if size < 0 or size > self._frame_bytes_max:
            raise ProtocolError(f"frame of {size} bytes; at most {self._frame_bytes_max} are accepted")
        if size > SMALL_FRAME_BYTES_MAX and len(self._pending) >= 6 and self._pending[4:6] != _PRODUCE_KEY:
            raise ProtocolError(
                f"frame of {size} bytes; only Produce may be larger than {SMALL_FRAME_BYTES_MAX}"
            )

    async def _receive(self) -> int:
        received = await self._stream.receive_into(self._scratch)
        self._pending += self._scratch[:received]
        self._on_bytes()
        return received

    async def _large_frame(self, size: int) -> bytearray:
        """Fill a frame in place, growing it as its bytes come."""
        while len(self._pending) < 6:
            if not await self._receive():
                raise EOFError("connection closed inside a frame")
        self._check(size)
        frame = self._pending
        self._pending = bytearray()
        del frame[:4]
        filled = len(frame)
        while filled < size:
            if filled == len(frame):
                frame += bytes(min(size - filled, max(filled, len(self._scratch)), GROWTH_BYTES_MAX))
            with memoryview(frame) as view:
                received = await self._stream.receive_into(view[filled:])
            self._on_bytes()
            if not received:
                raise EOFError("connection closed inside a frame")
            filled += received
        return frame
