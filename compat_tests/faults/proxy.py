"""The network between brokers, ZooKeeper and clients: TCP proxies in user space that know frames, and can be cut.

Every connection goes one *way*, from who asks to who responds. Kafka's and ZooKeeper's frames both begin with their
size, so a proxy forwards whole frames, knows which response belongs to which request, and can lose just the response.
Peers reach a broker by one address; whose connection it is says the client id of its first request.

A way that *stalls* keeps what is sent, and delivers it when it is healed: requests that arrive late are part of what is
tested. One that is *reset* closes its connections and refuses new ones. Everything runs in a loop in one thread.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from kpybroker.wire.api import ApiKey
from tests.support.network.ports import free_port

Node = int | str
T = TypeVar("T")

CLIENTS = "clients"
ZOOKEEPER = "zookeeper"
UNKNOWN = "unknown"
CONTROL_DEADLINE_S = 30.0
KNOCK_S = 0.03
ORDERS = frozenset((ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA))
"""What controllers send."""
ORDERS_KEPT = 100


class Cut(StrEnum):
    STALL = "stalled"
    STALL_RESPONSES = "responses stalled"
    RESET = "reset"


class Way:
    """From `source` to `target`: what becomes of requests and of responses."""

    def __init__(self) -> None:
        self.requests_flow = asyncio.Event()
        self.responses_flow = asyncio.Event()
        self.is_reset = False
        self.losing: frozenset[int] = frozenset()
        self.to_lose = 0
        self.connections: set[_Connection] = set()
        self.orders: deque[bytes] = deque(maxlen=ORDERS_KEPT)
        """The latest of the controller's requests, whole frames."""
        self.heal()

    def heal(self) -> None:
        self.requests_flow.set()
        self.responses_flow.set()
        self.is_reset = False
        self.to_lose = 0

    def cut(self, how: Cut) -> None:
        if how is Cut.RESET:
            self.is_reset = True
            for connection in list(self.connections):
                connection.abort()
            return
        self.responses_flow.clear()
        if how is Cut.STALL:
            self.requests_flow.clear()


class Exchange(NamedTuple):
    """A client's request and the response to it, whole frames. The broker handled it between the two times; whether the
    client received the response is another matter. It is None if the connection ended before, at `reported_ns`.
    """

    broker: Node
    request: bytes
    response: bytes | None
    sent_ns: int
    reported_ns: int


class Network:
    """All ways of one cluster. Its methods may be called from any thread, and have taken effect when they return.

    What clients ask with a key of `listening` is kept in `exchanges`.
    """

    def __init__(self) -> None:
        self.listening: frozenset[int] = frozenset()
        self.exchanges: list[Exchange] = []
        self._ways: dict[tuple[Node, Node], Way] = defaultdict(Way)
        self.lost_responses: Counter[int] = Counter()
        """By API key, or by ZooKeeper's operation."""
        self.names: dict[Node, set[str]] = defaultdict(set)
        """Client ids by who was recognized in them."""
        self._loop = asyncio.new_event_loop()
        self._doors: list[_Door] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="network")
        self._thread.start()

    def proxy(self, target: Node, target_port: int, source: Node | None = None) -> int:
        """A port that leads to `target`; without `source`, for clients that say in a request who they are."""
        port = free_port()
        door = _Door(self, target, target_port, port, source)
        self._doors.append(door)
        self._run(door.open())
        return port

    def cut(self, source: Node, target: Node, how: Cut) -> None:
        self._call(lambda: self._ways[source, target].cut(how))

    def heal_way(self, source: Node, target: Node) -> None:
        self._call(lambda: self._ways[source, target].heal())

    def heal(self) -> None:
        """All ways are open again."""

        def heal_all() -> None:
            for way in self._ways.values():
                way.heal()

        self._call(heal_all)

    def lose_responses(self, source: Node, target: Node, keys: Collection[int], count: int) -> None:
        """The next responses to requests of these keys are lost: the connection ends, the request was carried out."""

        def arm() -> None:
            way = self._ways[source, target]
            way.losing, way.to_lose = frozenset(keys), count

        self._call(arm)

    def orders(self, source: Node, target: Node) -> list[bytes]:
        """What `source` as the controller sent to `target`, the latest last."""
        found: list[bytes] = []
        self._call(lambda: found.extend(self._ways[source, target].orders))
        return found

    def close(self) -> None:
        async def end() -> None:
            for door in self._doors:
                door.close()
            while self.tasks:  # what was accepted already may still begin
                for task in self.tasks:
                    task.cancel()
                await asyncio.gather(*self.tasks, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CONTROL_DEADLINE_S)
        self._loop.close()

    def way(self, source: Node, target: Node) -> Way:
        return self._ways[source, target]

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CONTROL_DEADLINE_S)

    def _call(self, action: Callable[[], None]) -> None:
        async def call() -> None:
            action()

        self._run(call())


class _Door:
    """A port that leads to a target. It is shut while the target is dead, so that no one is let in and thrown out:
    librdkafka takes one that hangs up on its first request for an old broker, which knows no idempotence.
    """

    def __init__(self, network: Network, target: Node, target_port: int, port: int, source: Node | None) -> None:
        self._network = network
        self._target, self.target_port = target, target_port
        self._port = port
        self.source = source
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def look(self) -> None:
        """Shut, if there is no one behind it, until there is."""
        if self._server is None or await self._is_accepting() or self._server is None:
            return  # shut already, or there is somebody
        self.close()
        task = asyncio.create_task(self._open_again())
        self._network.tasks.add(task)
        task.add_done_callback(self._network.tasks.discard)

    async def _open_again(self) -> None:
        while not await self._is_accepting():  # noqa: ASYNC110 - another process can't set an event
            await asyncio.sleep(KNOCK_S)
        await self.open()

    async def _is_accepting(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            return False
        writer.close()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._network.tasks.add(task)
        try:
            await _Connection(self._network, self, self._target, reader, writer).run()
        finally:
            self._network.tasks.discard(task)


class _Connection:
    def __init__(
        self, network: Network, door: _Door, target: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._network = network
        self._door = door
        self._target = target
        self._reader, self._writer = reader, writer
        self._upstream: asyncio.StreamWriter | None = None
        self._asked: dict[int, int] = {}
        """Key by correlation id of the requests that are under way."""
        self._heard: dict[int, tuple[bytes, int]] = {}
        """Of those that are listened to, the frame and when it was sent."""

    async def run(self) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            try:
                first = await _frame(self._reader)
                source = self._recognize(first) if self._door.source is None else self._door.source
                way = self._network.way(source, self._target)
                if way.is_reset:
                    return
                await way.requests_flow.wait()
                reader, self._upstream = await asyncio.open_connection("127.0.0.1", self._door.target_port)
                way.connections.add(self)
                try:
                    await self._forward(way, first, reader)
                finally:
                    way.connections.discard(self)
            finally:
                self._writer.close()
                if self._upstream is not None:
                    self._upstream.close()

    def abort(self) -> None:
        self._writer.transport.abort()
        if self._upstream is not None:
            self._upstream.transport.abort()

    async def _forward(self, way: Way, first: bytes, responses: asyncio.StreamReader) -> None:
        """Both directions, until one of them has ended."""
        both = [asyncio.create_task(self._requests(way, first)), asyncio.create_task(self._responses(way, responses))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            for request, sent_ns in self._heard.values():
                self._network.exchanges.append(Exchange(self._target, request, None, sent_ns, time.monotonic_ns()))

    async def _requests(self, way: Way, frame: bytes) -> None:
        assert self._upstream is not None
        while True:
            number, key = (_place(frame, 4), _place(frame, 8)) if self._is_zookeeper else _kafka_request(frame)
            self._asked[number] = key
            if key in ORDERS and not self._is_zookeeper:
                way.orders.append(frame)
            await way.requests_flow.wait()
            if key in self._network.listening and self._door.source == CLIENTS:
                self._heard[number] = (frame, time.monotonic_ns())
            self._upstream.write(frame)
            await self._upstream.drain()
            frame = await _frame(self._reader)

    async def _responses(self, way: Way, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                frame = await _frame(reader)
                number = _place(frame, 4)
                key = self._asked.pop(number, None)
                if (heard := self._heard.pop(number, None)) is not None:
                    request, sent_ns = heard
                    exchange = Exchange(self._target, request, frame, sent_ns, time.monotonic_ns())
                    self._network.exchanges.append(exchange)
                if way.to_lose > 0 and key in way.losing:
                    way.to_lose -= 1
                    self._network.lost_responses[key] += 1
                    return
                await way.responses_flow.wait()
                self._writer.write(frame)
                await self._writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            await self._door.look()
            await way.responses_flow.wait()  # no one hears of the end of a connection through a cut
            raise

    @property
    def _is_zookeeper(self) -> bool:
        return self._target == ZOOKEEPER

    def _recognize(self, frame: bytes) -> Node:
        size = int.from_bytes(frame[12:14], "big", signed=True)
        name = frame[14 : 14 + max(size, 0)].decode(errors="replace")
        found = re.search(r"\d+", name)
        node: Node = int(found.group()) if found else UNKNOWN
        self._network.names[node].add(name)
        return node


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))


def _place(frame: bytes, position: int) -> int:
    return int.from_bytes(frame[position : position + 4], "big", signed=True)


def _kafka_request(frame: bytes) -> tuple[int, int]:
    """(correlation id, API key)"""
    return _place(frame, 8), int.from_bytes(frame[4:6], "big")
