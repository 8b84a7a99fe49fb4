"""A transport whose bytes can be stopped: of a whole broker (paused), or between some brokers (a network partition).

*Paused* is what SIGSTOP does to a process, seen from outside: connections stay up and new ones are accepted by the
kernel, but nothing is read, nothing is sent and nothing is closed before `resume`.

*Cut off* from another broker is what a partition of the network does to a connection: what is sent vanishes and nothing
arrives, without an error. New connections time out. When the network heals, the connections that were cut are reset
(their bytes are lost) and those that wait are made. Only the side that connected is cut, which stops both directions.

Without a pause or a cut each call is passed on, after one test.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.network.sending import Progress

if TYPE_CHECKING:
    from kpybroker.broker.loop.alone import OnLeft, OnReady
    from kpybroker.broker.network.sending import Part
    from kpybroker.broker.network.transport import Listener, ResponseOut, Stream, Transport

PAUSED, CUT = "paused", "cut"

Address = tuple[str, int]


class Network:
    """Who listens where among the brokers of this process, and which of them cannot reach each other."""

    def __init__(self) -> None:
        self._listeners: dict[Address, int] = {}
        self._groups: tuple[frozenset[int], ...] = ()
        self._streams: dict[Address, HeldStream] = {}  # those by which brokers have connected, by own address
        self._healed = trio.Event()

    @property
    def groups(self) -> tuple[frozenset[int], ...]:
        """The groups of brokers that are apart; none if the network is whole."""
        return self._groups

    def part(self, groups: Iterable[Iterable[int]]) -> None:
        """Cut brokers of different groups off from each other. A broker that is in no group reaches all."""
        self._groups = tuple(map(frozenset, groups))
        self._changed()

    def heal(self) -> None:
        """Let all reach each other again."""
        self._groups = ()
        self._changed()

    def _changed(self) -> None:
        for stream in list(self._streams.values()):
            if not self.reaches(stream.owner, stream.peer):
                stream.hold(CUT)
            elif stream.is_held_for(CUT):
                stream.break_off()
        self._healed.set()
        self._healed = trio.Event()

    def reaches(self, one: int | None, other: int | None) -> bool:
        """Whether bytes pass between two brokers; None is a client."""
        apart = [group for group in self._groups if one in group or other in group]
        return len(apart) < 2

    async def wait_reachable(self, one: int, other: int | None) -> None:
        """Return once they reach each other."""
        while not self.reaches(one, other):
            await self._healed.wait()

    def listens(self, broker_id: int, address: Address) -> None:
        """A broker has bound this address."""
        self._listeners[address] = broker_id

    def broker_at(self, host: str, port: int) -> int | None:
        """The broker that listens there. Names of hosts are not resolved: ports of this machine are mostly unique."""
        if (host, port) in self._listeners:
            return self._listeners[host, port]
        found = {broker_id for (_, other), broker_id in self._listeners.items() if other == port}
        return found.pop() if len(found) == 1 else None

    def is_peer(self, host: str, port: int) -> bool:
        """Whether the client at this address is a broker of this process."""
        return (host, port) in self._streams

    def connected(self, stream: HeldStream) -> None:
        """A broker has connected to something."""
        self._streams[stream.local_address] = stream
        if not self.reaches(stream.owner, stream.peer):
            stream.hold(CUT)

    def closed(self, stream: HeldStream) -> None:
        """A connection of a broker is closed."""
        if self._streams.get(stream.local_address) is stream:
            del self._streams[stream.local_address]


class HeldTransport:
    """`inner` for one broker. It lives as long as the process: a broker that starts again gets the same one."""

    def __init__(self, inner: Transport, broker_id: int, network: Network) -> None:
        self._inner = inner
        self.broker_id = broker_id
        self.network = network
        self._streams: set[HeldStream] = set()
        self._resumed = trio.Event()
        self._resumed.set()

    @property
    def is_paused(self) -> bool:
        """Whether nothing passes."""
        return not self._resumed.is_set()

    def pause(self) -> None:
        """Stop all bytes until `resume`."""
        if not self.is_paused:
            self._resumed = trio.Event()
            for stream in self._streams:
                stream.hold(PAUSED)

    def resume(self) -> None:
        """Let bytes pass again."""
        self._resumed.set()
        for stream in list(self._streams):
            stream.release(PAUSED)

    def drop(self) -> None:
        """The broker is killed while it is paused: its connections are closed, and still nothing passes."""
        for stream in list(self._streams):
            stream.drop()

    async def wait_resumed(self) -> None:
        """Return once the broker is not paused."""
        while self.is_paused:
            await self._resumed.wait()

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        """As `Transport.listen`."""
        listener = self._inner.listen(host, port, backlog)
        self.network.listens(self.broker_id, listener.address)
        return HeldListener(listener, self)

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        """As `Transport.connect`; raises TimeoutError for a broker that is cut off all the time."""
        peer = self.network.broker_at(host, port)
        started = trio.current_time()
        with trio.move_on_after(timeout_s):
            await self.wait_resumed()
            await self.network.wait_reachable(self.broker_id, peer)
            left_s = timeout_s - (trio.current_time() - started)
            stream = self.held(await self._inner.connect(host, port, left_s), peer)
            self.network.connected(stream)
            return stream
        raise TimeoutError(errno.ETIMEDOUT, f"no connection to {host}:{port} within {timeout_s:g} s")

    def held(self, inner: Stream, peer: int | None = None) -> HeldStream:
        """The stream that passes on what `inner` does."""
        stream = HeldStream(inner, self.broker_id, peer, self._closed)
        self._streams.add(stream)
        if self.is_paused:
            stream.hold(PAUSED)
        return stream

    def _closed(self, stream: HeldStream) -> None:
        self._streams.discard(stream)
        self.network.closed(stream)


class HeldListener:
    """`inner`, which accepts nothing while its broker is paused."""

    def __init__(self, inner: Listener, transport: HeldTransport) -> None:
        self._inner = inner
        self._transport = transport
        self.address = inner.address

    async def accept(self) -> Stream:
        """As `Listener.accept`."""
        await self._transport.wait_resumed()
        stream = self._transport.held(await self._inner.accept())
        try:
            await self._transport.wait_resumed()
        except BaseException:
            stream.drop()
            stream.close()
            raise
        return stream

    async def poll(self) -> None:
        """As `Listener.poll`."""
        await self._inner.poll()

    def close(self) -> None:
        """As `Listener.close`."""
        self._inner.close()


class HeldResponse:
    """A response on its way out, which stops where its stream is held."""

    __slots__ = ("_inner", "_stream")

    def __init__(self, stream: HeldStream, inner: ResponseOut) -> None:
        self._stream = stream
        self._inner = inner

    def resume(self) -> Progress:
        """As `ResponseOut.resume`; a held stream takes nothing."""
        return Progress.FULL if self._stream.is_held() else self._inner.resume()

    async def finish(self) -> None:
        """As `ResponseOut.finish`."""
        await self._stream.uninterrupted(self._inner.finish)


class HeldStream:
    """`inner`, of the broker `owner`, to the broker `peer` (None: a client, or another process)."""

    __slots__ = (
        *("_in_progress", "_inner", "_is_broken", "_is_closed", "_is_dropped", "_on_closed", "_reasons", "_released"),
        *("local_address", "owner", "peer", "remote_address"),
    )

    def __init__(self, inner: Stream, owner: int, peer: int | None, on_closed: Callable[[HeldStream], None]) -> None:
        self._inner = inner
        self._on_closed = on_closed
        self._reasons: set[str] = set()  # why nothing passes
        self._released = trio.Event()
        self._in_progress = trio.CancelScope()  # of what stops when the stream is held
        self._is_broken = self._is_closed = self._is_dropped = False
        self.owner = owner
        self.peer = peer
        self.local_address = inner.local_address
        self.remote_address = inner.remote_address

    # --- levers

    def hold(self, reason: str) -> None:
        """Stop all bytes until the `release` of every reason."""
        self._reasons.add(reason)
        self._in_progress.cancel()

    def release(self, reason: str) -> None:
        """Let bytes pass, unless there is another reason; a stream that was closed in the meantime closes now."""
        if reason in self._reasons:
            self._reasons.discard(reason)
            if self._is_closed:
                self._close_now()
            self._wake()

    def is_held_for(self, reason: str) -> bool:
        """Whether it is held for this reason."""
        return reason in self._reasons

    def break_off(self) -> None:
        """Reset the connection, which has lost bytes in a cut."""
        self._inner.reset_on_close()
        self._is_broken = True
        self.release(CUT)
        self._inner.poke()  # a task that waits for bytes learns of it

    def drop(self) -> None:
        """Let `close` close the stream although it is held."""
        self._is_dropped = True
        if self._is_closed:
            self._close_now()

    def is_held(self) -> bool:
        """Whether nothing passes now. Raises ConnectionResetError for a stream that was broken off."""
        if self._reasons:
            return True
        if self._is_broken:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        return False

    def _wake(self) -> None:
        self._released.set()
        self._released = trio.Event()

    async def _wait_released(self) -> None:
        while self.is_held():
            await self._released.wait()
            if self._is_closed:
                raise trio.ClosedResourceError

    async def uninterrupted(self, finish: Callable[[], Awaitable[None]]) -> None:
        """Run `finish` while the stream is not held; run it again if the stream was held in the meantime."""
        while True:
            await self._wait_released()
            with trio.CancelScope() as self._in_progress:
                await finish()
                return

    # --- the contract

    async def receive_into(self, buffer: memoryview) -> int:
        """As `Stream.receive_into`."""
        while True:
            await self._wait_released()
            received = self._inner.receive_now(buffer)
            if received is not None:
                return received
            await self._inner.watch(_once)

    async def send_parts(self, parts: Sequence[Part]) -> None:
        """As `Stream.send_parts`."""
        await self.uninterrupted(self._inner.begin_sending(parts).finish)

    def begin_sending(self, parts: Sequence[Part]) -> HeldResponse:
        """As `Stream.begin_sending`."""
        return HeldResponse(self, self._inner.begin_sending(parts))

    async def watch(self, on_ready: OnReady) -> None:
        """As `Stream.watch`. What would have been called while the stream was held is called afterwards."""
        was_held = False

        def guarded() -> bool:
            nonlocal was_held
            if self._reasons or self._is_broken:
                was_held = True
                return False
            return on_ready()

        while True:
            await self._wait_released()
            if was_held:  # not before the watch has begun
                trio.lowlevel.current_trio_token().run_sync_soon(self._inner.poke)
                was_held = False
            await self._inner.watch(guarded)
            if not was_held:
                return

    def want_room(self) -> None:
        """As `Stream.want_room`."""
        self._inner.want_room()

    def want_data(self) -> None:
        """As `Stream.want_data`."""
        self._inner.want_data()

    def mute(self, on_left: OnLeft) -> None:
        """As `Stream.mute`."""
        self._inner.mute(on_left)

    def poke(self) -> None:
        """As `Stream.poke`."""
        self._inner.poke()

    def heed_end(self, on_left: OnLeft) -> None:
        """As `Stream.heed_end`."""
        self._inner.heed_end(on_left)

    def ignore_end(self) -> None:
        """As `Stream.ignore_end`."""
        self._inner.ignore_end()

    def has_unread(self, more_than: int = 0) -> bool:
        """As `Stream.has_unread`."""
        return self._inner.has_unread(more_than)

    def belongs_to(self, client: Hashable) -> None:
        """As `Stream.belongs_to`."""
        self._inner.belongs_to(client)

    def receive_now(self, buffer: memoryview) -> int | None:
        """As `Stream.receive_now`."""
        return None if self.is_held() else self._inner.receive_now(buffer)

    def read_now(self, parts: Sequence[Part]) -> bytes | None:
        """As `Stream.read_now`."""
        return self._inner.read_now(parts)

    def send_now(self, data: bytes | bytearray | memoryview) -> int:
        """As `Stream.send_now`; a held stream takes nothing."""
        return 0 if self.is_held() else self._inner.send_now(data)

    def reset_on_close(self) -> None:
        """As `Stream.reset_on_close`."""
        self._inner.reset_on_close()

    def close(self) -> None:
        """As `Stream.close`; a paused broker closes when it is resumed."""
        self._is_closed = True
        self._wake()
        if PAUSED not in self._reasons or self._is_dropped:
            self._close_now()

    def _close_now(self) -> None:
        self._inner.close()
        self._on_closed(self)


def _once() -> bool:
    return False
