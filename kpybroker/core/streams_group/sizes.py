"""What streams groups cost in memory: estimates in bytes, after those of consumer groups."""

from __future__ import annotations

from typing import Final

from kpybroker.core.modern_group.members import TOPIC_NAME_BYTES, names_bytes, partitions_bytes, texts_bytes
from kpybroker.core.streams_group.members import StreamsMember, StreamsMemberMetadata, Tasks
from kpybroker.core.streams_group.topics.topology import Topology

STREAMS_GROUP_BYTES: Final = 3_000
STREAMS_MEMBER_BYTES: Final = 1_800
"""A member without texts and tasks: its objects, entries of tables, its timers."""
SUBTOPOLOGY_BYTES: Final = 1_500
"""Twice: as it was sent, and configured."""
TOPIC_INFO_BYTES: Final = 600
"""An internal topic, twice too."""


def group_bytes(topology: Topology | None) -> int:
    """What a group takes that has no members."""
    return STREAMS_GROUP_BYTES + (0 if topology is None else topology_bytes(topology))


def topology_bytes(topology: Topology) -> int:
    """What a topology takes, with its internal topics and their configurations."""
    size = 0
    for subtopology in topology.subtopologies.values():
        size += SUBTOPOLOGY_BYTES
        names = (*subtopology.source_topics, *subtopology.source_topic_regex, *subtopology.repartition_sink_topics)
        size += names_bytes(names)
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            size += TOPIC_INFO_BYTES + len(topic.name)
            size += sum(TOPIC_NAME_BYTES + len(key) + len(value) for key, value in topic.configs)
        for group in subtopology.copartition_groups:
            size += SUBTOPOLOGY_BYTES + 8 * (len(group.source_topics) + len(group.repartition_source_topics))
    return size


def member_bytes(member: StreamsMember, target: Tasks) -> int:
    """What a member takes, its tasks included."""
    current = member.current
    kinds = [target.active, target.standby, target.warmup]
    for held in (current.assigned, current.pending_revocation):
        kinds += [held.standby, held.warmup, {name: frozenset(epochs) for name, epochs in held.active.items()}]
    tasks = sum(partitions_bytes(kind.values()) for kind in kinds)
    return metadata_bytes(member.member_id, member.metadata) + tasks


def metadata_bytes(member_id: str, metadata: StreamsMemberMetadata) -> int:
    """What a member takes that has no tasks."""
    texts = texts_bytes(
        member_id,
        metadata.instance_id,
        metadata.rack_id,
        metadata.client_id,
        metadata.client_host,
        metadata.process_id,
        "" if metadata.endpoint is None else metadata.endpoint.host,
    )
    tags = sum(TOPIC_NAME_BYTES + len(key) + len(value) for key, value in metadata.client_tags)
    return STREAMS_MEMBER_BYTES + texts + tags
