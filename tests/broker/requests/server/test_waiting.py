"""What a connection does without its task: suspended requests, and responses that their client is slow to read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.network.transport import SocketTransport, Transport
from kpybroker.storage.disk.files import read_exactly
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.disk.slice import SharedFile
from tests.support.network.echo_server import Config, House, framed
from tests.support.network.memory_transport import MemoryTransport


@pytest.fixture(params=[SocketTransport, MemoryTransport])
def transport(request: pytest.FixtureRequest) -> Transport:
    made: Transport = request.param()
    return made


@pytest.mark.parametrize("seed", range(10))
async def test_a_suspended_request_is_responded_to_once_whatever_arrives_before(
    transport: Transport, seed: int
) -> None:
    """Whenever its wait ends: before its connection sleeps, while the client reads nothing, more than once."""
    chance = random.Random(seed)
    kinds = [b"park%d", b"late%d", b"now%d", b"%d"]
    words = [[chance.choice(kinds) % (100 * client + n) for n in range(30)] for client in range(4)]
    for number, of_one in enumerate(words):
        of_one[chance.randrange(30)] = b"now%d" % number + bytes(400_000)

    async def scenario(house: House) -> None:
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

    await House(transport, Config()).run(scenario)


async def test_a_suspended_request_is_responded_to_at_its_deadline_and_the_next_one_at_its_own(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(house: House) -> None:
        client, began = await house.connect(), trio.current_time()
        for word, waited_s in [(b"park1/5", 5), (b"park2/30", 35), (b"park3/1", 36), (b"park4/7", 43)]:
            assert await client.ask(word) == word
            assert trio.current_time() - began == pytest.approx(waited_s)
        await client.send(b"park5/100")
        await trio.sleep(50)
        house.echo.waits[b"park5/100"].end()
        assert await client.receive() == b"park5/100"
        assert trio.current_time() - began == pytest.approx(93)

    await House(MemoryTransport(), Config(connections_max_idle_ms=200_000)).run(scenario)


FILE_BYTES = 3_000_000


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SharedFile]:
    """Opened once: every response has released it at the end of each test."""
    (tmp_path / "file").write_bytes(random.Random(7).randbytes(FILE_BYTES))
    shared = SharedFile(local_files().open(str(tmp_path / "file")))
    yield shared
    assert shared.holders == 1
    shared.release()


@pytest.mark.parametrize("seed", range(5))
async def test_large_responses_are_sent_whole_in_order_and_as_their_client_takes_them(
    transport: Transport, file: SharedFile, seed: int
) -> None:
    chance = random.Random(seed)
    content = read_exactly(file.file, FILE_BYTES, 0)

    async def scenario(house: House) -> None:
        house.echo.file = file

        async def talk(pace: int) -> None:
            client = await house.connect()
            kinds = [b"file%d" % chance.randrange(FILE_BYTES), b"now", b"x", b"late%d" % pace]
            words = [chance.choice(kinds) for _ in range(8)]
            at_once = chance.random() < 0.5
            if at_once:
                nursery.start_soon(client.stream.send_parts, [framed(word) for word in words])
            for word in words:
                if not at_once:
                    await client.send(word)
                expected = content[: int(word[4:])] if word.startswith(b"file") else word
                assert await client.receive(pace) == expected

        async with trio.open_nursery() as nursery:
            for pace in (2_000, 65_536, 1_000_000):
                nursery.start_soon(talk, pace)

    await House(transport, Config()).run(scenario)


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_large_response_that_its_client_does_not_read_is_given_up(
    file: SharedFile, leaves: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """When its client leaves, or reads nothing for so long; the others hear nothing of it."""

    async def scenario(house: House) -> None:
        house.echo.file = file
        slow, other = await house.connect(), await house.connect()
        for _ in range(8):  # more than the buffers of both sockets hold
            await slow.send(b"file%d" % FILE_BYTES)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert file.holders == 2
        assert await other.ask(b"now") == b"now"
        if leaves:
            slow.stream.close()
        while house.server.connection_count > 1:
            assert await other.ask(b"now") == b"now"
            await trio.sleep(1)

    await House(SocketTransport(), Config(connections_max_idle_ms=60_000)).run(scenario)


async def test_a_client_that_leaves_while_suspended_leaves_nothing_behind(transport: Transport) -> None:
    """Its request is over by the end of its wait at the latest, as on Kafka, and the others hear nothing of it."""

    async def scenario(house: House) -> None:
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

    await House(transport, Config()).run(scenario)
