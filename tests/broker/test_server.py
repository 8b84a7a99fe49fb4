"""Connections: their limits, and that whatever goes wrong on one leaves the others alone."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.clock import SystemClock
from kpybroker.broker.context import RequestContext
from kpybroker.broker.server import BoundListener, Server
from kpybroker.broker.steps import Steps, Wait, run_steps
from kpybroker.broker.transport import SocketTransport, Stream, Transport
from kpybroker.core.authorizer import AllowAll
from kpybroker.wire.errors import ProtocolError
from tests.support.memory_transport import MemoryListener, MemoryTransport

HOST = "127.0.0.1"


class Config:
    """The keys the server asks for; a plain dictionary behind BrokerConfig's getters."""

    def __init__(self, **changed: Any) -> None:
        self.values: dict[str, Any] = {
            "queued.max.request.bytes": -1,
            "max.connections": 2**31 - 1,
            "max.connections.per.ip": 2**31 - 1,
            "max.connections.per.ip.overrides": [],
            "connections.max.idle.ms": 600_000,
            "socket.request.max.bytes": 104_857_600,
        }
        self.values.update({name.replace("_", "."): value for name, value in changed.items()})

    def get_int(self, key: str) -> int:
        return int(self.values[key])

    def get_list(self, key: str) -> list[str]:
        return list(self.values[key])


class Echo:
    """Stands for the dispatcher: answers with the frame, except to a few words."""

    def __init__(self) -> None:
        self.hold = trio.Event()
        self.in_progress = 0
        self.sent = 0
        self.waits: dict[bytes, Wait] = {}

    def answer_now(self, frame: bytearray | memoryview, connection: Any) -> Any:
        body = bytes(frame)
        if body.startswith((b"park", b"late")):
            return run_steps(self._answer_in_steps(body, connection))
        if body.startswith(b"now"):
            return framed(body)
        return self._answer(body, connection)

    def _answer_in_steps(self, body: bytes, connection: Any) -> Steps[tuple[list[bytes], RequestContext]]:
        """ "park" until its wait is ended, or until its time, in seconds, is over; "late" is over at once."""
        _, _, seconds = body.partition(b"/")
        deadline = trio.current_time() + float(seconds) if seconds else inf
        wait = self.waits[body] = Wait(-inf if body.startswith(b"late") else deadline)
        self.in_progress += 1
        try:
            yield wait
        finally:
            self.in_progress -= 1
            del self.waits[body]
        context = RequestContext(connection, AllowAll(), 0, 0)
        context.on_sent = [self._count_sent]
        return [len(body).to_bytes(4, "big"), body], context

    async def _answer(self, body: bytes, connection: Any) -> bytes | tuple[list[bytes], RequestContext]:
        context = RequestContext(connection, AllowAll(), 0, 0)
        context.on_sent = [self._count_sent]
        if body == b"raise":
            raise RuntimeError("a handler's mistake")
        if body == b"malformed":
            raise ProtocolError("not a request")
        if body == b"silent":
            return b""
        self.in_progress += 1
        try:
            if body == b"hold":
                await self.hold.wait()
            if body.startswith(b"big"):
                body = bytes(int(body[3:]))
        finally:
            self.in_progress -= 1
        return [len(body).to_bytes(4, "big"), body], context

    def _count_sent(self) -> None:
        self.sent += 1


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Client:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.buffer = bytearray()

    async def send(self, body: bytes) -> None:
        await self.stream.send_parts([framed(body)])

    async def receive(self) -> bytes | None:
        """The next frame; None at the end of the stream."""
        scratch = memoryview(bytearray(65536))
        while len(self.buffer) < 4 or len(self.buffer) < 4 + int.from_bytes(self.buffer[:4], "big"):
            try:
                count = await self.stream.receive_into(scratch)
            except OSError:
                return None
            if not count:
                return None
            self.buffer += scratch[:count]
        size = int.from_bytes(self.buffer[:4], "big")
        body = bytes(self.buffer[4 : 4 + size])
        del self.buffer[: 4 + size]
        return body

    async def ask(self, body: bytes) -> bytes | None:
        await self.send(body)
        return await self.receive()


class House:
    """A running server and the means to reach it."""

    def __init__(self, transport: Transport, config: Config) -> None:
        self.transport = transport
        self.echo = Echo()
        self.server = Server(config, self.echo, SystemClock())  # type: ignore[arg-type]
        self.listener = transport.listen(HOST, 0, 50)

    async def connect(self) -> Client:
        return Client(await self.transport.connect(*self.listener.address, timeout_s=5))

    async def run(self, story: Callable[[House], Any]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.server.serve, [BoundListener("PLAINTEXT", "PLAINTEXT", self.listener)])
            await story(self)
            nursery.cancel_scope.cancel()


@pytest.fixture(params=[SocketTransport, MemoryTransport])
def transport(request: pytest.FixtureRequest) -> Transport:
    made: Transport = request.param()
    return made


async def test_requests_on_one_connection_are_answered_in_order(transport: Transport) -> None:
    async def story(house: House) -> None:
        client = await house.connect()
        for number in range(100):
            await client.send(b"%d" % number)
        assert [await client.receive() for _ in range(100)] == [b"%d" % number for number in range(100)]
        assert house.echo.sent == 100

    await House(transport, Config()).run(story)


@pytest.mark.parametrize("seed", range(10))
async def test_requests_that_wait_and_those_that_do_not_are_answered_in_order(transport: Transport, seed: int) -> None:
    """However many come at once, in whatever pieces, whether or not the client reads before it has sent all."""
    chance = random.Random(seed)
    words = [b"now%d" % n if chance.random() < 0.7 else b"%d" % n for n in range(200)]
    words += [b"now" + bytes(chance.choice([10, 30_000, 400_000])) for _ in range(4)]
    chance.shuffle(words)
    sent = b"".join(len(word).to_bytes(4, "big") + word for word in words)

    async def story(house: House) -> None:
        client = await house.connect()

        async def send() -> None:
            left = sent
            while left:
                size = chance.choice([3, 20, 1000, 100_000])
                await client.stream.send_parts([left[:size]])
                left = left[size:]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            assert [await client.receive() for _ in words] == words
        assert await client.ask(b"now") == b"now"

    await House(transport, Config()).run(story)


@pytest.mark.parametrize("seed", range(10))
async def test_a_parked_request_is_answered_once_whatever_comes_meanwhile(transport: Transport, seed: int) -> None:
    """Whoever ends its wait and when: before its connection sleeps, while the client reads nothing, more than once."""
    chance = random.Random(seed)
    kinds = [b"park%d", b"late%d", b"now%d", b"%d"]
    words = [[chance.choice(kinds) % (100 * client + n) for n in range(30)] for client in range(4)]
    for number, of_one in enumerate(words):
        of_one[chance.randrange(30)] = b"now%d" % number + bytes(400_000)

    async def story(house: House) -> None:
        waits = house.echo.waits

        async def end_waits() -> None:
            while True:
                for word in chance.sample(sorted(waits), len(waits)):
                    if word in waits and chance.random() < 0.7:
                        ended = waits[word]
                        ended.end()
                        ended.end()
                await trio.testing.wait_all_tasks_blocked(0.0001)

        async def talk(of_one: list[bytes]) -> None:
            client = await house.connect()
            at_once = chance.random() < 0.5
            if at_once:
                nursery.start_soon(client.stream.send_parts, [framed(word) for word in of_one])
            for word in of_one:
                assert (await client.receive() if at_once else await client.ask(word)) == word

        async with trio.open_nursery() as ending:
            ending.start_soon(end_waits)
            async with trio.open_nursery() as nursery:
                for of_one in words:
                    nursery.start_soon(talk, of_one)
            ending.cancel_scope.cancel()
        assert not waits

    await House(transport, Config()).run(story)


async def test_a_parked_request_is_answered_when_its_time_is_over_and_the_next_one_in_its_own_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def story(house: House) -> None:
        client, began = await house.connect(), trio.current_time()
        for word, waited_s in [(b"park1/5", 5), (b"park2/30", 35), (b"park3/1", 36), (b"park4/7", 43)]:
            assert await client.ask(word) == word
            assert trio.current_time() - began == pytest.approx(waited_s)
        await client.send(b"park5/100")
        await trio.sleep(50)
        house.echo.waits[b"park5/100"].end()
        assert await client.receive() == b"park5/100"
        assert trio.current_time() - began == pytest.approx(93)

    await House(MemoryTransport(), Config(connections_max_idle_ms=20_000)).run(story)


async def test_whoever_leaves_while_parked_takes_nothing_along(transport: Transport) -> None:
    """Its request is over by the end of its wait at the latest, as on Kafka, and the others hear nothing of it."""

    async def story(house: House) -> None:
        leaving, staying = await house.connect(), await house.connect()
        await leaving.send(b"park1")
        await leaving.send(b"now")
        await staying.send(b"park2")
        while len(house.echo.waits) < 2:
            await trio.testing.wait_all_tasks_blocked(0.001)
        leaving.stream.close()
        await trio.testing.wait_all_tasks_blocked(0.01)
        for wait in list(house.echo.waits.values()):
            wait.end()
        assert await staying.receive() == b"park2"
        assert await staying.ask(b"x") == b"x"
        while house.server.connection_count > 1:
            await trio.testing.wait_all_tasks_blocked(0.001)
        assert not house.echo.waits

    await House(transport, Config()).run(story)


async def test_what_was_answered_before_a_broken_request_arrives(transport: Transport) -> None:
    async def story(house: House) -> None:
        client = await house.connect()
        await client.stream.send_parts([b"\0\0\0\4now1\0\0\0\x09malformed\0\0\0\4now2"])
        assert [await client.receive(), await client.receive()] == [b"now1", None]

    await House(transport, Config()).run(story)


async def test_a_busy_connection_does_not_keep_the_others_waiting(transport: Transport) -> None:
    async def story(house: House) -> None:
        busy, other = await house.connect(), await house.connect()

        async def flood() -> None:
            while True:
                await busy.stream.send_parts([b"\0\0\0\4now1" * 100])
                await busy.receive()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            for _ in range(50):
                assert await other.ask(b"now") == b"now"
                assert await other.ask(b"x") == b"x"
            nursery.cancel_scope.cancel()

    await House(transport, Config()).run(story)


async def test_a_request_without_an_answer_leaves_the_next_ones_in_order(transport: Transport) -> None:
    async def story(house: House) -> None:
        client = await house.connect()
        await client.send(b"silent")
        assert await client.ask(b"x") == b"x"

    await House(transport, Config()).run(story)


@pytest.mark.parametrize("word", [b"raise", b"malformed"])
async def test_a_broken_request_ends_its_connection_only(transport: Transport, word: bytes) -> None:
    async def story(house: House) -> None:
        other, client = await house.connect(), await house.connect()
        assert await client.ask(word) is None
        assert await other.ask(b"x") == b"x"
        assert house.server.connection_count == 1

    await House(transport, Config()).run(story)


async def test_an_absurd_size_ends_the_connection(transport: Transport) -> None:
    async def story(house: House) -> None:
        client = await house.connect()
        await client.stream.send_parts([b"\x7f\xff\xff\xff"])
        assert await client.receive() is None

    await House(transport, Config()).run(story)


async def test_more_connections_from_one_address_than_allowed_are_closed(transport: Transport) -> None:
    async def story(house: House) -> None:
        clients = [await house.connect() for _ in range(2)]
        for client in clients:
            assert await client.ask(b"x") == b"x"
        assert await (await house.connect()).receive() is None
        assert house.server.refused_total == 1
        clients[0].stream.close()
        while house.server.connection_count > 1:
            await trio.testing.wait_all_tasks_blocked(0.001)
        assert await (await house.connect()).ask(b"y") == b"y"

    await House(transport, Config(max_connections_per_ip=2)).run(story)


async def test_an_address_may_have_its_own_limit(transport: Transport) -> None:
    async def story(house: House) -> None:
        assert await (await house.connect()).receive() is None

    config = Config()
    config.values["max.connections.per.ip.overrides"] = ["10.0.0.1:5", f"{HOST}:0"]
    await House(transport, config).run(story)


async def test_accepting_pauses_at_the_limit_of_all_connections(transport: Transport) -> None:
    async def story(house: House) -> None:
        first = await house.connect()
        assert await first.ask(b"x") == b"x"
        second = await house.connect()
        await second.send(b"y")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert house.server.connection_count == 1
        first.stream.close()
        assert await second.receive() == b"y"

    await House(transport, Config(max_connections=1)).run(story)


async def test_an_idle_connection_is_closed_and_a_waiting_one_is_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def story(house: House) -> None:
        idle, waiting = await house.connect(), await house.connect()
        await waiting.send(b"hold")
        started = trio.current_time()
        assert await idle.receive() is None
        assert 60 <= trio.current_time() - started <= 70
        await trio.sleep(300)
        house.echo.hold.set()
        assert await waiting.receive() == b"hold"

    await House(MemoryTransport(), Config(connections_max_idle_ms=60_000)).run(story)


async def test_a_client_that_does_not_read_is_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    async def story(house: House) -> None:
        slow, other = await house.connect(), await house.connect()
        await slow.send(b"big1000000")
        assert await other.ask(b"x") == b"x"
        await trio.sleep(50)
        assert await other.ask(b"x") == b"x"
        await trio.sleep(20)
        assert house.server.connection_count == 1
        assert house.echo.sent == 3  # the slow one's slices were given back too
        assert await other.ask(b"x") == b"x"

    await House(MemoryTransport(), Config(connections_max_idle_ms=60_000)).run(story)


async def test_reading_pauses_while_requests_hold_too_many_bytes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def story(house: House) -> None:
        clients = [await house.connect() for _ in range(3)]
        for client in clients:
            assert await client.ask(b"x") == b"x"
        for client in clients:
            await client.send(b"hold")
            await trio.testing.wait_all_tasks_blocked()
        assert house.echo.in_progress == 2
        house.echo.hold.set()
        assert [await client.receive() for client in clients] == [b"hold"] * 3

    await House(MemoryTransport(), Config(queued_max_request_bytes=5)).run(story)


async def test_after_a_stop_no_request_is_in_progress_and_every_connection_has_ended(transport: Transport) -> None:
    async def story(house: House) -> None:
        idle, waiting, behind = [await house.connect() for _ in range(3)]
        assert await idle.ask(b"x") == b"x"
        await waiting.send(b"hold")
        await behind.send(b"park")
        await behind.send(b"x")
        while house.echo.in_progress < 2:
            await trio.testing.wait_all_tasks_blocked(0.01)
        house.listener.close()
        await house.server.stop()
        assert not house.echo.waits
        assert house.echo.in_progress == house.server.connection_count == 0
        assert [await client.receive() for client in (idle, waiting, behind)] == [None] * 3

    await House(transport, Config()).run(story)


async def test_a_server_that_never_served_stops_at_once(transport: Transport) -> None:
    await House(transport, Config()).server.stop()


async def test_running_out_of_descriptors_pauses_accepting_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def story(house: House) -> None:
        first = await house.connect()
        assert await first.ask(b"x") == b"x"
        assert isinstance(house.listener, MemoryListener)
        house.listener.accept_errors += [OSError(errno.EMFILE, "Too many open files")] * 3
        second = await house.connect()
        assert await first.ask(b"x") == b"x"
        assert await second.ask(b"y") == b"y"
        assert not house.listener.accept_errors

    await House(MemoryTransport(), Config()).run(story)
