"""A batch that a leader has cut off again is sent again to that leader: it is new to it, and no duplicate."""

from __future__ import annotations

import trio

from compat_tests.faults.history import History
from tests.simulation.checks.observer import is_in_sync
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.producer import Producer
from tests.simulation.plays.parts import PLACE, cut, is_ahead, judge, leader_of, links
from tests.simulation.seams.agenda import until
from tests.simulation.world import World

PRODUCER = "producer1"


async def resend_after_truncation(world: World) -> None:
    """The leader appends a batch, which no follower gets; another one leads, and is out of the producer's reach; the
    first one cuts the batch off, joins the ISR, leads again, and gets the batch once more.
    """
    world.keys = {"min.insync.replicas": "2"}
    await world.start()
    history = History()
    administrator, producer = Administrator(world, "administrator"), Producer(world, history, PRODUCER, [PLACE])
    await administrator.create_topic(PLACE[0], 1, 3)
    await producer.init()
    await producer.produce(PLACE)
    first = leader_of(world)
    assert first is not None
    others = [machine for key, machine in world.machines.items() if key != first]
    machine = world.machines[first]
    async with trio.open_nursery() as nursery:
        for other in others:
            cut(world, machine.host, other.host)
        nursery.start_soon(producer.produce, PLACE)
        await until(lambda: is_ahead(world, first))
        for other in others:
            cut(world, PRODUCER, other.host)
        machine.kill(power_cut=False)
        await until(lambda: leader_of(world) not in (None, first))
        world.network.heal([link for other in others for link in links(machine.host, other.host)])
        await machine.restart()
        await until(lambda: is_in_sync(world))
        assert leader_of(world) != first
        while leader_of(world) != first:
            await administrator.elect_preferred()
            await administrator.pause(1)
    world.network.heal()
    await judge(world, history)
    for client in (administrator, producer):
        client.close()
    await world.stop()
