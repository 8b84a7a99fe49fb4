"""Where members have state, for interactive queries: partitions of source topics by endpoint.

A task's state is of the partitions that it reads. A topic with fewer partitions than there are tasks has its first ones
at a member with more tasks than that, as Kafka counts it.

Each heartbeat may ask for those of all members, so what was found is kept until something that it follows from is
another object.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import Any

from kpybroker.core.streams_group.members import StreamsMember, TaskIds
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.values import EndpointPartitions


@dataclass(frozen=True, slots=True)
class _Found:
    sources: tuple[Any, ...]
    partitions: EndpointPartitions


def endpoint_partitions(group: StreamsGroup, updated: StreamsMember) -> tuple[EndpointPartitions, ...]:
    """Of every member that said where it serves queries, `updated` as it is after its heartbeat.

    Where there is no topology yet, there are no partitions; Kafka has an error of the server there.
    """
    members = [member for member in group.members.values() if member.member_id != updated.member_id]
    return tuple(_found(group, member) for member in (*members, updated) if member.metadata.endpoint is not None)


def _found(group: StreamsGroup, member: StreamsMember) -> EndpointPartitions:
    endpoint, assigned = member.metadata.endpoint, member.current.assigned
    assert endpoint is not None
    sources = (endpoint, assigned, group.configured, group.shared.topics)
    known = group.endpoints.get(member.member_id)
    if isinstance(known, _Found) and all(map(is_, known.sources, sources)):
        return known.partitions
    active = {subtopology_id: frozenset(epochs) for subtopology_id, epochs in assigned.active.items()}
    partitions = EndpointPartitions(
        endpoint, source_partitions(group, active), source_partitions(group, assigned.standby)
    )
    if member.member_id in group.members:
        group.endpoints[member.member_id] = _Found(sources, partitions)
    return partitions


def source_partitions(group: StreamsGroup, tasks: TaskIds) -> dict[str, tuple[int, ...]]:
    """The partitions by topic that tasks read. None where there is no topology that is ready."""
    configured = None if group.configured is None else group.configured.subtopologies
    partitions: dict[str, tuple[int, ...]] = {}
    for subtopology_id, indexes in tasks.items():
        subtopology = (configured or {}).get(subtopology_id)
        for name in () if subtopology is None else subtopology.subtopology.all_source_topics:
            topic = group.shared.topics.by_name(name)
            if topic is not None:
                partitions[name] = tuple(sorted(indexes)[: topic.partition_count])
    return partitions
