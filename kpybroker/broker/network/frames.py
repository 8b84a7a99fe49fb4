"""Length-prefixed frames from a stream, within limits that hold before anything is decoded.

A frame's size is checked as soon as its four bytes are here: below zero or above `socket.request.max.bytes` ends the
connection, and so does any frame above `SMALL_FRAME_BYTES_MAX` but a Produce, by the first two bytes of its header.
Memory grows with the bytes that have arrived, never with the size a client claims, and what it grows by is taken from
`RequestMemory`, the server's budget.

A frame that arrives in one piece is served where it was received, in the scratch buffer of the server. A large frame
that does not is received into a buffer of its own (`LargeFrame`), so that only the kernel copies its bytes.
"""

from __future__ import annotations

import struct
from collections import deque

from kpybroker.broker.network.other_protocols import size_error
from kpybroker.broker.network.request_memory import Held, ReceiveBuffers, RequestMemory
from kpybroker.broker.network.transport import Stream

SMALL_FRAME_BYTES_MAX = 4 * 1024 * 1024
GROWTH_BYTES_MIN = 8 * 1024
GROWTH_BYTES_MAX = 4 * 1024 * 1024
_SIZE = struct.Struct(">i")
_PRODUCE_KEY = b"\x00\x00"


class LargeFrame:
    """A frame that has arrived in part: in a borrowed buffer, or in one of its own that grows with its bytes."""

    __slots__ = ("_buffer", "_buffers", "_filled", "_held", "_is_borrowed", "_size")

    def __init__(self, size: int, buffers: ReceiveBuffers, memory: RequestMemory) -> None:
        borrowed = buffers.borrow(size)
        self._buffer = bytearray() if borrowed is None else borrowed
        self._is_borrowed = borrowed is not None
        self._buffers = buffers
        self._held = Held(memory)
        self._size = size
        self._filled = 0

    @property
    def is_complete(self) -> bool:
        """Whether all its bytes have arrived."""
        return self._filled == self._size

    def may_go_on(self) -> bool:
        """Whether it is complete, or may take more memory."""
        return self.is_complete or self._held.may_take_more()

    def room(self) -> memoryview:
        """Where the next bytes go; never empty before the frame is complete."""
        if self._filled == len(self._buffer):
            growth = min(self._size - self._filled, max(self._filled, GROWTH_BYTES_MIN), GROWTH_BYTES_MAX)
            self._held.take(growth)
            self._buffer += bytes(growth)
        return memoryview(self._buffer)[self._filled : self._size]

    def has_come(self, count: int) -> None:
        """So many bytes were placed at the start of `room`."""
        self._filled += count
        if self._is_borrowed:  # as if it grew: a client that only claims a size takes nothing from others
            self._held.take(count)

    def append(self, data: memoryview) -> None:
        """Add bytes that arrived in another buffer."""
        end = self._filled + len(data)
        if self._is_borrowed:
            memoryview(self._buffer)[self._filled : end] = data
        else:
            self._buffer += data
        self._held.take(len(data))
        self._filled = end

    def frame(self) -> bytearray | memoryview:
        """The bytes, valid until `release`; from now on the caller accounts for their memory."""
        self._held.give_back()
        return memoryview(self._buffer)[: self._size] if self._is_borrowed else self._buffer

    def release(self) -> None:
        """Give its memory and its borrowed buffer back."""
        self._held.give_back()
        if self._is_borrowed:
            self._buffers.give_back(self._buffer)
            self._buffer, self._is_borrowed = bytearray(), False


class FrameReader:
    """The frames of one connection, with and without waiting.

    Without waiting, frames are borrowed from where they were received: `receive_now`, `frame_now` until it returns
    None, and then always `settle`, which copies the rest out of the scratch buffer. With waiting: `next_frame`.

    A frame is accounted to `memory` while it is received, if it is a large one, and from `hold`, or its arrival by
    `next_frame`, until `done`. `close` when there will be no more.

    `was_active`: bytes have arrived since it was last set to False. What sends on the connection sets it, too.
    """

    __slots__ = (
        "_buffers",
        "_end",
        "_frame_bytes_max",
        "_held",
        "_large",
        "_memory",
        "_pending",
        "_scratch",
        "_served",
        "_start",
        "_stream",
        "_whole",
        "has_ended",
        "was_active",
    )

    def __init__(self, stream: Stream, buffers: ReceiveBuffers, frame_bytes_max: int, memory: RequestMemory) -> None:
        self._memory = memory
        self._held = Held(memory)
        self._stream = stream
        self._buffers = buffers
        self._scratch = buffers.scratch
        self._frame_bytes_max = frame_bytes_max
        self._whole: deque[bytearray] | None = None  # frames that came together; an empty deque takes 600 bytes
        self._pending = bytearray()  # the frame after those, as far as it has arrived
        self._large: LargeFrame | None = None  # or that
        self._served: LargeFrame | None = None
        self._start = self._end = 0  # what arrived after that, still in `scratch`
        self.has_ended = False
        self.was_active = False

    @property
    def has_frame(self) -> bool:
        """Whether the next frame has arrived (or a size that is invalid)."""
        if self._large is not None:
            return bool(self._whole) or self._large.is_complete
        return bool(self._whole or (self._pending and self._is_decided()))

    def may_go_on(self) -> bool:
        """Whether `memory` lets it receive or serve: always while there is room.

        Without room one large frame may go on, because its memory is free again only when it was served.
        """
        if not self._memory.is_full:
            return True
        return self._large is not None and self._large.may_go_on()

    async def next_frame(self) -> bytearray | None:
        """The next frame without its size; None when the client closed between frames.

        Call it when `memory` has room. Raises ProtocolError for a size out of bounds, OSError when the stream
        breaks, EOFError inside a frame.
        """
        while not self.has_frame:
            received = await self._stream.receive_into(self._room())
            if not received and (self._pending or self._large):
                raise EOFError("connection closed inside a frame")
            if not received:
                return None
            self._receive(received)
            self.settle()
        frame = self.frame_now()
        assert frame is not None
        owned = frame if isinstance(frame, bytearray) else bytearray(frame)
        self._release_served()
        self.hold(len(owned))
        return owned

    def allow(self, frame_bytes_max: int) -> None:
        """Accept frames up to this size from the next one on."""
        self._frame_bytes_max = frame_bytes_max

    def receive_now(self) -> bool:
        """Receive what has arrived, without waiting. False for nothing, or the end of the stream (`has_ended`)."""
        received = self._stream.receive_now(self._room())
        if not received:
            self.has_ended = received is not None
            return False
        self._receive(received)
        return True

    def frame_now(self) -> bytearray | memoryview | None:
        """The next frame without its size, if it has arrived: borrowed until `settle`. Raises ProtocolError."""
        if self._whole:
            return self._whole.popleft()
        if self._large is not None:
            return self._take_large() if self._large.is_complete else None
        if self._pending:
            return self._take_pending() if self._is_decided() else None
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
        """Copy what is left out of `scratch`, into which other connections receive next.

        Whether the next frame can arrive by `receive_now`: not if it has arrived already.
        """
        if self._served is not None:
            self._release_served()
        if self._start < self._end:
            self._keep_rest()
        return not self.has_frame

    def hold(self, size: int) -> None:
        """A frame of this size is being served."""
        self._held.take(size)

    def done(self) -> None:
        """The last frame was served: its bytes are free again."""
        self._held.give_back()

    def close(self) -> None:
        """The connection ends, also within a frame; all memory is given back."""
        self.done()
        self._release_served()
        if self._large is not None:
            self._large.release()
            self._large = None

    def _room(self) -> memoryview:
        return self._scratch if self._large is None else self._large.room()

    def _receive(self, received: int) -> None:
        """`received` bytes were placed into `_room`."""
        self.was_active = True
        if self._large is not None:
            self._large.has_come(received)
            return
        self._start = self._complete(received) if self._pending else 0
        self._end = received

    def _complete(self, received: int) -> int:
        """Take the received bytes that belong to the pending frame; how many they are."""
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
        if size >= self._buffers.large_frame_bytes_min and len(pending) >= 6 and not self._is_decided():
            self._pending = bytearray()
            self._begin_large(size, memoryview(pending)[4:])
        return taken + more

    def _keep_rest(self) -> None:
        """Copy frames and the begin of one. An invalid size is found when its frame is the next one."""
        scratch, start, end = self._scratch, self._start, self._end
        self._start = end
        if self._pending:
            self._keep(self._take_pending())
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(scratch, start)
            if not 0 <= size <= min(end - start - 4, self._frame_bytes_max):
                break
            self._keep(bytearray(scratch[start + 4 : start + 4 + size]))
            start += 4 + size
        else:
            size = 0
        first = scratch[start + 4 : end]
        if size >= self._buffers.large_frame_bytes_min and len(first) >= 2 and self._is_valid(size, first[:2]):
            self._begin_large(size, first)
        else:
            self._pending += scratch[start:end]

    def _keep(self, frame: bytearray) -> None:
        if self._whole is None:
            self._whole = deque()
        self._whole.append(frame)

    def _begin_large(self, size: int, first: memoryview) -> None:
        self._large = LargeFrame(size, self._buffers, self._memory)
        self._large.append(first)

    def _take_large(self) -> bytearray | memoryview:
        assert self._large is not None
        self._served, self._large = self._large, None
        return self._served.frame()

    def _release_served(self) -> None:
        """The frame that was served last no longer needs its buffer."""
        if self._served is not None:
            self._served.release()
            self._served = None

    def _is_decided(self) -> bool:
        """Whether the pending frame is complete, or known to be invalid."""
        pending = self._pending
        if len(pending) < 4:
            return False
        (size,) = _SIZE.unpack_from(pending)
        return len(pending) >= 4 + size or not self._is_valid(size, pending[4:6])

    def _take_pending(self) -> bytearray:
        frame = self._pending
        self._check(_SIZE.unpack_from(frame)[0])
        self._pending = bytearray()
        del frame[:4]
        return frame

    def _is_valid(self, size: int, api_key: bytearray | memoryview) -> bool:
        """Whether the frame is valid as far as it is known; fewer than two bytes are not a key yet."""
        if not 0 <= size <= self._frame_bytes_max:
            return False
        return size <= SMALL_FRAME_BYTES_MAX or len(api_key) < 2 or bytes(api_key) == _PRODUCE_KEY

    def _check(self, size: int) -> None:
        if size < 0 or size > self._frame_bytes_max:
            raise size_error(size, f"at most {self._frame_bytes_max} are accepted")
        if not self._is_valid(size, self._pending[4:6]):
            raise size_error(size, f"only Produce may be larger than {SMALL_FRAME_BYTES_MAX}")
