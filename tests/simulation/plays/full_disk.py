"""A replica that could not begin, since the disk was full, begins once there is space, without a restart.

Found by seed 37 of the storms: a partition was moved to a broker without space. The controller took the new replica for
offline from then on, and nothing ever made it ask again.
"""

from __future__ import annotations

import trio

from tests.simulation.checks.at_rest import unsettled
from tests.simulation.clients.administrator import Administrator
from tests.simulation.seams.agenda import until
from tests.simulation.world import World

WITHOUT_SPACE_S = 5.0


async def full_disk(world: World) -> None:
    """Topics are made while one broker has no space: all its replicas, and those that it alone has, come up later."""
    await world.start()
    full = world.machines[1]
    full.disk.limit(0)
    administrator = Administrator(world, "administrator")
    with trio.move_on_after(WITHOUT_SPACE_S):
        await administrator.create_topic("everywhere", 3, 3)
    with trio.move_on_after(WITHOUT_SPACE_S):
        await administrator.create_topic("alone", 3, 1)
    assert unsettled(world) is not None
    full.disk.limit(None)
    await until(lambda: unsettled(world) is None)
    administrator.close()
    await world.stop()
