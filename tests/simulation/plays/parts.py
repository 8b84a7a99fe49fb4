"""What several plays do: one partition, who leads it, links that are cut, and the judgement of what was kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat_tests.faults.check import check
from compat_tests.faults.history import History
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.schema import Message
from kpybroker.wire.znodes.brokers import decode_controller
from tests.simulation.checks.observer import is_in_sync, replicas, states
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Client, Lost, Partition, only_partition
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.seams.agenda import until
from tests.simulation.seams.tree import HOST as TREE
from tests.simulation.world import Machine, World

PLACE: Partition = ("t", 0)
TIMEOUT_MS = 2000
PRODUCES = 11
"""The version of Produce, which adds no partition to a transaction."""


# --- who is what


def leader_of(world: World, *, other_than: int | None = None) -> int | None:
    """The broker that leads as far as it knows itself."""
    found = replicas(world, PLACE).items()
    return next((key for key, replica in found if replica.leader is not None and key != other_than), None)


def isr_of(world: World) -> set[int]:
    """As the tree has it."""
    return next((set(state.isr) for partition, _, state in states(world) if partition == PLACE), set())


def controller_of(world: World) -> int | None:
    """As the tree has it."""
    node = world.store.image.nodes.get(znodes.CONTROLLER)
    return None if node is None else decode_controller(node.data)


def are_registered(world: World, *broker_ids: int) -> bool:
    """Whether they have sessions with the tree."""
    ids = world.store.image.nodes[znodes.BROKER_IDS].children
    return {str(broker_id) for broker_id in broker_ids} <= set(ids)


def is_ahead(world: World, broker_id: int) -> bool:
    """Whether it has what is not committed."""
    replica = replicas(world, PLACE).get(broker_id)
    return replica is not None and replica.online_log().log_end_offset > replica.high_watermark


def end_of(world: World, broker_id: int) -> int:
    """Of its log."""
    return replicas(world, PLACE)[broker_id].online_log().log_end_offset


def others(world: World, broker_id: int) -> list[Machine]:
    return [machine for key, machine in world.machines.items() if key != broker_id]


# --- links


def links(one: str, other: str) -> list[tuple[str, str]]:
    return [(one, other), (other, one)]


def cut(world: World, one: str, other: str) -> None:
    """Both ways."""
    for link in links(one, other):
        world.network.cut(*link)


def heal(world: World, one: str, other: str) -> None:
    world.network.heal(links(one, other))


def isolate(world: World, broker_id: int) -> None:
    """From all other brokers and the tree; clients reach it."""
    host = world.machines[broker_id].host
    for other in (*(machine.host for machine in others(world, broker_id)), TREE):
        cut(world, host, other)


def heal_all_of(world: World, broker_id: int) -> None:
    """After `isolate`."""
    host = world.machines[broker_id].host
    for other in (*(machine.host for machine in others(world, broker_id)), TREE):
        heal(world, host, other)


# --- what happens


async def restart_all(world: World, machines: Iterable[Machine]) -> None:
    """After they were killed; returns when all brokers are in sync."""
    for machine in machines:
        await machine.restart()
    await until(lambda: is_in_sync(world))


async def lead_again(world: World, administrator: Administrator, broker_id: int) -> None:
    """The first of the replicas leads, once it is in sync."""
    await until(lambda: is_in_sync(world))
    while leader_of(world) != broker_id:
        await administrator.elect_preferred()
        await administrator.pause(1)


async def heard(client: Client, broker_id: int, request: Message, version: int) -> Any:
    """The response of that broker; asked again while there is none."""
    while True:
        try:
            return await client.ask(broker_id, request, version)
        except Lost:
            await client.pause()


async def write(
    client: Client, broker_id: int, batch: bytes, *, acks: int = -1, transactional_id: str | None = None
) -> ErrorCode:
    """Send a batch once, to that broker. Raises `Lost`."""
    data = ProduceRequest.PartitionProduceData(index=PLACE[1], records=batch)
    topic = ProduceRequest.TopicProduceData(name=PLACE[0], partition_data=[data])
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])
    found = only_partition(await client.ask(broker_id, request, PRODUCES), "responses", "partition_responses")
    return ErrorCode(found.error_code)


async def judge(world: World, history: History) -> None:
    """By the last reading."""
    for committed in (False, True):
        reader = Fetcher(world, f"last-{committed}", [PLACE], committed=committed)
        (history.committed if committed else history.log)[PLACE] = await reader.read_all(PLACE)
        reader.close()
    for problem in check(history):
        world.problem(str(problem))
