"""A static member goes, and says that it comes back: what it has is kept for it for as long as a session."""

from __future__ import annotations

import trio

from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Partition
from tests.simulation.clients.consumer import HEARTBEAT_S, SURE_S, Consumer, ConsumerGroup
from tests.simulation.clients.habits import Habits
from tests.simulation.world import World

PLACES: list[Partition] = [("t", 0), ("t", 1)]


class _Static(Consumer):
    @property
    def count(self) -> int:
        return len(self._owned)

    async def begin(self) -> None:
        self._member_id = f"{self.name}-{self._lives}"
        await self.refresh(PLACES[0][0])

    async def beat(self) -> None:
        await self._beat()

    async def go(self) -> None:
        await self._leave(for_good=False)


async def static_away(world: World) -> None:
    """Of two members one is away for a while, and the other one has its own partition and no other."""
    await world.start()
    administrator = Administrator(world, "administrator")
    await administrator.create_topic("t", len(PLACES), 1)
    group = ConsumerGroup("c", PLACES)
    members = [_Static(world, group, name, Habits(is_static=True)) for name in ("goes", "stays")]
    goes, stays = members
    for member in members:
        await member.begin()
    while [member.count for member in members] != [1, 1]:
        for member in members:
            await member.beat()
        await goes.pause()
    await goes.go()
    until = trio.current_time() + SURE_S / 2
    while trio.current_time() < until:
        await stays.beat()
        if stays.count != 1:
            world.problem("static member: what it has is given away while it is away")
            break
        await trio.sleep(HEARTBEAT_S)
    await goes.begin()
    await goes.beat()
    if not world.problems and goes.count != 1:
        world.problem("static member: it is back, and has not what it had")
    for client in (administrator, *members):
        client.close()
    await world.stop()
