"""A single broker that syncs each append: what it has acknowledged is there after a power cut, whatever came before."""

from __future__ import annotations

from compat_tests.faults.history import History
from tests.simulation.checks.observer import replicas
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.producer import Producer
from tests.simulation.plays.parts import PLACE, judge
from tests.simulation.world import World

KEYS = {"log.flush.interval.messages": "1"}
ROUNDS = 8


async def _begin(world: World) -> tuple[History, Producer]:
    world.keys = dict(KEYS)
    await world.start()
    history = History()
    administrator, producer = Administrator(world, "administrator"), Producer(world, history, "producer1", [PLACE])
    await administrator.create_topic(PLACE[0], 1, 1, segment_bytes="16384")
    administrator.close()
    await producer.init()
    await producer.produce(PLACE)
    return history, producer


async def _power_fails(world: World) -> None:
    world.machines[1].kill(power_cut=True)
    await world.machines[1].restart()


async def _end(world: World, history: History, producer: Producer) -> None:
    await judge(world, history)
    producer.close()
    await world.stop()


async def failed_sync(world: World) -> None:
    """A sync fails, so its batch must not be acknowledged before another one has succeeded: then the power fails."""
    history, producer = await _begin(world)
    for _ in range(ROUNDS):
        world.machines[1].disk.failing_syncs = 1
        await producer.produce(PLACE)
        await _power_fails(world)
    await _end(world, history, producer)


async def new_segment(world: World) -> None:
    """The power fails after the first batch of a new segment is acknowledged, when only its file may be synced."""
    history, producer = await _begin(world)
    for _ in range(ROUNDS):
        segments = _segments(world)
        while _segments(world) == segments:
            await producer.produce(PLACE)
        await _power_fails(world)
    await _end(world, history, producer)


def _segments(world: World) -> int:
    replica = replicas(world, PLACE).get(1)
    return 0 if replica is None or replica.log is None else len(replica.log.segments_map)
