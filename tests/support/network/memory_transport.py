"""A `Transport` without sockets: bounded pipes in memory, so that waiting, slowness and failure are exact.

Verified against the real one by tests/broker/requests/test_server.py, which runs on both.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Hashable, Sequence

import trio

from kpybroker.broker.network.sending import BUFFERS, SMALL_SLICE_BYTES, Part, Progress
from kpybroker.broker.network.transport import Listener, Stream


class Pipe:
    """One direction; a writer waits while `capacity` bytes are unread."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.data = bytearray()
        self.closed = False
        self.on_closed: Callable[[], None] | None = None
        self.changed = trio.lowlevel.ParkingLot()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(bytes(data))
        while view := view[self.write_now(view) :]:
            await self.changed.park()

    def write_now(self, data: bytes | bytearray | memoryview) -> int:
        if self.closed:
            raise BrokenPipeError(errno.EPIPE, "the peer has closed")
        count = min(max(self.capacity - len(self.data), 0), len(data))
        self.data += data[:count]
        self.changed.unpark_all()
        return count

    async def wait_readable(self) -> None:
        await trio.lowlevel.checkpoint()
        while not self.data and not self.closed:
            await self.changed.park()

    async def wait_writable(self) -> None:
        await trio.lowlevel.checkpoint()
        while len(self.data) >= self.capacity and not self.closed:
            await self.changed.park()

    async def read_into(self, buffer: memoryview) -> int:
        count = self.read_now(buffer)
        while count is None:
            await self.changed.park()
            count = self.read_now(buffer)
        return count

    def read_now(self, buffer: memoryview) -> int | None:
        if not self.data:
            return 0 if self.closed else None
        count = min(len(buffer), len(self.data))
        buffer[:count] = self.data[:count]
        del self.data[:count]
        self.changed.unpark_all()
        return count

    def close(self) -> None:
        self.closed = True
        self.changed.unpark_all()
        if self.on_closed is not None:
            self.on_closed()


class MemoryResponse:
    """All parts in one, as far as the pipe takes them."""

    def __init__(self, parts: Sequence[Part], outgoing: Pipe) -> None:
        self.left = _joined(parts)
        self.outgoing = outgoing

    def resume(self) -> Progress:
        self.left = self.left[self.outgoing.write_now(self.left) :]
        return Progress.FULL if self.left else Progress.SENT

    async def finish(self) -> None:
        while self.resume() is Progress.FULL:
            await self.outgoing.changed.park()


def _joined(parts: Sequence[Part]) -> bytes:
    return b"".join(part if isinstance(part, BUFFERS) else part.read() for part in parts)


class MemoryStream:
    def __init__(self, incoming: Pipe, outgoing: Pipe, local: tuple[str, int], remote: tuple[str, int]) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        self.local_address, self.remote_address = local, remote
        self.is_muted = False
        self.is_poked = False
        self.wants_room = False
        self.wait = trio.CancelScope()

    async def receive_into(self, buffer: memoryview) -> int:
        return await self.incoming.read_into(buffer)

    async def watch(self, on_ready: Callable[[], bool]) -> None:
        self.is_muted = False
        while True:
            with trio.CancelScope() as self.wait:
                if self.is_poked:
                    await trio.lowlevel.checkpoint()
                elif self.is_muted:
                    await trio.sleep_forever()
                elif self.wants_room:
                    await self.outgoing.wait_writable()
                else:
                    await self.incoming.wait_readable()
            self.is_poked = False
            if not on_ready():
                return

    def want_room(self) -> None:
        self.wants_room = True

    def want_data(self) -> None:
        self.wants_room = False

    def mute(self, on_left: Callable[[bool], None]) -> None:
        self.is_muted = True
        self.heed_end(on_left)

    def heed_end(self, on_left: Callable[[bool], None]) -> None:
        self.incoming.on_closed = lambda: on_left(False)
        if self.incoming.closed:
            on_left(False)

    def ignore_end(self) -> None:
        self.incoming.on_closed = None

    def has_unread(self, more_than: int = 0) -> bool:
        return len(self.incoming.data) > more_than

    def belongs_to(self, client: Hashable) -> None:
        """All are alike here."""

    def poke(self) -> None:
        self.is_muted = False
        self.ignore_end()
        self.is_poked = True
        self.wait.cancel()

    def receive_now(self, buffer: memoryview) -> int | None:
        return self.incoming.read_now(buffer)

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        data = _joined(parts)
        return data if len(data) <= SMALL_SLICE_BYTES else None

    def send_now(self, data: bytes | bytearray | memoryview) -> int:
        return self.outgoing.write_now(data)

    async def send_parts(self, parts: Sequence[Part]) -> None:
        await self.begin_sending(parts).finish()

    def begin_sending(self, parts: Sequence[Part]) -> MemoryResponse:
        return MemoryResponse(parts, self.outgoing)

    def reset_on_close(self) -> None:
        self.incoming.data.clear()
        self.outgoing.data.clear()

    def close(self) -> None:
        self.incoming.close()
        self.outgoing.close()


class MemoryListener:
    def __init__(self, transport: MemoryTransport, address: tuple[str, int]) -> None:
        self.transport = transport
        self.address = address
        self.waiting: deque[Stream] = deque()
        self.arrived = trio.lowlevel.ParkingLot()
        self.accept_errors: deque[OSError] = deque()

    async def accept(self) -> Stream:
        await trio.lowlevel.checkpoint()
        while not self.waiting:
            await self.arrived.park()
        if self.accept_errors:
            raise self.accept_errors.popleft()
        return self.waiting.popleft()

    async def poll(self) -> None:
        """Each stream watches itself."""

    def close(self) -> None:
        self.transport.listeners.pop(self.address, None)


class MemoryTransport:
    def __init__(self, pipe_capacity: int = 65536) -> None:
        self.pipe_capacity = pipe_capacity
        self.listeners: dict[tuple[str, int], MemoryListener] = {}
        self.next_port = 40000

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        address = (host or "0.0.0.0", port or self._port())
        if address in self.listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.listeners[address] = MemoryListener(self, address)
        return self.listeners[address]

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        listener = self.listeners.get((host, port))
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        there, back = Pipe(self.pipe_capacity), Pipe(self.pipe_capacity)
        client = (host, self._port())
        listener.waiting.append(MemoryStream(there, back, (host, port), client))
        listener.arrived.unpark_all()
        return MemoryStream(back, there, client, (host, port))

    def _port(self) -> int:
        self.next_port += 1
        return self.next_port
