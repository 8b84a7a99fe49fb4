"""The topology of a Kafka Streams application, as its members send it and as the log keeps it.

A subtopology is a part that shares state: its tasks read the same partition of all its source topics. Repartition and
changelog topics are internal: the coordinator decides how many partitions they have, and has them created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kpybroker.core.streams_group.members import SubtopologyId


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """An internal topic. `partitions` 0: as many as its subtopology needs; `replication_factor` 0: the broker's."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Topics that must have equally many partitions: indexes into the lists of their subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Subtopology:
    """One subtopology. `repartition_sink_topics` are written by it, and read by others."""

    subtopology_id: SubtopologyId
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def all_source_topics(self) -> Iterator[str]:
        """What its tasks read."""
        yield from self.source_topics
        yield from (topic.name for topic in self.repartition_source_topics)

    @property
    def copartitioned(self) -> Iterator[frozenset[str]]:
        """The names of the topics in each copartition group. An index that there is not raises IndexError."""
        for group in self.copartition_groups:
            yield frozenset(
                [self.source_topics[index] for index in group.source_topics]
                + [self.repartition_source_topics[index].name for index in group.repartition_source_topics]
            )


@dataclass(frozen=True)
class Topology:
    """All subtopologies by id, and the epoch that the application gave them."""

    epoch: int
    subtopologies: Mapping[SubtopologyId, Subtopology] = field(default_factory=dict)

    @cached_property
    def source_topics(self) -> Mapping[str, SubtopologyId]:
        """Which subtopology reads a topic; of several, the last."""
        return {
            topic: subtopology_id
            for subtopology_id, subtopology in self.subtopologies.items()
            for topic in subtopology.all_source_topics
        }

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """Every topic that must exist before there are tasks."""
        return frozenset(
            topic
            for subtopology in self.subtopologies.values()
            for topic in (
                *subtopology.all_source_topics,
                *(changelog.name for changelog in subtopology.state_changelog_topics),
            )
        )
