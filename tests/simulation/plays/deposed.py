"""Who is no coordinator or controller any more, and does not know; and orders that arrive once more."""

from __future__ import annotations

from typing import Any

import trio

from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.elect_leaders import ElectLeadersRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from kpybroker.wire.znodes.brokers import decode_number
from tests.simulation.checks.observer import is_in_sync, states
from tests.simulation.clients.administrator import Administrator
from tests.simulation.clients.client import Client, Lost, only_partition
from tests.simulation.plays.parts import (
    PLACE,
    are_registered,
    controller_of,
    cut,
    heal,
    heal_all_of,
    heard,
    isolate,
    lead_again,
    leader_of,
    others,
)
from tests.simulation.seams.agenda import until
from tests.simulation.seams.tree import HOST as TREE
from tests.simulation.world import World

GROUP_ID, COORDINATOR = "g", 0
BEFORE, AFTER = 5, 9
"""Offsets: what is committed, and what a coordinator that is cut off is asked to commit."""
TIMEOUT_S, READS_S = 20.0, 1.0


async def depose_coordinator(world: World) -> None:
    """What the coordinator of a group takes while it is cut off it does not acknowledge, nor report to anyone."""
    await world.start()
    client, reader = Administrator(world, "administrator"), Client(world, "reader")
    await client.create_topic(PLACE[0], 1, 3)
    coordinator = await client.coordinator(GROUP_ID, COORDINATOR)
    while await _commit(client, coordinator, BEFORE) is not ErrorCode.NONE:
        await client.pause()
    await until(lambda: is_in_sync(world))
    isolate(world, coordinator)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_commit_in_vain, world, client, coordinator)
        await trio.sleep(READS_S)
        if await _committed(reader, coordinator) == AFTER:
            world.problem(f"committed offset: {coordinator} reports {AFTER}, which no one else has")
    heal_all_of(world, coordinator)
    await until(lambda: is_in_sync(world))
    for each in (client, reader):
        each.close()
    await world.stop()


async def _commit_in_vain(world: World, client: Client, coordinator: int) -> None:
    try:
        error = await _commit(client, coordinator, AFTER)
    except Lost:
        return
    if error is ErrorCode.NONE:
        world.problem(f"committed offset: {coordinator} acknowledges {AFTER}, which no one else has")


async def _commit(client: Client, broker_id: int, offset: int) -> ErrorCode:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=PLACE[1], committed_offset=offset)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=PLACE[0], partitions=[partition])
    request = OffsetCommitRequest(group_id=GROUP_ID, generation_id_or_member_epoch=-1, topics=[topic])
    response = await client.ask(broker_id, request, 7, TIMEOUT_S)
    return ErrorCode(only_partition(response, "topics", "partitions").error_code)


async def _committed(client: Client, broker_id: int) -> int | None:
    """None: the coordinator does not say."""
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=PLACE[0], partition_indexes=[PLACE[1]])
    try:
        response = await client.ask(broker_id, OffsetFetchRequest(group_id=GROUP_ID, topics=[topic]), 7)
    except Lost:
        return None
    return None if response.error_code else int(only_partition(response, "topics", "partitions").committed_offset)


async def _begin(world: World) -> tuple[Administrator, int]:
    """A client, and who the controller is."""
    await world.start()
    client = Administrator(world, "administrator")
    await client.create_topic(PLACE[0], 1, 3)
    controller = controller_of(world)
    assert controller is not None
    return client, controller


async def depose_controller(world: World) -> None:
    """Its session ends, and another one is elected: when it is registered again it holds no elections any more."""
    client, former = await _begin(world)
    host = world.machines[former].host
    cut(world, host, TREE)
    await until(lambda: controller_of(world) not in (None, former))
    heal(world, host, TREE)
    await until(lambda: are_registered(world, former))
    request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000)
    response = await heard(client, former, request, 2)
    results = [result for topic in response.replica_election_results for result in topic.partition_result]
    errors = {ErrorCode(result.error_code) for result in results}
    if controller_of(world) != former and errors != {ErrorCode.NOT_CONTROLLER}:
        world.problem(f"two controllers: {former} holds an election, {errors}, while {controller_of(world)} is one")
    client.close()
    await world.stop()


async def repeat_former_controller(world: World) -> None:
    """What a former controller has ordered reaches a broker that knows the next one."""
    client, former = await _begin(world)
    epoch = _controller_epoch(world)
    world.machines[former].kill(power_cut=False)
    await until(lambda: controller_of(world) not in (None, former))
    await world.machines[former].restart()
    await until(lambda: is_in_sync(world))
    orders: list[tuple[Any, int]] = [
        (UpdateMetadataRequest(controller_id=former, controller_epoch=epoch), 5),
        (LeaderAndIsrRequest(controller_id=former, controller_epoch=epoch), 2),
        (StopReplicaRequest(controller_id=former, controller_epoch=epoch), 3),
    ]
    for machine in others(world, former):
        for order, version in orders:
            error = ErrorCode((await heard(client, machine.broker_id, order, version)).error_code)
            if error is not ErrorCode.STALE_CONTROLLER_EPOCH:
                world.problem(f"stale order: {type(order).__name__} of {former} to {machine.host}: {error.name}")
    client.close()
    await world.stop()


def _controller_epoch(world: World) -> int:
    return decode_number(world.store.image.nodes[znodes.CONTROLLER_EPOCH].data)


async def repeat_orders(world: World) -> None:
    """A broker that led for one epoch is ordered to do so once more, when another one leads in the next epoch."""
    await world.start()
    client = Administrator(world, "administrator")
    await client.create_at(PLACE[0], (1, 2, 3))
    world.machines[1].kill(power_cut=False)
    await until(lambda: leader_of(world) == 2)
    epoch = _leader_epoch(world)
    await world.machines[1].restart()
    await lead_again(world, client, 1)
    controller = controller_of(world)
    assert controller is not None
    state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        partition_index=PLACE[1],
        controller_epoch=_controller_epoch(world),
        leader=2,
        leader_epoch=epoch,
        isr=[2, 3],
        replicas=[1, 2, 3],
    )
    order = LeaderAndIsrRequest(
        controller_id=controller,
        controller_epoch=_controller_epoch(world),
        topic_states=[LeaderAndIsrRequest.LeaderAndIsrTopicState(topic_name=PLACE[0], partition_states=[state])],
        live_leaders=[
            LeaderAndIsrRequest.LeaderAndIsrLiveLeader(broker_id=2, host_name=world.machines[2].host, port=9092)
        ],
    )
    (found,) = (await heard(client, 2, order, 4)).partition_errors
    if ErrorCode(found.error_code) is ErrorCode.NONE:
        world.problem(f"stale order: 2 leads in epoch {epoch} again, when 1 leads in {_leader_epoch(world)}")
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=-1)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=PLACE[0], partitions=[asked])
    read = only_partition(await heard(client, 1, ListOffsetsRequest(topics=[topic]), 5), "topics", "partitions")
    if ErrorCode(read.error_code) is not ErrorCode.FENCED_LEADER_EPOCH:
        world.problem(f"stale epoch: 1 reads for a client of epoch {epoch}: {ErrorCode(read.error_code).name}")
    client.close()
    await world.stop()


def _leader_epoch(world: World) -> int:
    return next(state.leader_epoch for partition, _, state in states(world) if partition == PLACE)
