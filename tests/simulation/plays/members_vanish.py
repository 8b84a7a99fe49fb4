"""Members of groups of all kinds end without a word just before their coordinator does: the next one ends sessions.

In a storm others would hide it: each of them that joins or leaves makes the coordinator ask a classic group again.
"""

from __future__ import annotations

import trio

from tests.simulation.checks.leftovers import leftovers
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Partition
from tests.simulation.clients.consumer import Consumer, ConsumerGroup
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.habits import Habits
from tests.simulation.clients.member import Group, Member
from tests.simulation.clients.sharer import ShareGroup, Sharer
from tests.simulation.clients.streamer import Streamer
from tests.simulation.seams.agenda import until
from tests.simulation.world import World

IN_GROUPS = {f"members of {group_id}" for group_id in ("g", "c", "streams", "s")}
PLACES: list[Partition] = [("t", 0), ("t", 1)]
OVER_S = 15.0
"""After which a session is over, and the rebalance that is due to its end."""


async def members_vanish(world: World) -> None:
    """One of each kind, and one static one, on one broker that is killed and started again."""
    await world.start()
    administrator = Administrator(world, "administrator")
    await administrator.create_topic("t", len(PLACES), 1)
    group, consumers, streams = Group("g", PLACES), ConsumerGroup("c", PLACES), ConsumerGroup("streams", PLACES)
    members: list[Fetcher | Sharer] = [
        Member(world, group, "member1", Habits()),
        Member(world, group, "member2", Habits(is_static=True)),
        Consumer(world, consumers, "consumer1", Habits()),
        Consumer(world, consumers, "consumer2", Habits(is_static=True)),
        Streamer(world, streams, "streamer1", Habits()),
        Sharer(world, ShareGroup("s", "t"), "sharer1", Habits()),
    ]
    async with trio.open_nursery() as nursery:
        for member in members:
            nursery.start_soon(member.run)
        await until(
            lambda: {what.split(":")[0] for what in leftovers(world) if what.startswith("members")} == IN_GROUPS
        )
        await administrator.pause(2)
        nursery.cancel_scope.cancel()
    for client in (administrator, *members):
        client.close()
    world.machines[1].kill(power_cut=False)
    await world.machines[1].restart()
    await trio.sleep(OVER_S)
    for left in leftovers(world):
        world.problem(f"left over: {left}")
    await world.stop()
