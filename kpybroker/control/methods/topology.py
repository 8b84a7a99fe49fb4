"""The cluster as a test wants it: brokers that fail, networks that part, leaders that move, followers that lag.

Nothing here responds in place of a broker: leaders move by elections of the controller, the ISR shrinks by a request of
the leader to the controller, and a paused broker is silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Literal

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.errors import ControlError
from kpybroker.control.levers import leadership
from kpybroker.control.levers.handles import LeverHandle, handles_of, keep
from kpybroker.control.levers.topology import Levers, Topology
from kpybroker.control.levers.versions import version_cap
from kpybroker.control.methods.general import broker_status
from kpybroker.control.registry import JSON, methods
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.core.topic_names import (
    GROUP_METADATA_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
    is_internal,
)
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import API_INFO
from kpybroker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.cluster.metadata_cache import PartitionState
    from kpybroker.control.hosted import Hosted


# --- brokers


async def broker_down(hosted: Hosted, broker: int, how: Literal["stop", "kill"] = "stop") -> JSON:
    """Stop a broker in order, or end it as SIGKILL ends a process; return when it has ended.

    A broker that is paused is resumed before it stops. A kill resets its connections and leaves its files as they are,
    but for what `disk_fault` makes a crash lose; its session in the tree ends at once.
    """
    hosted.broker(broker)
    levers = levers_of(hosted, broker)
    if how == "kill":
        levers.kill()
        await hosted.kill_broker(broker)
    else:
        levers.resume()
        await hosted.stop_broker(broker)


async def broker_up(hosted: Hosted, broker: int) -> JSON:
    """Start a broker that is down, with the same id, ports and directories; return when it serves."""
    await hosted.start_broker(broker)
    return broker_status(hosted, broker)


async def add_broker(hosted: Hosted, broker: int | None = None, rack: str | None = None) -> JSON:
    """Start one more broker, configured as the first, on free ports; without an id it gets the next one.

    As with any Kafka, topics cannot be created while some brokers have a rack and others have none.
    """
    added = await hosted.add_broker(broker, rack)
    return broker_status(hosted, added.node_id)


async def remove_broker(hosted: Hosted, broker: int) -> JSON:
    """Stop a broker and forget it. What it leads moves to others; replicas that it has are not moved."""
    if broker in hosted.brokers:
        levers_of(hosted, broker).resume()
    await hosted.remove_broker(broker)
    hosted.part(Topology).forget(broker)


async def pause(hosted: Hosted, broker: int) -> JSON:
    """Let a broker do nothing that others could see, as SIGSTOP does, until `resume`.

    Its connections stay up and nothing passes them. After `zookeeper.session.timeout.ms` its session in the tree ends.
    """
    hosted.broker(broker)
    levers_of(hosted, broker).pause()


async def resume(hosted: Hosted, broker: int) -> JSON:
    """Let a paused broker go on."""
    hosted.broker(broker)
    levers_of(hosted, broker).resume()


async def expire_session(hosted: Hosted, broker: int) -> JSON:
    """End a broker's session in the tree, as ZooKeeper does after its timeout.

    Returns when the broker has registered again, and the cluster has a controller; at once for a paused broker.
    """
    up, levers = hosted.broker(broker), levers_of(hosted, broker)
    assert levers.tree is not None, "a broker that is up has a session"
    before = up.broker_epoch
    await levers.tree.expire()
    if not levers.is_paused:
        await leadership.until(
            lambda: up.broker_epoch != before or None,
            f"broker {broker} has not registered again",
            "see whether it reaches the tree",
        )
        await leadership.controller(hosted)


# --- the network


async def partition_network(hosted: Hosted, groups: list[list[int]], coordination: list[int] | None = None) -> JSON:
    """Cut the network between groups of brokers, until `heal_network`: `[[0], [1, 2]]`. Clients reach all.

    What is sent into the cut vanishes, and new connections time out. `coordination` are the brokers that still reach
    the coordination tree, null: all. The session of one that does not ends after `zookeeper.session.timeout.ms`.
    """
    known = set(hosted.ids)
    listed = [broker for group in groups for broker in group]
    for broker in (*listed, *(coordination or ())):
        hosted.plan(broker)
    if len(set(listed)) != len(listed):
        raise ControlError("partition_network: a broker is in two groups", "name each broker once")
    if len(groups) < 2 and coordination is None:
        others = leadership.listed(known.difference(listed))
        raise ControlError("partition_network: one group is no partition", f"add a group of others: {others}")
    hosted.part(Topology).partition_network(groups, coordination)


async def heal_network(hosted: Hosted) -> JSON:
    """End the partition of the network; connections that were cut are reset."""
    hosted.part(Topology).heal_network()


# --- leaders


async def move_leader(hosted: Hosted, topic: str, partition: int, to: int | None) -> JSON:
    """Elect a replica that is in sync; null: the partition has no leader until it is moved again.

    An election of the controller, in a new leader epoch; the preferred leader stays who it is. Returns when every
    broker knows.
    """
    wanted = TopicPartition(topic, partition)
    states = await leadership.elect(hosted, {wanted: to})
    return _leadership(states[wanted])


async def shuffle_leaders(hosted: Hosted, topic: str | None = None, seed: int = 0) -> JSON:
    """Elect a replica at random, of those in sync, in each partition of a topic; null: of all that are not internal."""
    active = await leadership.controller(hosted)
    if topic is not None:
        leadership.state_of(active, topic, 0)
    random = Random(seed)
    leaders: dict[TopicPartition, int | None] = {}
    for name, partitions in sorted(active.metadata.snapshot.topics.items()):
        if name == topic or (topic is None and not is_internal(name)):
            for index, state in sorted(partitions.items()):
                live = [broker for broker in sorted(state.isr) if broker in hosted.brokers]
                if live:
                    leaders[TopicPartition(name, index)] = random.choice(live)
    states = await leadership.elect(hosted, leaders)
    return {str(partition): _leadership(state) for partition, state in states.items()}


async def move_coordinator(
    hosted: Hosted, to: int | None, group: str | None = None, transactional_id: str | None = None
) -> JSON:
    """Move the coordinator of a group or of a transactional id; null: there is none until it is moved again.

    It is the leader of a partition of an internal topic, which is created if it does not exist. The coordinators of
    other groups in this partition move along.
    """
    if (group is None) == (transactional_id is None):
        raise ControlError("move_coordinator: give a group or a transactional id", "set one of the two")
    key = group if group is not None else transactional_id
    assert key is not None
    topic = GROUP_METADATA_TOPIC_NAME if group is not None else TRANSACTION_STATE_TOPIC_NAME
    active = await leadership.controller(hosted)
    wanted = TopicPartition(topic, coordinator_partition(key, await _internal_topic(active, topic)))
    states = await leadership.elect(hosted, {wanted: to})
    return {"topic": topic, "partition": wanted.partition, **_leadership(states[wanted])}


async def _internal_topic(active: Broker, topic: str) -> int:
    """How many partitions it has, once it exists."""
    if not active.metadata.contains(topic):
        code = (await active.topics.auto_create([topic]))[topic]
        if code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            raise ControlError(f"{topic} cannot be created: {code.name}", "see the log of the broker", status=409)
    return await leadership.until(
        lambda: active.metadata.partition_count(topic), f"{topic} was not created", "see the log of the broker"
    )


# --- followers


async def shrink_isr(hosted: Hosted, topic: str, partition: int, to: list[int]) -> JSON:
    """Leave only these replicas in the ISR, until `remove_fault` of the id that this returns.

    The leader asks the controller, as for followers that lag, and ignores the fetches of the others.
    """
    described = {"topic": topic, "partition": partition, "to": sorted(to)}
    owner = _keep_follower_lever(hosted, {"shrink_isr": described})
    with _removed_on_failure(hosted, owner):
        await leadership.shrink_isr(hosted, owner, TopicPartition(topic, partition), frozenset(to))
    return {"id": owner.id}


async def lag_follower(hosted: Hosted, topic: str, partition: int, broker: int, offset: int | None = None) -> JSON:
    """Let a follower replicate nothing from `offset` on, null: from the log's end, until `remove_fault` of this id.

    The high watermark does not pass the follower while it is in the ISR, so acks=all waits. After
    `replica.lag.time.max.ms` the leader removes it from there.
    """
    described = {"topic": topic, "partition": partition, "broker": broker, "offset": offset}
    owner = _keep_follower_lever(hosted, {"lag_follower": described})
    with _removed_on_failure(hosted, owner):
        end = await leadership.lag_follower(hosted, owner, TopicPartition(topic, partition), broker, offset)
        described["offset"] = end
    return {"id": owner.id, "offset": end}


def _keep_follower_lever(hosted: Hosted, described: dict[str, JSON]) -> LeverHandle:
    """A handle that is the owner of the limits of followers."""
    owner: LeverHandle = keep(hosted, described, lambda: leadership.free(hosted, owner))
    return owner


@contextmanager
def _removed_on_failure(hosted: Hosted, handle: LeverHandle) -> Iterator[None]:
    try:
        yield
    except BaseException:
        handles_of(hosted).remove(handle.id)
        raise


# --- versions


async def cap_versions(
    hosted: Hosted,
    as_version: str | None = None,
    apis: dict[str, list[int] | int | None] | None = None,
    broker: int | None = None,
) -> JSON:
    """Serve clients only what a release of Kafka does, `"2.4"`, and refuse newer versions as it does; null: no cap.

    `apis` are further ranges by the name of an API, `{"Fetch": [0, 11]}`, or its newest version; null: not served.
    `broker` null: all. Connections that exist are closed when they use what is not served. Returns what is served now.
    """
    cap = version_cap(as_version, apis or {})
    caps = hosted.part(Topology).holds.version_caps
    for broker_id in hosted.ids if broker is None else (hosted.plan(broker).broker_id,):
        if cap is None:
            caps.pop(broker_id, None)
        else:
            caps[broker_id] = cap
    served = SERVED if cap is None else cap.listed
    return {API_INFO[key].name: list(versions) for key, versions in sorted(served.items())}


# --- results


def levers_of(hosted: Hosted, broker: int) -> Levers:
    """The levers of a broker. Raises ControlError."""
    hosted.plan(broker)
    try:
        return hosted.part(Topology).levers(broker)
    except KeyError:
        raise ControlError(f"broker {broker} has no levers", "give it its id by broker.id", status=409) from None


def _leadership(state: PartitionState) -> JSON:
    leader = state.leader if state.leader >= 0 else None
    return {"leader": leader, "leader_epoch": state.leader_epoch, "isr": sorted(state.isr)}


METHODS = methods(
    broker_down,
    broker_up,
    add_broker,
    remove_broker,
    pause,
    resume,
    expire_session,
    partition_network,
    heal_network,
    move_leader,
    shuffle_leaders,
    move_coordinator,
    shrink_isr,
    lag_follower,
    cap_versions,
)
