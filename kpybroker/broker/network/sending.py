"""A response on its way out of a socket, as far as that takes no waiting.

A part of it is bytes, or a slice of a segment file: small slices are read and leave in one `sendmsg` with their
neighbours, large ones go by `sendfile` from page cache to socket. A slice whose pages are cold would stall the loop for
as long as the disk takes, so the first page of a slice and the last one of each step are probed with
`preadv(RWF_NOWAIT)`, and what is cold is read in a thread before it is sent. docs/internals/shortcuts.md: `sendfile`.
Without `sendfile` large slices are read and sent in the same steps.
"""

from __future__ import annotations

import enum
import errno
import socket
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import trio

from kpybroker.system.sockets import HAS_SENDFILE, HAS_SENDMSG, MSG_MORE, RWF_NOWAIT, preadv, sendfile, sendmsg

SMALL_SLICE_BYTES = 32 * 1024
GATHERED_BYTES = 256 * 1024
SENDFILE_STEP_BYTES = 256 * 1024
SENDMSG_BUFFERS_MAX = 64 if HAS_SENDMSG else 1
SLICE_BYTES = 1024 * 1024
"""Sent to one client before others are served, give or take a step: a fast reader would keep the loop."""


class FileSlice(Protocol):
    """`size` bytes of an open file from `position`; storage counts the reader until `release`."""

    @property
    def size(self) -> int:
        """Bytes to send."""

    @property
    def position(self) -> int:
        """Where they begin in the file."""

    def fileno(self) -> int:
        """The descriptor of the open file."""

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes from `offset` within it, all by default; may wait for the disk."""
        ...


Buffer = bytes | bytearray | memoryview
BUFFERS = (bytes, bytearray, memoryview)
Part = Buffer | FileSlice


class Progress(enum.Enum):
    """Why sending has stopped."""

    SENT = "all of it is sent"
    FULL = "the socket takes no more for now, or others are served first"
    COLD = "`warm` must read the next part from the disk"


class Sending:
    """Sends parts in order: `resume` until they are sent, or `finish`. The caller releases the slices."""

    __slots__ = (
        "_buffers",
        "_end",
        "_file",
        "_has_sendfile",
        "_left",
        "_parts",
        "_position",
        "_read_to",
        "_sock",
        "_warm_until",
        "_warmed",
    )

    def __init__(self, sock: socket.socket, parts: Sequence[Part], *, has_sendfile: bool = True) -> None:
        self._sock = sock
        self._has_sendfile = has_sendfile and HAS_SENDFILE
        self._parts = deque(parts)
        self._buffers: list[Buffer] = []  # those that leave next
        self._file: FileSlice | None = None  # or this, from `_position` to `_end`
        self._position = self._end = self._warm_until = 0
        self._left = 0  # of this time slice
        self._read_to = 0  # in the first part, if it is a slice
        self._warmed: Buffer | None = None  # what follows there

    def resume(self) -> Progress:
        """Raises OSError when the peer is gone, or a slice is longer than its file."""
        self._left = SLICE_BYTES
        while self._buffers or self._file is not None or self._parts:
            if self._left <= 0:
                return Progress.FULL
            if self._buffers:
                if not self._send_buffers():
                    return Progress.FULL
            elif self._file is not None:
                if (stopped := self._send_file(self._file)) is not None:
                    return stopped
            elif not self._take():
                return Progress.COLD
        return Progress.SENT

    async def finish(self) -> None:
        """Send everything that is left, however long that takes. Raises as `resume` does."""
        while (progress := self.resume()) is not Progress.SENT:
            if progress is Progress.FULL:
                await trio.lowlevel.wait_writable(self._sock)
            else:
                await trio.to_thread.run_sync(self.warm)

    def warm(self) -> None:
        """Read the next part from the disk; for a thread, and never during `resume`."""
        if self._file is not None:
            self._warm_until = min(self._position + SENDFILE_STEP_BYTES, self._end)
            self._file.read(self._position - self._file.position, self._warm_until - self._position)
        elif self._parts and not isinstance(part := self._parts[0], BUFFERS):
            self._warmed = _read(part, self._read_to, self._step_of(part))

    def _step_of(self, part: FileSlice) -> int:
        """How many of its bytes are read at once."""
        return min(part.size - self._read_to, SENDFILE_STEP_BYTES)

    def _read_step(self, part: FileSlice) -> Buffer | None:
        """The next bytes of the first part; None if they are cold."""
        data, self._warmed = self._warmed, None
        if data is None:
            data = read_warm(part, self._read_to, self._step_of(part))
        if data is not None:
            self._read_to += len(data)
            if self._read_to == part.size:
                self._read_to = 0
                self._parts.popleft()
        return data

    def _take(self) -> bool:
        """Choose what to send next: small parts together, or one large slice. False if that is a cold small slice."""
        parts, size = self._parts, 0
        buffers: list[Buffer] = []
        while parts and size < GATHERED_BYTES:
            part = parts[0]
            data: Buffer | None
            if isinstance(part, BUFFERS):
                data = part
                parts.popleft()
            elif part.size > SMALL_SLICE_BYTES and self._has_sendfile:
                if not buffers:
                    self._file = part
                    self._position = self._warm_until = part.position
                    self._end = part.position + part.size
                    parts.popleft()
                break
            else:
                data = self._read_step(part)
            if data is None:
                if buffers:
                    break
                return False
            if data:
                buffers.append(data)
                size += len(data)
        self._buffers = [b"".join(buffers)] if len(buffers) > 1 and size <= SMALL_SLICE_BYTES else buffers
        return True

    def _send_buffers(self) -> bool:
        """Whether the socket took all that it was given."""
        given = self._buffers[:SENDMSG_BUFFERS_MAX]
        flags = MSG_MORE if self._parts else 0
        try:
            sent = self._sock.send(given[0], flags) if len(given) == 1 else sendmsg(self._sock, given, (), flags)
        except BlockingIOError:
            return False
        self._left -= sent
        whole = 0
        while whole < len(given) and sent >= len(given[whole]):
            sent -= len(given[whole])
            whole += 1
        del self._buffers[:whole]
        if sent:
            self._buffers[0] = memoryview(self._buffers[0])[sent:]
        return whole == len(given)

    def _send_file(self, file: FileSlice) -> Progress | None:
        """None when the slice is sent."""
        out, source = self._sock.fileno(), file.fileno()
        while self._position < self._end:
            if self._left <= 0:
                return Progress.FULL
            if self._position >= self._warm_until:
                warm_until = min(self._position + SENDFILE_STEP_BYTES, self._end)
                is_cold = self._position == file.position and not _is_warm(source, self._position)
                if is_cold or not _is_warm(source, warm_until - 1):
                    return Progress.COLD
                self._warm_until = warm_until
            wanted = self._warm_until - self._position
            try:
                sent = sendfile(out, source, self._position, wanted)
            except BlockingIOError:
                return Progress.FULL
            if sent == 0:
                raise _too_short()
            self._position += sent
            self._left -= sent
            if sent < wanted:
                return Progress.FULL
        self._file = None
        return None


_NOT_ASKED = (errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of a filesystem that can't say whether a page is cached."""


def read_warm(part: FileSlice, offset: int, size: int) -> bytes | bytearray | None:
    """So many bytes of a slice if all of them are in the page cache (or if that cannot be asked)."""
    if not RWF_NOWAIT:
        return _read(part, offset, size)
    data = bytearray(size)
    try:
        count = preadv(part.fileno(), [data], part.position + offset, RWF_NOWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno in _NOT_ASKED:
            return _read(part, offset, size)
        raise
    return data if count == size else None


def _read(part: FileSlice, offset: int, size: int) -> bytes:
    data = part.read(offset, size)
    if len(data) < size:
        raise _too_short()
    return data


def _too_short() -> OSError:
    return OSError(errno.EIO, "segment file is shorter than the slice being sent")


_PROBE = [bytearray(1)]


def _is_warm(file_descriptor: int, position: int) -> bool:
    """Whether the page at a position is in the page cache (True where that cannot be asked)."""
    if not RWF_NOWAIT:
        return True
    try:
        preadv(file_descriptor, _PROBE, position, RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NOT_ASKED:
            return True
        raise
    return True
