"""Topologies and topics for the tests of streams groups."""

from __future__ import annotations

from collections.abc import Mapping

from kpybroker.core.modern_group.values import TopicMetadata
from kpybroker.core.streams_group.topics.topology import CopartitionGroup, Subtopology, TopicInfo, Topology


class SomeTopics:
    """Topics with so many partitions."""

    version = 1

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._topics = {
            name: TopicMetadata(name.encode().ljust(16, b"\0"), name, count) for name, count in counts.items()
        }

    def by_name(self, name: str) -> TopicMetadata | None:
        return self._topics.get(name)

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch, {one.subtopology_id: one for one in subtopologies})


READS = Subtopology("0", ("in",), repartition_sink_topics=("by-key",))
COUNTS = Subtopology(
    "1",
    state_changelog_topics=(TopicInfo("counts", configs=(("cleanup.policy", "compact"),)),),
    repartition_source_topics=(TopicInfo("by-key"),),
    copartition_groups=(CopartitionGroup(repartition_source_topics=(0,)),),
)
COUNTING = topology(READS, COUNTS)
"""An application that counts by a new key: it has a repartition topic and a changelog."""
