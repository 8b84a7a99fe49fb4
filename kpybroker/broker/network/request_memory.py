"""What requests are received into, and the limit on how much of it there is."""

from __future__ import annotations

import trio

SCRATCH_BYTES = 256 * 1024
LARGE_FRAME_BYTES_MIN = 32 * 1024
KEPT_BUFFER_BYTES = 1024 * 1024 + 64 * 1024  # the largest batch that brokers accept by default, and its request
KEPT_BUFFERS_MAX = 4


class RequestMemory:
    """`queued.max.request.bytes`: frames being read or served may hold this much (below 1: no limit).

    Like Kafka's SimpleMemoryPool it lets a request begin while any room is left, so that a large request can't starve.
    Without room one of those that have begun may go on, because none gives its memory back before it is complete.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._used = 0
        self.is_full = False
        self._lot = trio.lowlevel.ParkingLot()
        self._exempt: Held | None = None

    @property
    def used(self) -> int:
        """Bytes that frames hold now."""
        return self._used

    def lets_go_on(self, begun: Held) -> bool:
        """Whether a frame that holds this much already may take more."""
        if self.is_full and self._exempt is None:
            self._exempt = begun
        return not self.is_full or self._exempt is begun

    async def wait_change(self) -> None:
        """Wait until there is room, or another frame may go on."""
        await self._lot.park()

    def take(self, size: int) -> None:
        """Account for `size` more bytes, whether or not there is room."""
        self._used += size
        self.is_full = 0 < self.bytes_max <= self._used

    def give_back(self, size: int) -> None:
        """The reverse of `take`; wakes those that wait when there is room again."""
        self._used -= size
        self.is_full = 0 < self.bytes_max <= self._used
        if self._lot and not self.is_full:
            self._lot.unpark_all()

    def ended(self, begun: Held) -> None:
        """The frame of `begun` is complete, or will never be."""
        if self._exempt is begun:
            self._exempt = None
            self._lot.unpark_all()


class Held:
    """What one frame or request has taken of the `RequestMemory`."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> None:
        """Take `size` more bytes."""
        self._size += size
        self._memory.take(size)

    def may_take_more(self) -> bool:
        """Whether its frame may grow; always while there is room."""
        return self._memory.lets_go_on(self)

    def give_back(self) -> None:
        """Give everything back."""
        self._memory.give_back(self._size)
        self._size = 0
        self._memory.ended(self)


class ReceiveBuffers:
    """Where the connections of a server receive.

    `scratch` is shared by all, so its bytes must be taken out before the next checkpoint. Up to `kept_max` buffers are
    kept for large frames, because new memory costs a page fault every 4 KiB (docs/internals/shortcuts.md).
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
        """A buffer of at least this size, if one is free."""
        if size > KEPT_BUFFER_BYTES:
            return None
        if self._free:
            return self._free.pop()
        if self._made == self._kept_max:
            return None
        self._made += 1
        return bytearray(KEPT_BUFFER_BYTES)

    def give_back(self, buffer: bytearray) -> None:
        """Keep a borrowed buffer for the next large frame."""
        self._free.append(buffer)
