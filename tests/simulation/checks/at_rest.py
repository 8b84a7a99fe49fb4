"""What must be true of a cluster once faults and clients have ended: it has come together."""

from __future__ import annotations

from kpybroker.wire import znodes
from kpybroker.wire.znodes.topics import decode_topic
from tests.simulation.checks.observer import is_left_behind, not_in_sync, replicas, running, states
from tests.simulation.clients.administrator import Operator, TopicState
from tests.simulation.world import World


def unsettled(world: World) -> str | None:
    """What has not converged yet: orders that are pending, partitions that are not in sync, replicas of other lengths,
    and such as no one wants; None: nothing.
    """
    nodes = world.store.image.nodes
    for path in (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_REPLICA_ELECTION):
        if path in nodes:
            return f"{path} is there"
    if znodes.DELETE_TOPICS in nodes and (pending := sorted(nodes[znodes.DELETE_TOPICS].children)):
        return f"topics to be deleted: {pending}"
    if (why := not_in_sync(world)) is not None:
        return why
    known = set()
    for partition, _, state in states(world):
        known.add(partition)
        found = {
            key: one for key, one in replicas(world, partition).items() if not is_left_behind(world, one, key, state)
        }
        ends = {key: (replica.online_log().log_end_offset, replica.high_watermark) for key, replica in found.items()}
        if len({end for end, _ in ends.values()} | {mark for _, mark in ends.values()}) > 1:
            return f"{partition[0]}-{partition[1]} ends and is committed at {ends}, by broker"
        if set(found) != set(state.isr):
            return f"{partition[0]}-{partition[1]} is at {sorted(found)}, and should be at {sorted(state.isr)}"
    for machine in running(world):
        assert machine.broker is not None
        strangers = {
            (replica.topic, replica.index)
            for replica in machine.broker.replicas
            if (machine.broker_id, replica.topic_id, replica.index) not in world.left_behind
        } - known
        if strangers:
            return f"{machine.broker_id} has {sorted(strangers)}, which no one wants"
    return None


def not_as_wanted(world: World, operator: Operator) -> str | None:
    """The first topic that is not as its operator left it."""
    for topic, wanted in operator.wanted.items():
        if (why := _not_as_wanted(world, topic, wanted)) is not None:
            return f"{topic} is not as {operator.name} left it: {why}"
    return None


def _not_as_wanted(world: World, topic: str, wanted: TopicState) -> str | None:
    node = world.store.image.nodes.get(f"{znodes.TOPICS}/{topic}")
    if not wanted.is_known:
        return None
    if (node is not None) != wanted.is_there:
        return "it is there" if node is not None else "it is not there"
    if node is None:
        return None
    assignment = decode_topic(topic, node.data).partitions
    if len(assignment) != wanted.count:
        return f"it has {len(assignment)} partitions, not {wanted.count}"
    for index, brokers in wanted.replicas.items():
        if assignment[index].replicas != brokers:
            return f"partition {index} is at {assignment[index].replicas}, not {brokers}"
    for index in assignment:
        for broker_id, replica in replicas(world, (topic, index)).items():
            found = replica.online_log().config.segment_bytes
            if wanted.segment_bytes is not None and found != int(wanted.segment_bytes):
                return f"{broker_id} has segment.bytes {found} for partition {index}, not {wanted.segment_bytes}"
    return None
