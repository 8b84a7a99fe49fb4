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
        self.is_full = False
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def used(self) -> int:
        return self._used

    async def wait_room(self) -> None:
        while self.is_full:
            await self._lot.park()

    def take(self, size: int) -> None:
        self._used += size
        self.is_full = 0 < self._bytes_max <= self._used

    def give_back(self, size: int) -> None:
        self._used -= size
        self.is_full = 0 < self._bytes_max <= self._used
        if self._lot and not self.is_full:
            self._lot.unpark_all()


class Activity(Protocol):
    """Whose bytes these are: told that some came."""

    was_active: bool


class FrameReader:
    """`scratch` is shared by all connections of a server: its bytes are taken out before the next checkpoint.

    Whoever can do without waiting is lent frames where they were received: `receive_now`, `frame_now` for as long as
    it gives any, and then always `settle`, which copies what nobody took.

    A frame is accounted to `memory` from `hold`, or its arrival by `next_frame`, until `done`.
    """

    __slots__ = (
        "_activity",
        "_end",
        "_frame_bytes_max",
        "_held",
        "_memory",
        "_pending",
        "_scratch",
        "_start",
        "_stream",
        "_whole",
        "has_ended",
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
        self._pending = bytearray()  # the frame after those, as far as it is here
        self._start = self._end = 0  # what came after that, and still lies in `scratch`
        self.has_ended = False

    @property
    def has_frame(self) -> bool:
        """The next frame is here already (or a size that is none)."""
        return bool(self._whole or (self._pending and self._is_complete()))

    async def next_frame(self) -> bytearray | None:
        """The next frame without its size; None when the client closed between frames.

        To be called when `memory` has room. Raises ProtocolError for a size out of bounds, OSError when the stream
        breaks, EOFError inside a frame.
        """
        while not self.has_frame:
            if len(self._pending) >= 4:
                self._check(_SIZE.unpack_from(self._pending)[0])
            if self._is_large():
                return await self._large_frame()
            received = await self._stream.receive_into(self._scratch)
            if not received and self._pending:
                raise EOFError("connection closed inside a frame")
            if not received:
                return None
            self._receive(received)
            self.settle()
        frame = self._whole.popleft() if self._whole else self._take_pending()
        self.hold(len(frame))
        return frame

    def receive_now(self) -> bool:
        """Receive what has come, without waiting; False where that is nothing, or the end."""
        received = self._stream.receive_now(self._scratch)
        if not received:
            self.has_ended = received is not None
            return False
        self._receive(received)
        return True

    def frame_now(self) -> bytearray | memoryview | None:
        """The next frame without its size, if it is here: lent until `settle`. Raises ProtocolError."""
        if self._whole:
            return self._whole.popleft()
        if self._pending:
            return self._take_pending() if self._is_complete() else None
        start, end = self._start + 4, self._end
        if start > end:
            return None
        (size,) = _SIZE.unpack_from(self._scratch, start - 4)
        if not 0 <= size <= self._frame_bytes_max:
            self._check(size)
        if size > end - start:
            return None
        self._start = start + size
        return self._scratch[start : start + size]

    def settle(self) -> bool:
        """What was received and nobody took is copied: others receive into `scratch` next.

        Whether the next frame can come by `receive_now`: not if it is here already, nor if it is a large one.
        """
        if self._start < self._end:
            self._keep_rest()
        return not (self._whole or (self._pending and (self._is_complete() or self._is_large())))

    def hold(self, size: int) -> None:
        """A frame of this size is being served."""
        self._held += size
        self._memory.take(size)

    def done(self) -> None:
        """The last frame was served, or its connection ends: its bytes are free again."""
        self._memory.give_back(self._held)
        self._held = 0

    def _receive(self, received: int) -> None:
        """So many bytes have come into `scratch`."""
        self._activity.was_active = True
        self._start = self._complete(received) if self._pending else 0
        self._end = received

    def _complete(self, received: int) -> int:
        """Of the bytes that came, those that belong to the frame that is pending; how many they are."""
        pending, scratch = self._pending, self._scratch
        taken = min(max(4 - len(pending), 0), received)
        pending += scratch[:taken]
        if len(pending) < 4:
            return taken
        size: int
        (size,) = _SIZE.unpack_from(pending)
        self._check(size)
        more = min(4 + size - len(pending), received - taken)
        pending += scratch[taken : taken + more]
        return taken + more

    def _keep_rest(self) -> None:
        """A size that is none is found when its frame's turn comes."""
        scratch, start, end = self._scratch, self._start, self._end
        if self._pending:
            self._whole.append(self._take_pending())
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(scratch, start)
            if not 0 <= size <= min(end - start - 4, self._frame_bytes_max):
                break
            self._whole.append(bytearray(scratch[start + 4 : start + 4 + size]))
            start += 4 + size
        self._pending += scratch[start:end]
        self._start = end

    def _is_complete(self) -> bool:
        pending = self._pending
        return len(pending) >= 4 and len(pending) >= 4 + _SIZE.unpack_from(pending)[0]

    def _is_large(self) -> bool:
        pending = self._pending
        return len(pending) >= 6 and _SIZE.unpack_from(pending)[0] > len(self._scratch)

    def _take_pending(self) -> bytearray:
        frame = self._pending
        self._check(_SIZE.unpack_from(frame)[0])
        self._pending = bytearray()
        del frame[:4]
        return frame

    def _check(self, size: int) -> None:
        if size < 0 or size > self._frame_bytes_max:
            raise ProtocolError(f"frame of {size} bytes; at most {self._frame_bytes_max} are accepted")
        if size > SMALL_FRAME_BYTES_MAX and len(self._pending) >= 6 and self._pending[4:6] != _PRODUCE_KEY:
            raise ProtocolError(f"frame of {size} bytes; only Produce may be larger than {SMALL_FRAME_BYTES_MAX}")

    async def _large_frame(self) -> bytearray:
        """Fill a frame in place, growing it as its bytes come."""
        (size,) = _SIZE.unpack_from(self._pending)
        self._check(size)
        frame = self._pending
        self._pending = bytearray()
        del frame[:4]
        filled = len(frame)
        self.hold(filled)
        while filled < size:
            if filled == len(frame):
                growth = min(size - filled, max(filled, GROWTH_BYTES_MIN), GROWTH_BYTES_MAX)
                self.hold(growth)
                frame += bytes(growth)
            with memoryview(frame) as view:
                received = await self._stream.receive_into(view[filled:])
            if not received:
                raise EOFError("connection closed inside a frame")
            self._activity.was_active = True
            filled += received
        return frame
