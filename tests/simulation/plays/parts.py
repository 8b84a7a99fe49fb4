"""What several plays do: one partition, who leads it, links that are cut, and the judgement of what was kept."""

from __future__ import annotations

from compat_tests.faults.check import check
from compat_tests.faults.history import History
from tests.simulation.checks.observer import replicas
from tests.simulation.clients.client import Partition
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.world import World

PLACE: Partition = ("t", 0)


def leader_of(world: World, *, other_than: int | None = None) -> int | None:
    """The broker that leads as far as it knows itself."""
    found = replicas(world, PLACE).items()
    return next((key for key, replica in found if replica.leader is not None and key != other_than), None)


def links(one: str, other: str) -> list[tuple[str, str]]:
    return [(one, other), (other, one)]


def cut(world: World, one: str, other: str) -> None:
    """Both ways."""
    for link in links(one, other):
        world.network.cut(*link)


def is_ahead(world: World, broker_id: int) -> bool:
    """Whether it has what is not committed."""
    replica = replicas(world, PLACE).get(broker_id)
    return replica is not None and replica.online_log().log_end_offset > replica.high_watermark


async def judge(world: World, history: History) -> None:
    """By the last reading."""
    for committed in (False, True):
        reader = Fetcher(world, f"last-{committed}", [PLACE], committed=committed)
        (history.committed if committed else history.log)[PLACE] = await reader.read_all(PLACE)
        reader.close()
    for problem in check(history):
        world.problem(str(problem))
