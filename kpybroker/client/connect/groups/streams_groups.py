"""Streams groups (KIP-1071) as StreamsGroupDescribe has them: topology, epochs, and the tasks of each member."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, check
from kpybroker.client.connect.groups import listing
from kpybroker.client.connect.groups.listing import ABSENT, STREAMS
from kpybroker.client.connect.groups.raw_groups import Places, RawGroup, RawMember
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.streams_group_describe import StreamsGroupDescribeRequest

ASSIGNOR: Final = "sticky"
"""The only one that there is; the protocol does not say it."""


class Tasks(NamedTuple):
    """Tasks by their names, such as 0_1: a subtopology and a partition."""

    active: list[str]
    standby: list[str]
    warmup: list[str]


class StreamsMember(NamedTuple):
    """What only a member of a streams group has. `endpoint` is where it serves queries; "" where it does not."""

    process_id: str
    endpoint: str
    topology_epoch: int
    tasks: Tasks
    target_tasks: Tasks
    is_classic: bool


class Subtopology(NamedTuple):
    """Topics of a part of the application whose tasks are given out together."""

    name: str
    source_topics: list[str]
    repartition_topics: list[str]
    changelog_topics: list[str]


class StreamsGroup(NamedTuple):
    """What only a streams group has. Without a topology that is ready, there are no subtopologies."""

    topology_epoch: int | None
    subtopologies: list[Subtopology]


def describe(wire: WireCluster, names: Iterable[str]) -> dict[str, RawGroup | CommandError]:
    """Those of these names that are streams groups. Raises CommandError if the cluster cannot be reached."""
    return listing.described(wire, STREAMS, names, _described)


def _described(cluster: WireCluster, name: str) -> RawGroup | None:
    broker = cluster.coordinator(name, GROUP)
    request = StreamsGroupDescribeRequest(group_ids=[name])
    (group,) = broker.request(ApiKey.STREAMS_GROUP_DESCRIBE, request).groups
    if group.error_code in ABSENT:
        return None
    check(group.error_code, group.error_message)
    topology = group.topology
    parts = [_subtopology(one) for one in (topology.subtopologies if topology is not None else None) or ()]
    return RawGroup(
        group.group_state,
        STREAMS,
        ASSIGNOR,
        -1 if broker.node_id is None else broker.node_id,
        [_member(one, parts) for one in group.members],
        group.group_epoch,
        group.assignment_epoch,
        StreamsGroup(None if topology is None else topology.epoch, parts),
    )


def _subtopology(one: Any) -> Subtopology:
    return Subtopology(
        one.subtopology_id,
        list(one.source_topics),
        [topic.name for topic in one.repartition_source_topics],
        [topic.name for topic in one.state_changelog_topics],
    )


def _member(one: Any, parts: Iterable[Subtopology]) -> RawMember:
    endpoint = one.user_endpoint
    return RawMember(
        one.member_id,
        one.instance_id,
        one.client_id,
        one.client_host,
        _places(one.assignment, parts),
        None,
        member_epoch=one.member_epoch,
        rack_id=one.rack_id,
        protocol="classic" if one.is_classic else STREAMS,
        streams=StreamsMember(
            one.process_id,
            "" if endpoint is None else f"{endpoint.host}:{endpoint.port}",
            one.topology_epoch,
            _tasks(one.assignment),
            _tasks(one.target_assignment),
            one.is_classic,
        ),
    )


def _places(assignment: Any, parts: Iterable[Subtopology]) -> Places:
    """What the active tasks read; a topic may have fewer partitions than its subtopology has tasks."""
    topics = {part.name: [*part.source_topics, *part.repartition_topics] for part in parts}
    return sorted(
        (topic, partition)
        for tasks in assignment.active_tasks
        for topic in topics.get(tasks.subtopology_id, ())
        for partition in tasks.partitions
    )


def _tasks(assignment: Any) -> Tasks:
    kinds = (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)
    return Tasks(
        *([f"{one.subtopology_id}_{number}" for one in kind for number in sorted(one.partitions)] for kind in kinds)
    )
