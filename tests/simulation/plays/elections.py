"""Who may lead, who may be in sync, and what a leader has when it begins."""

from __future__ import annotations

import trio

from compat_tests.faults.history import History, Record
from kpybroker.wire.records.builder import BatchFields, build_batch
from tests.simulation.checks.observer import is_in_sync, replicas, running
from tests.simulation.checks.steps import Steps
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.producer import Producer
from tests.simulation.plays.parts import (
    PLACE,
    are_registered,
    controller_of,
    cut,
    end_of,
    heal_all_of,
    isolate,
    isr_of,
    judge,
    lead_again,
    leader_of,
    others,
    restart_all,
    write,
)
from tests.simulation.seams.agenda import until
from tests.simulation.seams.clock import EPOCH_MS
from tests.simulation.world import Machine, World

PRODUCER = "producer1"
WRONG_S = 30.0
"""So long a mutant is given to do what a broker must not."""
SLOW_S = 5.0
LOOK_S = 0.01


class _Scene:
    """One partition, a producer and an administrator; what every step has to keep is looked at."""

    def __init__(self, world: World, **keys: str) -> None:
        self.world = world
        world.keys = keys
        self.history = History()
        self.steps = Steps(world, unclean=None)
        self.administrator = Administrator(world, "administrator")
        self.producer = Producer(world, self.history, PRODUCER, [PLACE])

    async def begin(self, *assignment: int) -> None:
        trio.lowlevel.add_instrument(self.steps)
        if not running(self.world):
            await self.world.start()
        await self.administrator.create_at(PLACE[0], assignment)
        await self.producer.init()
        await self.producer.produce(PLACE)

    async def write_alone(self, broker_id: int) -> None:
        """A batch that only this leader is asked to have."""
        batch = bytes(build_batch([(None, Record("alone", 0).value().encode(), EPOCH_MS)], BatchFields()))
        await write(self.administrator, broker_id, batch, acks=1)

    async def end(self) -> None:
        self.world.network.heal()
        await until(lambda: is_in_sync(self.world))
        self.steps.compare()
        await judge(self.world, self.history)
        for client in (self.administrator, self.producer):
            client.close()
        await self.world.stop()


async def lead_from_behind(world: World) -> None:
    """A follower falls behind, and the ISR goes on without it; then all who are in it die. It must not lead."""
    scene = _Scene(world)
    await scene.begin(1, 2, 3)
    behind = world.machines[3]
    behind.kill(power_cut=False)
    await until(lambda: isr_of(world) == {1, 2})
    await scene.producer.produce(PLACE)
    dead = others(world, 3)
    for machine in dead:
        machine.kill(power_cut=False)
    await until(lambda: not are_registered(world, 1) and not are_registered(world, 2))
    await behind.restart()
    with trio.move_on_after(WRONG_S):
        await until(lambda: leader_of(world) == 3)
    await restart_all(world, dead)
    await scene.end()


async def fetch_without_responses(world: World) -> None:
    """A follower that is behind asks its leader, whose responses are late. That does not bring it into the ISR: not
    though it has all that its new leader knows to be committed, which is less than what is.
    """
    scene = _Scene(world)
    await world.start()
    second = _controller(world)
    first, behind, fourth = others(world, second.broker_id)
    await scene.begin(first.broker_id, second.broker_id, behind.broker_id, fourth.broker_id)
    behind.kill(power_cut=False)
    await until(lambda: isr_of(world) == {first.broker_id, second.broker_id, fourth.broker_id})
    await scene.producer.produce(PLACE)
    cut(world, second.host, fourth.host)  # so that the second one does not hear how far both are
    first.kill(power_cut=False)
    await until(lambda: leader_of(world) == second.broker_id)
    world.network.slow(second.host, behind.host, SLOW_S)
    await behind.restart()
    with trio.move_on_after(WRONG_S):
        await until(lambda: behind.broker_id in isr_of(world), LOOK_S)
    second.kill(power_cut=False)
    await until(lambda: leader_of(world) is not None)
    world.network.heal()
    await restart_all(world, (first, second))
    await scene.end()


async def lead_without_appending(world: World) -> None:
    """The second one leads, and appends nothing; then the third one does, which has a batch of the first one's that
    the second never got. What the second notes of its own epoch contradicts that.
    """
    scene = _Scene(world)
    await world.start()
    second = _controller(world)
    first, third = others(world, second.broker_id)
    await scene.begin(first.broker_id, second.broker_id, third.broker_id)
    cut(world, first.host, second.host)
    await scene.write_alone(first.broker_id)
    await until(lambda: end_of(world, third.broker_id) > end_of(world, second.broker_id), LOOK_S)
    cut(world, second.host, third.host)
    first.kill(power_cut=False)
    await until(lambda: leader_of(world) == second.broker_id)
    isolate(world, second.broker_id)
    await until(lambda: leader_of(world, other_than=second.broker_id) == third.broker_id)
    world.network.heal()
    await scene.producer.produce(PLACE)
    await restart_all(world, [first])
    await scene.end()


async def restart_with_a_tail(world: World) -> None:
    """A leader that was cut off is killed, with a tail that no one else has. It does not take that for committed."""
    scene = _Scene(world)
    await scene.begin(1, 2, 3)
    machine = world.machines[1]
    isolate(world, 1)
    await scene.write_alone(1)
    await until(lambda: leader_of(world, other_than=1) is not None)
    await scene.producer.produce(PLACE)
    machine.kill(power_cut=False)
    heal_all_of(world, 1)
    for other in others(world, 1):
        world.network.slow(other.host, machine.host, SLOW_S)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(restart_all, world, [machine])
        while nursery.child_tasks:
            scene.steps.compare()
            await trio.sleep(LOOK_S)
    await scene.end()


async def acknowledge_alone(world: World) -> None:
    """A leader that is cut off from everything but its producer waits for the ISR for as long as that lasts."""
    scene = _Scene(world)
    await scene.begin(1, 2, 3)
    isolate(world, 1)
    for machine in others(world, 1):
        cut(world, PRODUCER, machine.host)
    with trio.move_on_after(WRONG_S):
        await scene.producer.produce(PLACE)
    heal_all_of(world, 1)
    await lead_again(world, scene.administrator, 1)
    await scene.end()


async def look_at_epochs(world: World) -> None:
    """Who has ended in order knows every leader epoch of its batches when it starts again."""
    scene = _Scene(world)
    await scene.begin(1, 2, 3)
    world.machines[1].kill(power_cut=False)
    await until(lambda: leader_of(world) == 2)
    await scene.producer.produce(PLACE)
    await restart_all(world, [world.machines[1]])
    before = _epochs(world, 3)
    assert len(before) > 1
    await world.machines[3].stop()
    await restart_all(world, [world.machines[3]])
    if (after := _epochs(world, 3)) != before:
        world.problem(f"epochs: 3 had {before}, and after its restart {after}")
    await scene.end()


def _controller(world: World) -> Machine:
    broker_id = controller_of(world)
    assert broker_id is not None
    return world.machines[broker_id]


def _epochs(world: World, broker_id: int) -> list[tuple[int, int]]:
    entries = replicas(world, PLACE)[broker_id].online_log().epochs.entries
    return [(entry.epoch, entry.start_offset) for entry in entries]
