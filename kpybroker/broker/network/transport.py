"""The transport: bytes in and out of sockets, nothing about Kafka.

`SocketTransport` works on raw non-blocking sockets: it tries the system call first and waits for readiness only
when the kernel says so, which on one core costs half of what `trio.SocketStream` does. How the
parts of a response are sent, bytes and slices of segment files, is in `sending`.

Streams that a listener accepts are watched by its `Poller` while they wait for a request, or for room to send more of
a response; see there.

Rule: `receive_into` fills the buffer and returns without a checkpoint in between, so that one scratch buffer can
serve all connections.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from kpybroker.broker.loop.alone import Alone, OnLeft, OnReady
from kpybroker.broker.loop.poller import Poller
from kpybroker.broker.network.sending import BUFFERS, SMALL_SLICE_BYTES, Buffer, Part, Progress, Sending, read_warm
from kpybroker.config.keys.own import POLLER, SENDFILE, SHORTCUTS, chosen_shortcuts
from kpybroker.system.processes import descriptors_max
from kpybroker.system.sockets import claim_port, reset_on_close

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

DESCRIPTORS_KEPT_MAX = 256
KAFKAS_SEND_BUFFER_BYTES, SEND_BUFFER_BYTES = 102_400, 300_000
"""Kafka's default, which every server.properties has, and what is used instead: docs/decisions/send-buffer.md."""
KAFKAS_BACKLOG, BACKLOG = 50, 4096
"""The same for connections that wait to be accepted: what has no room Linux drops, and the client tries again after a
second or more. 4096 is the most that Linux has by default (net.core.somaxconn).
"""


class ResponseOut(Protocol):
    """A response on its way out; see `sending.Sending`."""

    def resume(self) -> Progress:
        """Send as far as that takes no waiting. Raises OSError when the peer is gone."""

    async def finish(self) -> None:
        """Send everything that is left, however long that takes."""


class Stream(Protocol):
    """A connection that carries bytes: TCP, or memory in tests."""

    local_address: tuple[str, int]
    remote_address: tuple[str, int]

    async def receive_into(self, buffer: memoryview) -> int:
        """Bytes placed at the start of `buffer`; 0 at the end of the stream. Raises OSError when broken."""

    async def send_parts(self, parts: Sequence[Part]) -> None:
        """All parts, in order. Raises OSError when the peer is gone."""

    def begin_sending(self, parts: Sequence[Part]) -> ResponseOut:
        """Prepare to send all parts in order; this call sends nothing."""

    async def watch(self, on_ready: OnReady) -> None:
        """Call `on_ready` whenever there may be something to read, until it returns False or raises."""

    def want_room(self) -> None:
        """Call `on_ready` whenever more can be sent instead, until `want_data`."""

    def want_data(self) -> None:
        """Call `on_ready` again whenever there may be something to read."""

    def mute(self, on_left: OnLeft) -> None:
        """Do not call `on_ready` before the next `poke`; call `on_left` if the peer leaves. For `on_ready` only."""

    def poke(self) -> None:
        """Call `on_ready` soon, or as soon as a task watches, whether or not there is something to read."""

    def heed_end(self, on_left: OnLeft) -> None:
        """Call `on_left` once if the peer leaves before `ignore_end`: for a task that does not wait for this stream."""

    def ignore_end(self) -> None:
        """The reverse of `heed_end`."""

    def has_unread(self, more_than: int = 0) -> bool:
        """Whether more than so many bytes of the peer have arrived that were not received yet."""

    def belongs_to(self, client: Hashable) -> None:
        """From the next `watch` on its turns are those of this client, and not of its address."""

    def receive_now(self, buffer: memoryview) -> int | None:
        """`receive_into` without waiting; None when there is nothing yet."""

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        """All parts in one, if that takes no waiting and they are small; None: use `send_parts`."""

    def send_now(self, data: Buffer) -> int:
        """How many of these bytes could be sent without waiting. Raises OSError when the peer is gone."""

    def close(self) -> None:
        """End the connection; a task that waits on it is woken."""
        ...

    def reset_on_close(self) -> None:
        """Let `close` end the connection by a TCP reset; what was not sent by then is dropped."""


class Listener(Protocol):
    """A bound address that accepts streams."""

    address: tuple[str, int]

    async def accept(self) -> Stream:
        """The next connection. Raises OSError, or trio.ClosedResourceError after `close`."""

    async def poll(self) -> None:
        """Serve those that watch a stream it accepted; run it while there are any."""

    def close(self) -> None:
        """Stop listening; `accept` ends."""


class Transport(Protocol):
    """Where streams are from: sockets, or memory in tests."""

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        """Bind now; raises OSError. Port 0 takes a free one."""

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        """A stream to another process. Raises OSError, also after `timeout_s`."""


class SocketTransport:
    """TCP. `send_buffer_bytes` and `receive_buffer_bytes` are Kafka's `socket.*.buffer.bytes` (-1: the system's)."""

    def __init__(
        self,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        shortcuts: frozenset[str] = SHORTCUTS,
    ) -> None:
        is_default = send_buffer_bytes == KAFKAS_SEND_BUFFER_BYTES
        self._send_buffer_bytes = SEND_BUFFER_BYTES if is_default else send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self._has_poller = POLLER in shortcuts
        self._has_sendfile = SENDFILE in shortcuts

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        """Bind a TCP socket, to all addresses if `host` is empty. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        address = host or "::"
        if not host:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            address = "::" if family == socket.AF_INET6 else "0.0.0.0"
        info = socket.getaddrinfo(address, port, family, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            claim_port(sock)
            if family == socket.AF_INET6 and not host:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if self._receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
            sock.bind(info[4])
            sock.listen(BACKLOG if backlog == KAFKAS_BACKLOG else backlog)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return SocketListener(sock, self)

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        """A TCP connection. Raises OSError; TimeoutError after `timeout_s`."""
        with trio.move_on_after(timeout_s):
            stream = await trio.open_tcp_stream(host, port)
            sock = socket.socket(fileno=stream.socket.detach())
            poller = self.poller()
            return self.stream(sock, poller if poller and poller.is_running else None)
        raise TimeoutError(errno.ETIMEDOUT, f"no connection to {host}:{port} within {timeout_s:g} s")

    def poller(self) -> Poller | None:
        """What watches the sockets of this run; None: each task waits for its own socket."""
        return Poller.of_this_run() if self._has_poller else None

    def stream(self, sock: socket.socket, poller: Poller | None) -> SocketStream:
        """The stream of a connected socket. Raises OSError when the peer is gone."""
        if self._send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        return SocketStream(sock, poller, has_sendfile=self._has_sendfile)


def socket_transport(config: BrokerConfig) -> SocketTransport:
    """TCP as a broker's configuration says."""
    return SocketTransport(
        config.get_int("socket.send.buffer.bytes"),
        config.get_int("socket.receive.buffer.bytes"),
        chosen_shortcuts(config.get_list("kpybroker.shortcuts")),
    )


class SocketListener:
    """A bound TCP socket that makes a stream of each connection it accepts."""

    def __init__(self, sock: socket.socket, transport: SocketTransport) -> None:
        self._sock = sock
        self._transport = transport
        self.address = _host_and_port(sock.getsockname())

    async def accept(self) -> Stream:
        """As `Listener.accept`; raises EMFILE where the last descriptors are kept for segments."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            try:
                sock, _ = self._sock.accept()
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._sock)
            except OSError as error:
                if self._sock.fileno() < 0:  # closed before a task waited
                    raise trio.ClosedResourceError from error
                raise
            else:
                if sock.fileno() >= _descriptors_for_sockets():
                    sock.close()
                    raise OSError(errno.EMFILE, "Too many open files: the few that are left are kept for segments")
                try:
                    return self._transport.stream(sock, self._transport.poller())
                except OSError:  # the client left between the handshake and the accept
                    sock.close()

    async def poll(self) -> None:
        """Run the poller, if there is one."""
        if (poller := self._transport.poller()) is not None:
            await poller.run()

    def close(self) -> None:
        """Close the listening socket."""
        trio.lowlevel.notify_closing(self._sock)
        self._sock.close()


class SocketStream:
    """One TCP connection."""

    def __init__(self, sock: socket.socket, poller: Poller | None = None, *, has_sendfile: bool = True) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._sock = sock
        self._has_sendfile = has_sendfile
        self._watcher = poller or Alone()
        self._wants_room = False
        self.local_address = _host_and_port(sock.getsockname())
        self.remote_address = _host_and_port(sock.getpeername())
        self._client: Hashable = self.remote_address[0]

    async def watch(self, on_ready: OnReady) -> None:
        """As `Stream.watch`."""
        await self._watcher.watch(self._sock, on_ready, self._wants_room, self._client)

    def want_room(self) -> None:
        """As `Stream.want_room`."""
        self._wants_room = True
        self._watcher.want_room(self._sock)

    def want_data(self) -> None:
        """As `Stream.want_data`."""
        if self._wants_room:
            self._wants_room = False
            self._watcher.want_data(self._sock)

    def mute(self, on_left: OnLeft) -> None:
        """As `Stream.mute`."""
        self._watcher.mute(self._sock, on_left)

    def poke(self) -> None:
        """As `Stream.poke`."""
        self._watcher.poke(self._sock)

    def heed_end(self, on_left: OnLeft) -> None:
        """As `Stream.heed_end`."""
        self._watcher.heed_end(self._sock, on_left)

    def ignore_end(self) -> None:
        """As `Stream.ignore_end`."""
        self._watcher.ignore_end(self._sock)

    def has_unread(self, more_than: int = 0) -> bool:
        """As `Stream.has_unread`."""
        try:
            return len(self._sock.recv(more_than + 1, socket.MSG_PEEK)) > more_than
        except OSError:
            return False

    def belongs_to(self, client: Hashable) -> None:
        """As `Stream.belongs_to`."""
        self._client = client

    def receive_now(self, buffer: memoryview) -> int | None:
        """As `Stream.receive_now`."""
        try:
            return self._sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return None

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        """As `Stream.read_now`; small means `SMALL_SLICE_BYTES` in all."""
        left = SMALL_SLICE_BYTES
        buffers: list[Buffer] = []
        for part in parts:
            if isinstance(part, BUFFERS):
                left -= len(part)
                buffers.append(part)
            elif part.size > left or (data := read_warm(part, 0, part.size)) is None:
                return None
            else:
                left -= part.size
                buffers.append(data)
        return b"".join(buffers)

    def send_now(self, data: Buffer) -> int:
        """As `Stream.send_now`."""
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    async def receive_into(self, buffer: memoryview) -> int:
        """As `Stream.receive_into`."""
        sock = self._sock
        while True:
            try:
                return sock.recv_into(buffer)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(sock)
            except InterruptedError:
                continue

    async def send_parts(self, parts: Sequence[Part]) -> None:
        """As `Stream.send_parts`."""
        if len(parts) == 1 and isinstance(part := parts[0], bytes):
            sent = self.send_now(part)
            if sent == len(part):
                return
            parts = [memoryview(part)[sent:]]
        await self.begin_sending(parts).finish()

    def begin_sending(self, parts: Sequence[Part]) -> Sending:
        """As `Stream.begin_sending`."""
        return Sending(self._sock, parts, has_sendfile=self._has_sendfile)

    def reset_on_close(self) -> None:
        """As `Stream.reset_on_close`."""
        if self._sock.fileno() >= 0:
            reset_on_close(self._sock)

    def close(self) -> None:
        """Close the socket, once."""
        if self._sock.fileno() >= 0:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()


def _descriptors_for_sockets() -> int:
    """Accepted sockets stay below this: a segment that can't be opened would take its log directory offline."""
    limit = descriptors_max()
    return limit - min(DESCRIPTORS_KEPT_MAX, limit // 4)


def _host_and_port(address: tuple[object, ...] | str) -> tuple[str, int]:
    host, port = str(address[0]), address[1]
    assert isinstance(port, int)
    return sys.intern(host.removeprefix("::ffff:")), port  # one text for all connections of a host
