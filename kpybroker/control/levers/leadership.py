"""Elections and changes of the ISR that a test asks for, by the controller's and the leaders' own procedures.

Each returns when the brokers that can be reached know the outcome, so that what a test does next meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from kpybroker.broker.replication.fetch_visit import UNSEEN
from kpybroker.control.errors import ControlError, did_you_mean
from kpybroker.control.levers.topology import Topology
from kpybroker.core import metadata_version as mv
from kpybroker.core.controller.events import ApiError, DesignatedElection, UncleanLeaderElectionEnable
from kpybroker.core.leader_and_isr import NO_LEADER
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot, PartitionState
    from kpybroker.control.hosted import Hosted

T = TypeVar("T")

WAIT_S_MAX = 10.0
POLL_S = 0.005


async def until(condition: Callable[[], T | None], cause: str, fix: str) -> T:
    """What `condition` returns once it is not None. Raises ControlError after `WAIT_S_MAX`."""
    deadline = trio.current_time() + WAIT_S_MAX
    while (found := condition()) is None:
        if trio.current_time() >= deadline:
            raise ControlError(cause, fix, status=409)
        await trio.sleep(POLL_S)
    return found


def awake(hosted: Hosted) -> list[Broker]:
    """Brokers that are up and not paused."""
    topology = hosted.part(Topology)
    return [broker for broker_id, broker in hosted.brokers.items() if not topology.is_paused(broker_id)]


def active_controller(brokers: Iterable[Broker]) -> Broker | None:
    """The controller among these. One that was paused or cut off may not know yet that it was replaced."""
    active = [broker for broker in brokers if broker.controller.is_active]
    return max(active, key=lambda broker: broker.controller.machine.parts.context.epoch, default=None)


async def controller(hosted: Hosted) -> Broker:
    """The broker that is the controller; waits for an election in progress. Raises ControlError."""

    def active() -> Broker | None:
        return active_controller(awake(hosted))

    return await until(active, "the cluster has no controller", "start or resume a broker, or heal the network")


def knowing(hosted: Hosted, active: Broker) -> list[Broker]:
    """Brokers that learn at once what the controller decides."""
    network = hosted.part(Topology).network
    return [broker for broker in awake(hosted) if network.reaches(active.node_id, broker.node_id)]


def state_of(active: Broker, topic: str, partition: int) -> PartitionState:
    """A partition as the controller has it. Raises ControlError for one that does not exist."""
    topics = active.metadata.snapshot.topics
    if topic not in topics:
        raise ControlError(f"there is no topic `{topic}`", did_you_mean(topic, topics), status=404)
    state = active.metadata.partition(topic, partition)
    if state is None:
        raise ControlError(
            f"there is no partition {partition} of {topic}", f"give 0 to {len(topics[topic]) - 1}", status=404
        )
    return state


async def wait_known(hosted: Hosted, partition: TopicPartition, condition: Callable[[PartitionState], bool]) -> None:
    """Return once every broker that can know has the partition in this state, or after `WAIT_S_MAX`."""

    def is_known(snapshot: MetadataSnapshot) -> bool:
        state = snapshot.partition(*partition)
        return state is not None and condition(state)

    for broker in knowing(hosted, await controller(hosted)):
        await broker.metadata.wait_until(is_known, WAIT_S_MAX)


# --- leaders


async def elect(hosted: Hosted, leaders: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, PartitionState]:
    """Make each of these the leader; None: leave the partition without one. Raises ControlError if one cannot be."""
    active = await controller(hosted)
    for partition, leader in leaders.items():
        _check_may_lead(hosted, state_of(active, *partition), partition, leader)
    leaderless = hosted.part(Topology).holds.leaderless
    for partition, leader in leaders.items():
        (leaderless.add if leader is None else leaderless.discard)(partition)
    wanted = {partition: NO_LEADER if leader is None else leader for partition, leader in leaders.items()}
    for partition, error in (await _designate(hosted, wanted)).items():
        if error.code is not ErrorCode.NONE:
            raise ControlError(f"{partition}: no election: {error.text}", "look into the log of the broker", status=409)
    for partition, leader_id in wanted.items():
        await wait_known(hosted, partition, partial(_is_led_by, leader_id))
    active = await controller(hosted)
    return {partition: state_of(active, *partition) for partition in leaders}


def _is_led_by(leader: int, state: PartitionState) -> bool:
    return state.leader == leader


def _check_may_lead(hosted: Hosted, state: PartitionState, partition: TopicPartition, leader: int | None) -> None:
    if leader is None:
        return
    if leader not in state.replicas:
        raise ControlError(
            f"broker {leader} has no replica of {partition}", f"give one of {listed(state.replicas)}", status=409
        )
    hosted.broker(leader)
    if leader not in state.isr:
        raise ControlError(
            f"broker {leader} is not in the ISR of {partition}, which is {listed(state.isr)}",
            "wait until it has caught up, or give one of these",
            status=409,
        )


async def _designate(hosted: Hosted, leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, ApiError]:
    while True:
        active = await controller(hosted)
        results: dict[TopicPartition, ApiError] = {}
        try:
            results = await active.controller.ask(DesignatedElection(leaders))
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
        if results and all(result.code is not ErrorCode.NOT_CONTROLLER for result in results.values()):
            return results
        await trio.sleep(POLL_S)


async def elect_any(hosted: Hosted, partitions: Collection[TopicPartition]) -> None:
    """End the lack of a leader: the first live replica of the ISR leads, if there is one."""
    hosted.part(Topology).holds.leaderless.difference_update(partitions)
    if partitions and awake(hosted):
        active = await controller(hosted)
        for topic in {partition.topic for partition in partitions}:
            await active.controller.ask(UncleanLeaderElectionEnable(topic))  # elects wherever a leader is missing


# --- followers


async def shrink_isr(hosted: Hosted, owner: object, partition: TopicPartition, isr: frozenset[int]) -> None:
    """Remove all others from the ISR, as the leader does with those that lag, and ignore their fetches from now on."""
    leader, state = await leader_of(hosted, partition)
    if leader.node_id not in isr:
        raise ControlError(f"broker {leader.node_id} leads {partition}", "keep it in the ISR, or move the leader first")
    if not isr.issubset(state.isr):
        raise ControlError(f"the ISR of {partition} is {listed(state.isr)}", "give some of these", status=409)
    holds = hosted.part(Topology).holds
    holds.limit(owner, {(*partition, broker_id): UNSEEN for broker_id in state.replicas if broker_id not in isr})

    def has_shrunk() -> bool | None:
        found = leader.replicas.partition(*partition)
        if found is None or found.leader is None or found.isr == isr:
            return True
        if found.leader.pending is None:
            for broker_id, follower in found.leader.followers.items():
                if broker_id not in isr:
                    follower.was_long_ago()  # or the high watermark waits for it as for one that is about to join
            leader.replicas.change_isr(found, found.leader.propose(found.isr & isr))
        return None

    await until(has_shrunk, f"the ISR of {partition} has not changed", "see whether its leader reaches the controller")
    protocol = mv.parse(leader.config.get_str("inter.broker.protocol.version"))
    if mv.is_alter_partition_supported(protocol):  # before, brokers learn of it seconds later
        await wait_known(hosted, partition, lambda state: set(state.isr) == isr)


async def lag_follower(
    hosted: Hosted, owner: object, partition: TopicPartition, broker_id: int, offset: int | None
) -> int:
    """Let a follower have no batch that reaches `offset` (None: what is appended from now on); the offset."""
    leader, state = await leader_of(hosted, partition)
    if broker_id == leader.node_id or broker_id not in state.replicas:
        others = [replica for replica in state.replicas if replica != leader.node_id]
        raise ControlError(f"broker {broker_id} does not follow {partition}", f"give one of {listed(others)}")
    if offset is None:
        log = leader.replicas.hosted(*partition).online_log()
        offset = log.log_end_offset
    hosted.part(Topology).holds.limit(owner, {(*partition, broker_id): offset})
    return offset


def free(hosted: Hosted, owner: object) -> None:
    """Let the followers that `owner` has held back catch up."""
    for topic, partition, _ in hosted.part(Topology).holds.free(owner):
        for broker in hosted.brokers.values():
            found = broker.replicas.partition(topic, partition)
            if found is not None:
                found.notify(0)


async def undo_all(hosted: Hosted) -> None:
    """Resume what is paused, heal the network, serve all versions, and elect leaders where there must be none."""
    topology = hosted.part(Topology)
    topology.heal_network()
    topology.resume_all()
    topology.uncap_versions()
    await elect_any(hosted, set(topology.holds.leaderless))


async def leader_of(hosted: Hosted, partition: TopicPartition) -> tuple[Broker, PartitionState]:
    """The broker that leads it. Raises ControlError."""
    state = state_of(await controller(hosted), *partition)
    if state.leader == NO_LEADER:
        raise ControlError(f"{partition} has no leader", "move_leader to one of its replicas first", status=409)
    return hosted.broker(state.leader), state


def listed(ids: Iterable[int]) -> str:
    """Broker ids in an error."""
    return ", ".join(map(str, sorted(ids)))
