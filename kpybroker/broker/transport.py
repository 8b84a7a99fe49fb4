"""The transport seam: bytes in and out of sockets, nothing about Kafka.

`SocketTransport` works on raw non-blocking sockets: it tries the system call first and waits for readiness only
when the kernel says so, which on one core costs half of what `trio.SocketStream` does. A part of an answer is
bytes, or a slice of a segment file: small slices are read and leave in one `sendmsg` with their neighbours, large
ones go by `sendfile` from page cache to socket. A slice whose pages are cold would stall the loop for as long as the
disk takes, so its first and last page are probed with `preadv(RWF_NOWAIT)`, and a cold slice is read once in a
thread before it is sent.

Streams that a listener accepts are watched by its `Poller` while they wait for a request; see there.

Rule: `receive_into` fills the buffer and returns without a checkpoint in between, so that one scratch buffer can
serve all connections.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Sequence
from typing import Protocol

import trio

from kpybroker.broker.poller import HAS_EPOLL, Alone, OnReadable, Poller

if sys.platform != "win32":
    import resource

SMALL_SLICE_BYTES = 32 * 1024
SENDFILE_STEP_BYTES = 128 * 1024
SENDMSG_BUFFERS_MAX = 64
DESCRIPTORS_KEPT_MAX = 256

HAS_SENDFILE = hasattr(os, "sendfile") and sys.platform.startswith("linux")
_RWF_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


class FileSlice(Protocol):
    """`size` bytes of an open file from `position`; storage counts the reader until `release`."""

    @property
    def size(self) -> int: ...
    @property
    def position(self) -> int: ...
    def fileno(self) -> int: ...
    def read(self) -> bytes: ...


Buffer = bytes | bytearray | memoryview
_BUFFERS = (bytes, bytearray, memoryview)
Part = Buffer | FileSlice


class Stream(Protocol):
    local_address: tuple[str, int]
    remote_address: tuple[str, int]

    async def receive_into(self, buffer: memoryview) -> int:
        """Bytes placed at the start of `buffer`; 0 at the end of the stream. Raises OSError when broken."""
        ...

    async def send_parts(self, parts: Sequence[Part]) -> None:
        """All parts, in order. Raises OSError when the peer is gone."""
        ...

    async def watch(self, on_readable: OnReadable) -> None:
        """Call `on_readable` whenever there may be something to read, until it returns False or raises."""
        ...

    def mute(self) -> None:
        """Until the next `poke` it is not called any more; for `on_readable` to say."""
        ...

    def poke(self) -> None:
        """Call it before long, whether or not there is something to read. Does nothing where nobody watches."""
        ...

    def receive_now(self, buffer: memoryview) -> int | None:
        """`receive_into` without waiting; None when there is nothing yet."""
        ...

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        """All parts in one, if that takes no waiting and they are small; else they are for `send_parts`."""
        ...

    def send_now(self, data: bytes) -> int:
        """How many of these bytes could be sent without waiting. Raises OSError when the peer is gone."""
        ...

    def close(self) -> None: ...


class Listener(Protocol):
    address: tuple[str, int]

    async def accept(self) -> Stream: ...

    async def poll(self) -> None:
        """Serves those that watch a stream it accepted; to be run for as long as there are any."""
        ...

    def close(self) -> None: ...


class Transport(Protocol):
    def listen(self, host: str, port: int, backlog: int) -> Listener:
        """Bind now; raises OSError. Port 0 takes a free one."""
        ...

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream: ...


class SocketTransport:
    """TCP. `send_buffer_bytes` and `receive_buffer_bytes` are Kafka's `socket.*.buffer.bytes` (-1: the system's)."""

    def __init__(self, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1) -> None:
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        address = host or "::"
        if not host:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            address = "::" if family == socket.AF_INET6 else "0.0.0.0"
        info = socket.getaddrinfo(address, port, family, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and not host:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if self._receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
            sock.bind(info[4])
            sock.listen(backlog)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return SocketListener(sock, self._send_buffer_bytes)

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        with trio.move_on_after(timeout_s):
            stream = await trio.open_tcp_stream(host, port)
            sock = socket.socket(fileno=stream.socket.detach())
            return SocketStream(sock, self._send_buffer_bytes)
        raise TimeoutError(errno.ETIMEDOUT, f"no connection to {host}:{port} within {timeout_s:g} s")


class SocketListener:
    def __init__(self, sock: socket.socket, send_buffer_bytes: int) -> None:
        self._sock = sock
        self._send_buffer_bytes = send_buffer_bytes
        self._poller = Poller() if HAS_EPOLL else None
        self.address = _host_and_port(sock.getsockname())

    async def accept(self) -> Stream:
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            try:
                sock, _ = self._sock.accept()
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._sock)
            except OSError as error:
                if self._sock.fileno() < 0:  # closed before anybody waited
                    raise trio.ClosedResourceError from error
                raise
            else:
                if sock.fileno() >= _descriptors_for_sockets():
                    sock.close()
                    raise OSError(errno.EMFILE, "Too many open files: the few that are left are kept for segments")
                try:
                    return SocketStream(sock, self._send_buffer_bytes, self._poller)
                except OSError:  # the client left between the handshake and the accept
                    sock.close()

    async def poll(self) -> None:
        if self._poller is not None:
            await self._poller.run()

    def close(self) -> None:
        trio.lowlevel.notify_closing(self._sock)
        self._sock.close()


class SocketStream:
    def __init__(self, sock: socket.socket, send_buffer_bytes: int = -1, poller: Poller | None = None) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        self._sock = sock
        self._watcher = poller or Alone()
        self.local_address = _host_and_port(sock.getsockname())
        self.remote_address = _host_and_port(sock.getpeername())

    async def watch(self, on_readable: OnReadable) -> None:
        await self._watcher.watch(self._sock, on_readable)

    def mute(self) -> None:
        self._watcher.mute(self._sock)

    def poke(self) -> None:
        self._watcher.poke(self._sock)

    def receive_now(self, buffer: memoryview) -> int | None:
        try:
            return self._sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return None

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        left = SMALL_SLICE_BYTES
        buffers: list[Buffer] = []
        for part in parts:
            if isinstance(part, _BUFFERS):
                left -= len(part)
                buffers.append(part)
            elif part.size > left or (data := _read_warm(part)) is None:
                return None
            else:
                left -= part.size
                buffers.append(data)
        return b"".join(buffers)

    def send_now(self, data: bytes) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    async def receive_into(self, buffer: memoryview) -> int:
        sock = self._sock
        while True:
            try:
                return sock.recv_into(buffer)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(sock)
            except InterruptedError:
                continue

    async def send_parts(self, parts: Sequence[Part]) -> None:
        if len(parts) == 1 and isinstance(answer := parts[0], bytes):
            sent = self.send_now(answer)
            if sent != len(answer):
                await self._send(memoryview(answer)[sent:], 0)
            return
        buffers: list[Buffer] = []
        for part in parts:
            if isinstance(part, _BUFFERS):
                buffers.append(part)
            elif part.size <= SMALL_SLICE_BYTES or not HAS_SENDFILE:
                buffers.append(await _read_slice(part))
            else:
                await self._send_buffers(buffers, more=True)
                buffers = []
                await self._send_file(part)
        await self._send_buffers(buffers, more=False)

    def close(self) -> None:
        if self._sock.fileno() >= 0:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()

    async def _send_buffers(self, buffers: list[Buffer], more: bool) -> None:
        if not buffers:
            return
        flags = socket.MSG_MORE if more and HAS_SENDFILE else 0
        if len(buffers) == 1:
            await self._send(buffers[0], flags)
        elif sum(map(len, buffers)) <= SMALL_SLICE_BYTES:
            await self._send(b"".join(buffers), flags)
        else:
            await self._send_many(buffers, flags)

    async def _send(self, view: Buffer, flags: int) -> None:
        sock = self._sock
        while True:
            try:
                sent = sock.send(view, flags)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
                continue
            if sent == len(view):
                return
            view = memoryview(view)[sent:]

    async def _send_many(self, buffers: list[Buffer], flags: int) -> None:
        sock = self._sock
        left = [memoryview(buffer) for buffer in buffers]
        first = 0
        while first < len(left):
            try:
                sent = sock.sendmsg(left[first : first + SENDMSG_BUFFERS_MAX], (), flags)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
                continue
            while first < len(left) and sent >= len(left[first]):
                sent -= len(left[first])
                first += 1
            if sent:
                left[first] = left[first][sent:]

    async def _send_file(self, part: FileSlice) -> None:
        out, source = self._sock.fileno(), part.fileno()
        position, end = part.position, part.position + part.size
        warm_until = position
        while position < end:
            if position >= warm_until:
                warm_until = min(position + SENDFILE_STEP_BYTES, end)
                if not _is_warm(source, position, warm_until):
                    await trio.to_thread.run_sync(os.pread, source, warm_until - position, position)
            try:
                sent = os.sendfile(out, source, position, warm_until - position)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._sock)
                continue
            if sent == 0:
                raise OSError(errno.EIO, "segment file is shorter than the slice being sent")
            position += sent


async def _read_slice(part: FileSlice) -> Buffer:
    """The slice's bytes; from the page cache at once, from the disk in a thread."""
    data = _read_warm(part)
    return await trio.to_thread.run_sync(part.read) if data is None else data


_NOT_ASKED = (errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of a filesystem that can't say whether a page is cached."""


def _read_warm(part: FileSlice) -> bytes | bytearray | None:
    """The slice's bytes if all of them are in the page cache (or if that cannot be asked)."""
    if not _RWF_NOWAIT:
        return part.read()
    data = bytearray(part.size)
    try:
        count = os.preadv(part.fileno(), [data], part.position, _RWF_NOWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno in _NOT_ASKED:
            return part.read()
        raise
    return data if count == part.size else None


_PROBE = [bytearray(1)]


def _is_warm(file_descriptor: int, start: int, end: int) -> bool:
    """Whether the first and the last page are in the page cache (True where that cannot be asked)."""
    if not _RWF_NOWAIT or start >= end:
        return True
    try:
        os.preadv(file_descriptor, _PROBE, start, _RWF_NOWAIT)
        if end - start > 4096:
            os.preadv(file_descriptor, _PROBE, end - 1, _RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NOT_ASKED:
            return True
        raise
    return True


def _descriptors_for_sockets() -> int:
    """Accepted sockets stay below this: a segment that can't be opened would take its log directory offline."""
    if sys.platform == "win32":
        return sys.maxsize
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return limit - min(DESCRIPTORS_KEPT_MAX, limit // 4)


def _host_and_port(address: tuple[object, ...] | str) -> tuple[str, int]:
    host, port = str(address[0]), address[1]
    assert isinstance(port, int)
    return host.removeprefix("::ffff:"), port
