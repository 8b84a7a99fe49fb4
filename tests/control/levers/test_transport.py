"""A transport whose bytes can be stopped: nothing passes a paused broker or a cut link, and afterwards all is in order.

On real sockets, where the poller serves the connections, and in memory, where each task waits for its own.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.lowlevel
import trio.testing

from kpybroker.broker.network.transport import SocketTransport, Stream, Transport
from kpybroker.control.levers.transport import HeldTransport, Network
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.disk.slice import SharedFile
from tests.support.network.echo_server import HOST, Client, Config, House
from tests.support.network.memory_transport import MemoryTransport

BROKER, OTHER, THIRD = 0, 1, 2
FILE_BYTES = 6_000_000
IDLE_S = 0.01


class Place:
    """The echo server is `BROKER`. `clients` connect without a lever, and `other` is another broker."""

    def __init__(self, inner: Transport) -> None:
        self.clients = inner
        self.network = Network()
        self.broker = HeldTransport(inner, BROKER, self.network)
        self.other = HeldTransport(inner, OTHER, self.network)
        self.house = House(self.broker, Config())

    async def client(self) -> Client:
        return Client(await self.clients.connect(*self.house.listener.address, timeout_s=60))

    async def peer(self, timeout_s: float = 60) -> Client:
        return Client(await self.other.connect(*self.house.listener.address, timeout_s=timeout_s))

    async def run(self, scenario: Callable[[House], Awaitable[None]]) -> None:
        await self.house.run(scenario)


@pytest.fixture(params=[SocketTransport, MemoryTransport])
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.param())


async def nothing_arrives(client: Client) -> None:
    """Once everything has happened that can happen."""
    await trio.testing.wait_all_tasks_blocked(IDLE_S)
    assert client.stream.receive_now(memoryview(bytearray(1))) is None


# --- paused


async def test_a_paused_broker_reads_and_sends_nothing(place: Place) -> None:
    async def scenario(house: House) -> None:
        client = await place.client()
        assert await client.ask(b"now1") == b"now1"
        place.broker.pause()
        await client.send(b"now2")
        await client.send(b"3")
        await nothing_arrives(client)
        assert house.echo.in_progress == 0
        place.broker.resume()
        assert [await client.receive(), await client.receive()] == [b"now2", b"3"]
        assert await client.ask(b"now4") == b"now4"

    await place.run(scenario)


async def test_a_client_can_connect_to_a_paused_broker_and_waits(place: Place) -> None:
    async def scenario(house: House) -> None:
        place.broker.pause()
        client = await place.client()
        await client.send(b"now")
        await nothing_arrives(client)
        assert house.server.connection_count == 0
        place.broker.resume()
        assert await client.receive() == b"now"

    await place.run(scenario)


async def test_a_response_that_is_ready_in_the_meantime_is_sent_afterwards(place: Place) -> None:
    async def scenario(house: House) -> None:
        waiting, parked = await place.client(), await place.client()
        await waiting.send(b"hold")
        await parked.send(b"park")
        while house.echo.in_progress < 2:
            await trio.lowlevel.checkpoint()
        place.broker.pause()
        house.echo.hold.set()
        house.echo.waits[b"park"].end()
        await nothing_arrives(waiting)
        await nothing_arrives(parked)
        place.broker.resume()
        assert await waiting.receive() == b"hold"
        assert await parked.receive() == b"park"
        assert await parked.ask(b"now") == b"now"

    await place.run(scenario)


async def test_a_large_response_stops_in_the_middle_and_goes_on(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(random.Random(1).randbytes(FILE_BYTES))

    async def scenario(house: House) -> None:
        house.echo.file = SharedFile(local_files().open(str(tmp_path / "file")))
        client = await place.client()
        buffer = memoryview(bytearray(65_536))
        await client.send(b"file%d" % FILE_BYTES)
        count = await client.stream.receive_into(buffer)
        client.buffer += buffer[:count]
        place.broker.pause()
        before = len(client.buffer)
        await trio.testing.wait_all_tasks_blocked(IDLE_S)
        while received := client.stream.receive_now(buffer):  # what the sockets have buffered
            client.buffer += buffer[:received]
            await trio.testing.wait_all_tasks_blocked(IDLE_S)
        assert before <= len(client.buffer) < FILE_BYTES
        place.broker.resume()
        assert await client.receive() == (tmp_path / "file").read_bytes()
        while not house.echo.sent:
            await trio.lowlevel.checkpoint()
        house.echo.file.release()

    await place.run(scenario)


@pytest.mark.parametrize("seed", range(6))
async def test_responses_arrive_whole_and_in_order_whenever_it_is_paused(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    words = [b"now%d" % n if chance.random() < 0.7 else b"%d" % n for n in range(150)]
    words += [b"now" + bytes(chance.choice([10, 30_000, 400_000])) for _ in range(4)]
    words += [b"late%d" % n for n in range(10)]
    chance.shuffle(words)
    sent = b"".join(len(word).to_bytes(4, "big") + word for word in words)

    async def scenario(house: House) -> None:
        client = await place.client()

        async def send() -> None:
            left = sent
            while left:
                size = chance.choice([3, 20, 1000, 100_000])
                await client.stream.send_parts([left[:size]])
                left = left[size:]
                await trio.lowlevel.checkpoint()

        async def pause_and_resume() -> None:
            while True:
                place.broker.pause()
                for _ in range(chance.randrange(5)):
                    await trio.lowlevel.checkpoint()
                place.broker.resume()
                for _ in range(chance.randrange(1, 8)):
                    await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pause_and_resume)
            nursery.start_soon(send)
            assert [await client.receive() for _ in words] == words
            nursery.cancel_scope.cancel()

    await place.run(scenario)


async def test_a_paused_broker_closes_nothing_before_it_is_resumed(place: Place) -> None:
    async def scenario(house: House) -> None:
        client, peer = await place.client(), await place.peer()
        await client.ask(b"now")
        place.broker.pause()
        place.other.pause()
        await house.server.stop()
        peer.stream.close()
        await nothing_arrives(client)
        place.broker.resume()
        assert await client.receive() is None

    await place.run(scenario)


async def test_a_paused_broker_that_is_killed_closes_its_connections_and_responds_to_nothing(place: Place) -> None:
    async def scenario(house: House) -> None:
        client = await place.client()
        await client.ask(b"now")
        place.broker.pause()
        await client.send(b"now")
        place.broker.drop()
        await house.server.reset()
        assert await client.receive() is None
        assert house.server.connection_count == 0

    await place.run(scenario)


async def test_what_a_paused_broker_connects_waits(place: Place) -> None:
    async def scenario(house: House) -> None:
        place.other.pause()
        with pytest.raises(TimeoutError):
            await place.peer(timeout_s=0.05)
        async with trio.open_nursery() as nursery:
            connected: list[Client] = []

            async def connect() -> None:
                connected.append(await place.peer())

            nursery.start_soon(connect)
            await trio.testing.wait_all_tasks_blocked()
            assert not connected
            place.other.resume()
        assert await connected[0].ask(b"now") == b"now"

    await place.run(scenario)


# --- cut off


async def test_a_cut_between_brokers_leaves_their_clients_alone(place: Place) -> None:
    async def scenario(house: House) -> None:
        client, peer = await place.client(), await place.peer()
        assert await peer.ask(b"now") == b"now"
        place.network.part([[BROKER], [OTHER, THIRD]])
        assert await client.ask(b"now") == b"now"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, b"x")
            await nothing_arrives(peer)
            nursery.cancel_scope.cancel()
        assert house.echo.sent == 0
        with pytest.raises(TimeoutError):
            await place.peer(timeout_s=0.05)

    await place.run(scenario)


async def test_a_response_that_is_under_way_when_the_network_is_cut_is_lost(place: Place) -> None:
    async def scenario(house: House) -> None:
        peer = await place.peer()
        await peer.send(b"hold")
        while not house.echo.in_progress:
            await trio.lowlevel.checkpoint()
        place.network.part([[BROKER], [OTHER]])
        house.echo.hold.set()
        while not house.echo.sent:
            await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as nursery:
            received: list[bytes | None] = []

            async def receive() -> None:
                received.append(await peer.receive())

            nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked(0.05)
            place.network.heal()
        assert received == [None]
        with pytest.raises(ConnectionResetError):
            peer.stream.send_now(b"x")
        peer.stream.close()
        again = await place.peer()
        assert await again.ask(b"now") == b"now"
        while house.server.connection_count > 1:  # the server has noticed the end of the other one
            await trio.lowlevel.checkpoint()

    await place.run(scenario)


async def test_a_connection_that_waits_is_made_when_the_network_heals(place: Place) -> None:
    async def scenario(house: House) -> None:
        place.network.part([[BROKER], [OTHER]])
        async with trio.open_nursery() as nursery:
            connected: list[Client] = []

            async def connect() -> None:
                connected.append(await place.peer())

            nursery.start_soon(connect)
            await trio.testing.wait_all_tasks_blocked()
            place.network.heal()
        assert await connected[0].ask(b"now") == b"now"

    await place.run(scenario)


async def test_a_task_that_watches_a_connection_learns_that_it_was_cut(place: Place) -> None:
    async def scenario(house: House) -> None:
        peer = await place.peer()
        place.network.part([[BROKER], [OTHER]])
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                with pytest.raises(ConnectionResetError):
                    await peer.stream.watch(lambda: True)

            nursery.start_soon(watch)
            await trio.testing.wait_all_tasks_blocked()
            place.network.heal()

    await place.run(scenario)


@pytest.mark.parametrize(
    ("groups", "apart"),
    [
        ([[0], [1, 2]], {(0, 1), (0, 2)}),
        ([[0, 1], [2]], {(0, 2), (1, 2)}),
        ([[0], [1], [2]], {(0, 1), (0, 2), (1, 2)}),
        ([[0], [1]], {(0, 1)}),
        ([[0, 1, 2]], set()),
    ],
)
def test_who_reaches_whom(groups: list[list[int]], apart: set[tuple[int, int]]) -> None:
    network = Network()
    network.part(groups)
    pairs = {(one, other) for one in range(3) for other in range(3) if one < other}
    assert {pair for pair in pairs if not network.reaches(*pair)} == apart
    assert {pair for pair in pairs if not network.reaches(*reversed(pair))} == apart
    assert network.reaches(None, 0)
    network.heal()
    assert all(network.reaches(*pair) for pair in pairs)


async def test_brokers_are_known_by_where_they_listen_and_by_what_they_have_connected() -> None:
    network, inner = Network(), MemoryTransport()
    first, second = HeldTransport(inner, 0, network), HeldTransport(inner, 1, network)
    address = first.listen(HOST, 9092, 5).address
    other = second.listen(HOST, 9093, 5).address
    assert network.broker_at(*address) == 0
    assert network.broker_at("localhost", other[1]) == 1
    assert network.broker_at(HOST, 9999) is None
    stream: Stream = await second.connect(*address, timeout_s=1)
    assert network.is_peer(*stream.local_address)
    assert not network.is_peer(HOST, 1)
    stream.close()
    assert not network.is_peer(*stream.local_address)
