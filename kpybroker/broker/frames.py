"""Length-prefixed frames off a stream, within bounds that hold before anything is believed.

A frame's size is checked as soon as its four bytes are here: below zero or above `socket.request.max.bytes` ends the
connection, and so does anything but a Produce above `SMALL_FRAME_BYTES_MAX`, which takes the first two bytes of the
header to know. Memory grows with the bytes that really arrived, never with the size a client claims, and what it
grows by is taken from `RequestMemory`, the server's budget.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Protocol

import trio

from kpybroker.broker.transport import Stream
from kpybroker.wire.errors import ProtocolError

SCRATCH_BYTES = 256 * 1024
SMALL_FRAME_BYTES_MAX = 4 * 1024 * 1024
GROWTH_BYTES_MIN = 8 * 1024
GROWTH_BYTES_MAX = 4 * 1024 * 1024
_SIZE = struct.Struct(">i")
_PRODUCE_KEY = b"\x00\x00"


class RequestMemory:
    """`queued.max.request.bytes`: frames being read or served may hold this much (below 1: no bound).

    Like Kafka's SimpleMemoryPool it lets a request in while any room is left, so that one large request can't starve.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used = 0
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def used(self) -> int:
        return self._used

    @property
    def is_full(self) -> bool:
        return 0 < self._bytes_max <= self._used

    async def wait_room(self) -> None:
        while self.is_full:
            await self._lot.park()

    def take(self, size: int) -> None:
        self._used += size

    def give_back(self, size: int) -> None:
        self._used -= size
        if self._lot and self._used < self._bytes_max:
            self._lot.unpark_all()


class Activity(Protocol):
    """Whose bytes these are: told that some came."""

    was_active: bool


class FrameReader:
    """`scratch` is shared by all connections of a server: its bytes are copied out before the next checkpoint.

    A frame is accounted to `memory` from its arrival until `done`.
    """

    __slots__ = (
        "_activity",
        "_frame_bytes_max",
        "_held",
        "_memory",
        "_pending",
        "_scratch",
        "_stream",
        "_whole",
        "is_stuck",
    )

    def __init__(
        self,
        stream: Stream,
        scratch: memoryview,
        frame_bytes_max: int,
        memory: RequestMemory,
        activity: Activity,
    ) -> None:
        self._memory = memory
        self._held = 0
        self._stream = stream
        self._scratch = scratch
        self._frame_bytes_max = frame_bytes_max
        self._activity = activity
        self._whole: deque[bytearray] = deque()
        self._pending = bytearray()  # after those
        self.is_stuck = False
        """`frame_now` can't have the rest of a frame: the stream has ended, or the frame is a large one."""

    @property
    def has_frame(self) -> bool:
        """The next frame is here already (or a size that is none)."""
        pending = self._pending
        return bool(self._whole) or (len(pending) >= 4 and len(pending) >= 4 + _SIZE.unpack_from(pending)[0])

    async def next_frame(self) -> bytearray | None:
        """The next frame without its size; None when the client closed between frames.

        To be called when `memory` has room. Raises ProtocolError for a size out of bounds, OSError when the stream
        breaks, EOFError inside a frame.
        """
        if not self._whole and not self._pending:
            received = await self._stream.receive_into(self._scratch)
            self._activity.was_active = True
            if not received:
                return None
            self._cut(received)
        frame = self._whole.popleft() if self._whole else await self._read_frame()
        if not self._held:
            self._hold(len(frame))
        return frame

    def frame_now(self) -> bytearray | None:
        """`next_frame` without waiting: None when not all of it is here. `is_stuck` then says whether it can come."""
        if not self.has_frame:
            received = self._stream.receive_now(self._scratch)
            if not received:
                self.is_stuck = received is not None
                return None
            self._activity.was_active = True
            if self._pending:
                self._pending += self._scratch[:received]
            else:
                self._cut(received)
        frame = self._whole.popleft() if self._whole else self._take_whole()
        if frame is None:
            pending = self._pending
            self.is_stuck = len(pending) >= 4 and _SIZE.unpack_from(pending)[0] > len(self._scratch)
        else:
            self._hold(len(frame))
        return frame

    def done(self) -> None:
        """The last frame was served, or its connection ends: its bytes are free again."""
        self._memory.give_back(self._held)
        self._held = 0

    def _hold(self, size: int) -> None:
        self._held += size
        self._memory.take(size)

    async def _read_frame(self) -> bytearray:
        """From the bytes that are pending, and those that come."""
        while True:
            frame = self._take_whole()
            if frame is not None:
                return frame
            if len(self._pending) >= 4:
                (size,) = _SIZE.unpack_from(self._pending)
                if size > len(self._scratch):
                    return await self._large_frame(size)
            self._pending += self._scratch[: await self._receive()]

    def _take_whole(self) -> bytearray | None:
        """The first frame of those that are pending, if all of it is."""
        pending = self._pending
        if len(pending) < 4:
            return None
        (size,) = _SIZE.unpack_from(pending)
        self._check(size)
        if len(pending) < 4 + size:
            return None
        if len(pending) == 4 + size:
            self._pending = bytearray()
            del pending[:4]
            return pending
        frame = pending[4 : 4 + size]
        del pending[: 4 + size]
        return frame

    def _cut(self, received: int) -> None:
        """Of what has come, with nothing pending: the frames that are here, each copied once, and the rest."""
        scratch = self._scratch
        start = 0
        while received - start >= 4:
            (size,) = _SIZE.unpack_from(scratch, start)
            if not 0 <= size <= min(received - start - 4, self._frame_bytes_max):
                break
            end = start + 4 + size
            self._whole.append(bytearray(scratch[start + 4 : end]))
            start = end
        if start < received:
            self._pending += scratch[start:received]

    def _check(self, size: int) -> None:
        if size < 0 or size > self._frame_bytes_max:
            raise ProtocolError(f"frame of {size} bytes; at most {self._frame_bytes_max} are accepted")
        if size > SMALL_FRAME_BYTES_MAX and len(self._pending) >= 6 and self._pending[4:6] != _PRODUCE_KEY:
            raise ProtocolError(f"frame of {size} bytes; only Produce may be larger than {SMALL_FRAME_BYTES_MAX}")

    async def _receive(self) -> int:
        """Bytes at the start of `scratch`, to be taken out before the next checkpoint. Raises EOFError at the end."""
        received = await self._stream.receive_into(self._scratch)
        if not received:
            raise EOFError("connection closed inside a frame")
        self._activity.was_active = True
        return received

    async def _large_frame(self, size: int) -> bytearray:
        """Fill a frame in place, growing it as its bytes come."""
        while len(self._pending) < 6:
            self._pending += self._scratch[: await self._receive()]
        self._check(size)
        frame = self._pending
        self._pending = bytearray()
        del frame[:4]
        filled = len(frame)
        self._hold(filled)
        while filled < size:
            if filled == len(frame):
                growth = min(size - filled, max(filled, GROWTH_BYTES_MIN), GROWTH_BYTES_MAX)
                self._hold(growth)
                frame += bytes(growth)
            with memoryview(frame) as view:
                received = await self._stream.receive_into(view[filled:])
            if not received:
                raise EOFError("connection closed inside a frame")
            self._activity.was_active = True
            filled += received
        return frame
