"""A network in memory: hosts, connections between them, and what becomes of what is sent.

As with TCP, what is sent on a connection arrives whole and in order, or the connection ends. Bytes arrive after a
delay, in segments; connections overtake each other. While a link is cut its bytes wait, and go on when it heals: or the
connection is reset, if that takes longer than TCP tries. A process that is killed resets its connections; a host
without power says nothing, so that its peers have half a connection, which ends once the host runs again and they send.
"""

from __future__ import annotations

import errno
import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from zlib import crc32

import trio

from kpybroker.broker.network.transport import Listener, Stream
from tests.simulation.seams.agenda import Agenda
from tests.simulation.seams.trace import Trace
from tests.support.network.memory_transport import MemoryListener, MemoryStream, MemoryTransport, Pipe

DELAY_S, JITTER_S = 0.0002, 0.0008
WINDOW_BYTES = 65_536
SEGMENT_BYTES = 16_384
TCP_TRIES_S = 15.0
"""How long what is sent waits for a link that is cut, before the connection is reset."""
PORT = 9092

Address = tuple[str, int]


class Process:
    """What runs on a host, from a start to its end: the owner of its ends of connections. A paused one is called back
    once it goes on.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self._later: list[Callable[[], None]] = []

    def call(self, function: Callable[[], None]) -> None:
        if self.is_paused:
            self._later.append(function)
        else:
            function()

    def go_on(self) -> None:
        self.is_paused = False
        later, self._later = self._later, []
        for function in later:
            function()


class End(Pipe):
    """What travels to one process. `data` has arrived; the rest is in flight."""

    def __init__(self, network: Network, name: str, writer: Process, reader: Process) -> None:
        super().__init__(WINDOW_BYTES)
        self.network, self.name, self.writer, self.reader = network, name, writer, reader
        self.other: End  # the same connection, the other way
        self.in_flight = 0
        self.arrives_at = 0.0
        self.error: OSError | None = None
        self.is_shut = False  # by its writer
        self.is_left = False  # by its reader

    def write_now(self, data: bytes | bytearray | memoryview) -> int:
        if not self.writer.is_alive:
            return len(data)
        if self.error is not None:
            raise self.error
        if self.is_shut:
            raise BrokenPipeError(errno.EPIPE, "closed")
        count = max(min(self.capacity - len(self.data) - self.in_flight, len(data)), 0)
        for start in range(0, count, SEGMENT_BYTES):
            self._send(bytes(data[start : min(start + SEGMENT_BYTES, count)]))
        return count

    async def wait_writable(self) -> None:
        await trio.lowlevel.checkpoint()
        while len(self.data) + self.in_flight >= self.capacity and not self.is_shut and self.error is None:
            await self.changed.park()

    async def wait_readable(self) -> None:
        await trio.lowlevel.checkpoint()
        while not self.data and not self.closed and self.error is None:
            await self.changed.park()

    def read_now(self, buffer: memoryview) -> int | None:
        if not self.data and self.error is not None:
            raise self.error
        return super().read_now(buffer)

    def _send(self, data: bytes) -> None:
        self.in_flight += len(data)
        self.network.carry(self, lambda: self._arrive(data), f"{self.name} {len(data)} {crc32(data):08x}")

    def shut(self) -> None:
        """Its writer sends no more: the reader learns so after what was sent."""
        if not self.is_shut and self.writer.is_alive:
            self.is_shut = True
            self.network.carry(self, self._arrive_end, f"{self.name} fin")
        self.is_shut = True
        self.changed.unpark_all()

    def leave(self) -> None:
        """Its reader reads no more."""
        self.is_left = True
        self.data.clear()
        self.closed = True
        self.changed.unpark_all()

    def _is_refused(self) -> bool:
        """Whether there is no one to take what has arrived: then its writer is sent a reset, if there is a host."""
        if self.reader.is_alive and not self.is_left:
            return False
        if self.network.is_powered(self.reader.host):
            self.other.send_reset()
        return True

    def _arrive(self, data: bytes) -> None:
        self.in_flight -= len(data)
        if self.error is None and not self._is_refused():
            self.data += data
        self.changed.unpark_all()

    def _arrive_end(self) -> None:
        if self.reader.is_alive and not self.is_left and self.error is None:
            self.closed = True
            self.changed.unpark_all()
            self._tell_closed()

    def _tell_closed(self) -> None:
        if self.on_closed is not None:
            self.reader.call(self.on_closed)

    def send_reset(self) -> None:
        """By its writer, or by the writer's host: the reader's side of the connection ends, both ways."""
        self.network.carry(self, self.break_off, f"{self.name} rst")

    def break_off(self) -> None:
        for end in (self, self.other):
            if end.error is None:
                end.error = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            end.changed.unpark_all()
        self.data.clear()
        self._tell_closed()


class SimulatedStream(MemoryStream):
    incoming: End
    outgoing: End
    resets = False

    def __init__(self, incoming: End, outgoing: End, local: Address, remote: Address) -> None:
        super().__init__(incoming, outgoing, local, remote)

    def reset_on_close(self) -> None:
        self.resets = True

    def close(self) -> None:
        if self.resets and not self.outgoing.is_shut and self.outgoing.writer.is_alive:
            self.outgoing.is_shut = True
            self.outgoing.send_reset()
        self.outgoing.shut()
        self.incoming.leave()


class SimulatedListener(MemoryListener):
    """Of one process: closed with it, or by itself."""

    def __init__(self, network: Network, process: Process, address: Address) -> None:
        super().__init__(MemoryTransport(), address)
        self.network, self.process = network, process
        self.is_closed = False

    async def accept(self) -> Stream:
        await trio.lowlevel.checkpoint()
        while not self.waiting:
            if self.is_closed:
                raise trio.ClosedResourceError
            await self.arrived.park()
        return self.waiting.popleft()

    def close(self) -> None:
        self.is_closed = True
        self.arrived.unpark_all()
        if self.network.listeners.get(self.address, (None, None))[1] is self:
            del self.network.listeners[self.address]


class Network:
    """All hosts and the links between them. `cut` and `slow` work one way."""

    def __init__(self, agenda: Agenda, trace: Trace, chance: random.Random) -> None:
        self._agenda, self._trace, self._chance = agenda, trace, chance
        self.listeners: dict[Address, tuple[Process, MemoryListener]] = {}
        self._ends: dict[Process, list[End]] = {}
        self._cut: dict[tuple[str, str], float] = {}
        self._slow: dict[tuple[str, str], float] = {}
        self._held: dict[tuple[str, str], deque[tuple[End, Callable[[], None]]]] = {}
        self._unpowered: set[str] = set()
        self._numbers = count(1)

    # --- links

    def cut(self, source: str, target: str) -> None:
        self._cut.setdefault((source, target), trio.current_time())

    def slow(self, source: str, target: str, seconds: float) -> None:
        self._slow[source, target] = seconds

    def heal(self, links: Iterable[tuple[str, str]] | None = None) -> None:
        """These, or all."""
        for link in sorted(self._cut.keys() | self._slow.keys() if links is None else links):
            self._slow.pop(link, None)
            self._cut.pop(link, None)
            for end, call in self._held.pop(link, ()):
                end.arrives_at = max(
                    end.arrives_at, trio.current_time() + self._delay(end.writer.host, end.reader.host)
                )
                self._agenda.at(end.arrives_at, partial(self._arrive, end, call))

    def reset(self, process: Process) -> None:
        """All connections of a process, as by a firewall that was restarted."""
        for end in self._ends.get(process, ()):
            end.break_off()
            end.other.break_off()

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def _delay(self, source: str, target: str) -> float:
        return DELAY_S + self._chance.random() * (JITTER_S + self._slow.get((source, target), 0.0))

    def carry(self, end: End, call: Callable[[], None], what: str) -> None:
        """Have it called when what was sent has arrived, in order with all that travels to this end."""
        self._trace.add("net", what)
        source, target = end.writer.host, end.reader.host
        end.arrives_at = max(end.arrives_at, trio.current_time() + self._delay(source, target))
        self._agenda.at(end.arrives_at, partial(self._arrive, end, call))

    def _arrive(self, end: End, call: Callable[[], None]) -> None:
        link = end.writer.host, end.reader.host
        if link not in self._cut:
            call()
            return
        self._held.setdefault(link, deque()).append((end, call))
        self._agenda.after(TCP_TRIES_S, partial(self._give_up, link, self._cut[link], end))

    def _give_up(self, link: tuple[str, str], since: float, end: End) -> None:
        if self._cut.get(link) == since:
            end.break_off()
            end.other.break_off()

    # --- processes

    def is_powered(self, host: str) -> bool:
        return host not in self._unpowered

    def begin(self, process: Process) -> None:
        self._unpowered.discard(process.host)
        self._ends[process] = []

    def end(self, process: Process, *, power_cut: bool) -> None:
        """The process ends, with all that is its own; nothing it does from now on has an effect."""
        if power_cut:
            self._unpowered.add(process.host)
        for address in [address for address, (owner, _) in self.listeners.items() if owner is process]:
            del self.listeners[address]
        for end in self._ends.pop(process, ()):
            if not power_cut and not end.is_shut and end.error is None:
                end.send_reset()
        process.is_alive = False

    async def connect(self, process: Process, host: str, port: int, timeout_s: float) -> Stream:
        """As `Transport.connect`; the handshake takes one delay there and one back."""
        with trio.move_on_after(timeout_s):
            while True:
                await trio.sleep(self._delay(process.host, host) + self._delay(host, process.host))
                if not (self.is_cut(process.host, host) or self.is_cut(host, process.host)) and self.is_powered(host):
                    return self._connected(process, (host, port))
                await trio.sleep(1)  # TCP tries again
        raise TimeoutError(errno.ETIMEDOUT, f"no connection to {host}:{port}")

    def _connected(self, process: Process, address: Address) -> Stream:
        if not process.is_alive:
            raise OSError(errno.ENETDOWN, "the process has ended")
        if address not in self.listeners:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        owner, listener = self.listeners[address]
        number = next(self._numbers)
        there = End(self, f"{number}>{owner.host}", process, owner)
        back = End(self, f"{number}>{process.host}", owner, process)
        there.other, back.other = back, there
        self._ends[process].append(there)
        self._ends[owner].append(back)
        client = (process.host, 40_000 + number)
        self._trace.add("net", f"{number} {process.host} connects to {address[0]}:{address[1]}")
        listener.waiting.append(SimulatedStream(there, back, address, client))
        listener.arrived.unpark_all()
        return SimulatedStream(back, there, client, address)


class SimulatedTransport:
    """The network as one process has it."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network, self._process = network, process

    def listen(self, host: str, port: int, backlog: int) -> Listener:
        """As `Transport.listen`."""
        address = (host or self._process.host, port)
        if address in self._network.listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = SimulatedListener(self._network, self._process, address)
        self._network.listeners[address] = self._process, listener
        return listener

    async def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        """As `Transport.connect`."""
        return await self._network.connect(self._process, host, port, timeout_s)
