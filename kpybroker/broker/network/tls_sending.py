"""A response on its way out of a TLS stream: `sending`, with each part encrypted on its way.

Small parts are put together, so that they share a record. Slices of segment files are read in steps, from the page
cache or in a thread, because the kernel's `sendfile` would send them as they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import trio

from kpybroker.broker.network.sending import BUFFERS, SLICE_BYTES, Buffer, FileSlice, Part, Progress, read_warm

STEP_BYTES = 64 * 1024
"""Plaintext that is put together before it is encrypted."""


class Encrypting(Protocol):
    """The part of `TlsStream` that a response needs."""

    def encrypt(self, data: Buffer) -> None:
        """Make ciphertext, when there is none that waits to be sent."""

    def flush_now(self) -> bool:
        """Send ciphertext without waiting; whether all of it is sent."""

    async def flush(self) -> None:
        """Send all ciphertext, however long that takes."""

    def take_ahead(self) -> int:
        """How many bytes at the start are encrypted already."""


class TlsSending:
    """Sends parts in order: `resume` until they are sent, or `finish`. The caller releases the slices."""

    __slots__ = ("_offset", "_parts", "_stream", "_warmed")

    def __init__(self, stream: Encrypting, parts: Sequence[Part]) -> None:
        self._stream = stream
        self._parts = deque(parts)
        self._offset = stream.take_ahead()  # in the first part
        self._warmed: bytes | None = None  # what follows there
        assert self._offset == 0 or isinstance(self._parts[0], BUFFERS)

    def resume(self) -> Progress:
        """Raises OSError when the peer is gone, or a slice is longer than its file."""
        left = SLICE_BYTES
        while self._stream.flush_now():
            if not self._parts:
                return Progress.SENT
            if left <= 0:
                return Progress.FULL
            data = self._next()
            if data is None:
                return Progress.COLD
            left -= len(data)
            if data:
                self._stream.encrypt(data)
        return Progress.FULL

    async def finish(self) -> None:
        """Send everything that is left, however long that takes. Raises as `resume` does."""
        while (progress := self.resume()) is not Progress.SENT:
            if progress is Progress.FULL:
                await self._stream.flush()
                await trio.lowlevel.checkpoint()
            else:
                await trio.to_thread.run_sync(self._warm)

    def _warm(self) -> None:
        """Read what follows from the disk; for a thread, and never during `resume`."""
        part = self._parts[0]
        assert not isinstance(part, BUFFERS)
        size = min(part.size - self._offset, STEP_BYTES)
        self._warmed = part.read(self._offset, size)
        if len(self._warmed) < size:
            raise OSError("segment file is shorter than the slice being sent")

    def _next(self) -> Buffer | None:
        """The next bytes, at most `STEP_BYTES`; None if they are cold."""
        pieces: list[Buffer] = []
        size = 0
        while self._parts and size < STEP_BYTES:
            piece = self._piece(self._parts[0], STEP_BYTES - size)
            if piece is None:
                if not pieces:
                    return None
                break
            pieces.append(piece)
            size += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, part: Part, room: int) -> Buffer | None:
        data: Buffer | None
        if isinstance(part, BUFFERS):
            whole = len(part)
            data = part if whole <= room and not self._offset else memoryview(part)[self._offset : self._offset + room]
        else:
            whole = part.size
            data = self._of_file(part, min(room, whole - self._offset))
        if data is not None:
            self._offset += len(data)
            if self._offset >= whole:
                self._parts.popleft()
                self._offset = 0
        return data

    def _of_file(self, part: FileSlice, size: int) -> Buffer | None:
        data, self._warmed = self._warmed, None
        return read_warm(part, self._offset, size) if data is None else data
