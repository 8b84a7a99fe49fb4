"""What requests are received into, and how much of it there may be."""

from __future__ import annotations

import trio

SCRATCH_BYTES = 256 * 1024
LARGE_FRAME_BYTES_MIN = 32 * 1024
KEPT_BUFFER_BYTES = 1024 * 1024 + 64 * 1024  # the largest batch that brokers accept by default, and its request
KEPT_BUFFERS_MAX = 4


class RequestMemory:
    """`queued.max.request.bytes`: frames being read or served may hold this much (below 1: no bound).

    Like Kafka's SimpleMemoryPool it lets a request in while any room is left, so that one large request can't starve.
    Of those that have begun one goes on even without: none gives its room back before it is complete.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used = 0
        self.is_full = False
        self._lot = trio.lowlevel.ParkingLot()
        self._one_that_goes_on: Held | None = None

    @property
    def used(self) -> int:
        return self._used

    def lets_go_on(self, begun: Held) -> bool:
        """Whether a frame that holds this much already may take more."""
        if self.is_full and self._one_that_goes_on is None:
            self._one_that_goes_on = begun
        return not self.is_full or self._one_that_goes_on is begun

    async def wait_change(self) -> None:
        """Until there is room, or another one may go on."""
        await self._lot.park()

    def take(self, size: int) -> None:
        self._used += size
        self.is_full = 0 < self._bytes_max <= self._used

    def give_back(self, size: int) -> None:
        self._used -= size
        self.is_full = 0 < self._bytes_max <= self._used
        if self._lot and not self.is_full:
            self._lot.unpark_all()

    def ended(self, begun: Held) -> None:
        """Its frame is complete, or will never be."""
        if self._one_that_goes_on is begun:
            self._one_that_goes_on = None
            self._lot.unpark_all()


class Held:
    """What one holder has taken of it."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> None:
        self._size += size
        self._memory.take(size)

    def may_take_more(self) -> bool:
        return self._memory.lets_go_on(self)

    def give_back(self) -> None:
        """All of it."""
        self._memory.give_back(self._size)
        self._size = 0
        self._memory.ended(self)


class ReceiveBuffers:
    """Where the connections of a server receive: `scratch` is shared by all, so that its bytes are taken out before the
    next checkpoint; a few more are kept for large frames, since memory that is new costs a page fault every 4 KiB.
    """

    def __init__(
        self,
        scratch_bytes: int = SCRATCH_BYTES,
        large_frame_bytes_min: int = LARGE_FRAME_BYTES_MIN,
        kept_max: int = KEPT_BUFFERS_MAX,
    ) -> None:
        self._kept_max = kept_max
        self.scratch = memoryview(bytearray(scratch_bytes))
        self.large_frame_bytes_min = large_frame_bytes_min
        self._free: list[bytearray] = []
        self._made = 0

    def borrow(self, size: int) -> bytearray | None:
        """A buffer of at least this size, if there is one."""
        if size > KEPT_BUFFER_BYTES:
            return None
        if self._free:
            return self._free.pop()
        if self._made == self._kept_max:
            return None
        self._made += 1
        return bytearray(KEPT_BUFFER_BYTES)

    def give_back(self, buffer: bytearray) -> None:
        self._free.append(buffer)
