"""A flush that ends after its log was cut does not move the recovery point: it would lie behind what is synced."""

from __future__ import annotations

import trio

from compat_tests.faults.history import History
from tests.simulation.checks.observer import replicas
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.producer import Producer
from tests.simulation.plays.parts import PLACE, cut, heal_all_of, is_ahead, isolate, judge, leader_of, others
from tests.simulation.seams.agenda import until
from tests.simulation.world import World

PRODUCER = "producer1"
SLOW_S = 120.0


async def slow_flush(world: World) -> None:
    """A leader that is cut off appends a batch, and takes long to flush it; another one leads, and it cuts its log."""
    world.keys = {"min.insync.replicas": "2"}
    await world.start()
    history = History()
    administrator, producer = Administrator(world, "administrator"), Producer(world, history, PRODUCER, [PLACE])
    await administrator.create_topic(PLACE[0], 1, 3, flush_messages="1")
    await producer.init()
    await producer.produce(PLACE)
    first = leader_of(world)
    assert first is not None
    machine = world.machines[first]
    async with trio.open_nursery() as nursery:
        world.work.slow_of[machine.host] = SLOW_S
        isolate(world, first)
        nursery.start_soon(producer.produce, PLACE)
        await until(lambda: is_ahead(world, first))
        for other in others(world, first):
            cut(world, PRODUCER, other.host)
        world.work.slow_of.clear()  # what has begun is slow
        await until(lambda: leader_of(world, other_than=first) is not None)
        heal_all_of(world, first)
        await until(lambda: not is_ahead(world, first))
        await until(lambda: not world.work.in_progress)
        log = replicas(world, PLACE)[first].online_log()
        if log.recovery_point > log.log_end_offset:
            world.problem(f"recovery point: it is {log.recovery_point} in {log!r}")
        world.network.heal()
    await judge(world, history)
    for client in (administrator, producer):
        client.close()
    await world.stop()
