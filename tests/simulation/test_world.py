"""A seed is a whole run: the same seed has the same trace, byte for byte, and another seed has another one."""

from __future__ import annotations

import pytest
import trio

from compat_tests.faults.history import History
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Client, Lost
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.producer import Producer
from tests.simulation.scenario import run
from tests.simulation.storm import draw
from tests.simulation.world import World, simulate

PARTITION = ("t", 0)


async def begun(world: World) -> tuple[History, Producer]:
    """Brokers that run, a topic of one partition, and a producer to it."""
    await world.start()
    history = History()
    administrator = Administrator(world, "administrator")
    await administrator.create_topic("t", 1, 1)
    administrator.close()
    producer = Producer(world, history, "producer", [PARTITION])
    await producer.init()
    return history, producer


async def produce_and_read(world: World) -> None:
    """One broker: three batches and what a reader finds of them, over a kill."""
    history, producer = await begun(world)
    for _ in range(2):
        await producer.produce(PARTITION)
    machine = world.machines[1]
    machine.kill(power_cut=False)
    await machine.restart()
    await producer.produce(PARTITION)
    reader = Fetcher(world, "reader", [PARTITION], committed=True)
    found = await reader.read_all(PARTITION)
    assert [stored.record for stored in found] == [ack.record for ack in history.acknowledged[PARTITION]]
    for client in (producer, reader):
        client.close()
    await world.stop()


def test_one_broker_keeps_what_it_acknowledged_and_a_seed_is_the_whole_run() -> None:
    first, again, other = (simulate(seed, produce_and_read) for seed in (1, 1, 2))
    assert first.problems == again.problems == other.problems == []
    assert first.lines == again.lines
    assert first.digest == again.digest != other.digest


def test_a_cluster_under_faults_is_the_seeds_too() -> None:
    storm = draw(3, seconds=20)
    first, again = run(storm), run(storm)
    assert first.lines == again.lines
    assert (first.problems, first.digest) == ([], again.digest)


def test_what_was_not_synced_may_be_lost_with_the_power() -> None:
    """Else the simulated disk would prove nothing: among a few seeds there is one that loses an acknowledged record."""
    lost: list[bool] = []

    async def play(world: World) -> None:
        history, producer = await begun(world)
        await producer.produce(PARTITION)
        world.machines[1].kill(power_cut=True)
        await world.machines[1].restart()
        reader = Fetcher(world, "reader", [PARTITION], committed=False)
        found = await reader.read_all(PARTITION)
        lost.append([stored.record for stored in found] != [ack.record for ack in history.acknowledged[PARTITION]])
        await world.stop()

    for seed in range(6):
        assert simulate(seed, play).problems == []
    assert any(lost)


def test_a_world_that_does_not_end_is_a_problem() -> None:
    async def play(world: World) -> None:
        await trio.sleep_forever()

    assert simulate(1, play, seconds_max=5).problems == ["5.000 no end within 5 simulated seconds"]


def test_a_world_in_which_time_stands_still_is_ended() -> None:
    async def play(world: World) -> None:
        await trio.sleep(5)
        while True:
            await trio.lowlevel.checkpoint()

    (problem,) = simulate(1, play).problems
    assert problem.startswith("5.000 time stands still")


def test_a_broker_that_is_paused_responds_once_it_goes_on() -> None:
    async def play(world: World) -> None:
        await world.start()
        client = Client(world, "client")
        await client.ask(1, ApiVersionsRequest(), 0)
        process = world.machines[1].pause()
        assert process is not None
        with pytest.raises(Lost, match="TooSlowError"):
            await client.ask(1, ApiVersionsRequest(), 0)
        assert world.machines[1].pause() is None
        world.machines[1].go_on(process)
        assert (await client.ask(1, ApiVersionsRequest(), 0)).error_code == 0
        client.close()
        await world.stop()

    assert simulate(1, play).problems == []


def test_a_broker_that_is_paused_can_be_killed_and_its_session_ends() -> None:
    async def play(world: World) -> None:
        await world.start()
        tree = world.machines[1].tree
        assert tree is not None
        world.machines[1].pause()
        await trio.sleep(15)
        assert not tree.inner.connected
        world.machines[1].kill(power_cut=False)
        await world.machines[1].restart()
        await world.stop()

    assert simulate(1, play).problems == []


def test_a_full_disk_refuses_what_is_produced_until_there_is_room() -> None:
    async def play(world: World) -> None:
        _, producer = await begun(world)
        world.machines[1].disk.limit(0)
        with trio.move_on_after(5) as limit:
            await producer.produce(PARTITION)
        assert limit.cancelled_caught
        world.machines[1].disk.limit(None)
        await producer.produce(PARTITION)
        producer.close()
        await world.stop()

    assert simulate(1, play).problems == []


def test_a_broker_that_is_started_while_it_still_stops_is_started_once() -> None:
    """Seed 6020: the storm ended while a broker was about to stop, and two of them ran on one host."""

    async def play(world: World) -> None:
        await world.start()
        machine = world.machines[1]
        with trio.move_on_after(0):
            await machine.stop()
        assert machine.broker is not None
        await machine.start()
        assert machine.starts == 2
        await world.stop()
        assert machine.broker is None

    ended = simulate(1, play)
    assert ended.problems == []
    assert not [line for line in ended.lines if "does not start" in line]
