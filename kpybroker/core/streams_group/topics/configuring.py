"""What a topology means with the topics that exist: tasks of each subtopology, and internal topics that are missing.

As Kafka's InternalTopicManager, 4.3.1: missing source topics are reported first; then repartition topics get as many
partitions as what writes into them has, copartitioned topics equally many, and changelogs as many as their subtopology
has tasks. What an existing topic has is never changed: a topic that differs is reported.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from kpybroker.core.modern_group.values import Topics
from kpybroker.core.streams_group.members import SubtopologyId
from kpybroker.core.streams_group.topics.topology import Subtopology, TopicInfo, Topology
from kpybroker.wire.errors import ErrorCode, KafkaError

SHOWN_TOPICS: Final = 3
"""So many topics are named in the text of a status."""
TASKS_MAX: Final = 100_000
"""A topology with more is not assigned: what a member has is one record, and its next step one slice."""


class StatusCode(IntEnum):
    """Why a group has no tasks, or a member should do something: the numbers are those of StreamsGroupHeartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class Status:
    """A status of a group, with its text for people."""

    code: StatusCode
    detail: str


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology whose internal topics have numbers of partitions; those without any are `is_stateful` False."""

    task_count: int
    subtopology: Subtopology

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have state that is worth a standby task."""
        return bool(self.subtopology.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """Subtopologies by id, in order; None if there are no tasks to give, and `problem` says why.

    With a `problem` of MISSING_INTERNAL_TOPICS there are subtopologies, and the topics to be created by name.
    """

    epoch: int
    subtopologies: Mapping[SubtopologyId, ConfiguredSubtopology] | None
    to_create: Mapping[str, TopicInfo] = field(default_factory=dict)
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be given to members."""
        return self.problem is None


class _Unusable(Exception):
    """The topics do not fit the topology; `status` is what members hear of it."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """The topology with these topics.

    Raises STREAMS_INVALID_TOPOLOGY for one that no topics can satisfy, and UNKNOWN_SERVER_ERROR, as Kafka does, for one
    that contradicts itself: no client makes such.
    """
    counts = _Counts(topics)
    groups = [group for _, one in sorted(topology.subtopologies.items()) for group in _copartitioned(one)]
    try:
        _require_source_topics(topology, topics)
        counts.decided |= _repartition_counts(topology, counts)
        _enforce_copartitioning(topology, groups, counts)
        counts.decided |= {
            changelog.name: _task_count(subtopology, counts)
            for _, subtopology in sorted(topology.subtopologies.items())
            for changelog in subtopology.state_changelog_topics
        }
        configured = {
            subtopology_id: _configured(subtopology, counts)
            for subtopology_id, subtopology in sorted(topology.subtopologies.items())
        }
        _require_few_tasks(configured.values())
        missing = _missing_internal_topics(configured.values(), topics)
    except _Unusable as error:
        return ConfiguredTopology(topology.epoch, None, problem=error.status)
    if not missing:
        return ConfiguredTopology(topology.epoch, configured)
    problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(missing)}")
    return ConfiguredTopology(topology.epoch, configured, missing, problem)


class _Counts:
    """How many partitions a topic has, or, if it does not exist, will have."""

    __slots__ = ("_topics", "decided")

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def find(self, name: str) -> int | None:
        """None if that is not known."""
        topic = self._topics.by_name(name)
        return self.decided.get(name) if topic is None else topic.partition_count

    def of(self, name: str) -> int:
        """Raises UNKNOWN_SERVER_ERROR if that is not known."""
        count = self.find(name)
        if count is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return count


def _copartitioned(subtopology: Subtopology) -> list[frozenset[str]]:
    sources, repartition = len(subtopology.source_topics), len(subtopology.repartition_source_topics)
    for group in subtopology.copartition_groups:
        indexes = [(index, sources) for index in group.source_topics]
        indexes += [(index, repartition) for index in group.repartition_source_topics]
        if any(not 0 <= index < size for index, size in indexes):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return list(subtopology.copartitioned)


def _require_source_topics(topology: Topology, topics: Topics) -> None:
    missing = sorted(
        {
            name
            for subtopology in topology.subtopologies.values()
            for name in subtopology.source_topics
            if topics.by_name(name) is None
        }
    )
    if missing:
        raise _Unusable(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


def _summary(names: Collection[str]) -> str:
    more = len(names) - SHOWN_TOPICS
    return ", ".join(list(names)[:SHOWN_TOPICS]) + (f" and {more} additional topics" if more > 0 else "")


# --- repartition topics


def _repartition_counts(topology: Topology, counts: _Counts) -> dict[str, int]:
    """Those that say how many partitions they want, and each other as many as what writes into it has at most."""
    subtopologies = [one for _, one in sorted(topology.subtopologies.items())]
    found = {
        topic.name: topic.partitions
        for subtopology in subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partitions != 0
    }
    for subtopology, count in _in_order_of_passes(subtopologies, found, counts):
        for sink in subtopology.repartition_sink_topics:
            found.setdefault(sink, count)
    if any(sink not in found for subtopology in subtopologies for sink in subtopology.repartition_sink_topics):
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics. "
            "There may be loops in the topology that cannot be resolved.",
        )
    sources = [topic.name for subtopology in subtopologies for topic in subtopology.repartition_source_topics]
    if any(name not in found for name in sources):
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics, "
            "because a repartition source topic is never used as a sink topic.",
        )
    return found


def _in_order_of_passes(
    subtopologies: Sequence[Subtopology], found: Mapping[str, int], counts: _Counts
) -> Iterator[tuple[Subtopology, int]]:
    """The subtopologies with an input of a known number, which is in `found` or exists, and the largest such number.

    Kafka passes over all of them, in order, until a pass finds nothing new; what is known at that moment counts. Here
    each is looked at once, in the same order: a chain of thousands would be passed over thousands of times.
    """
    readers: dict[str, list[int]] = {}
    for index, subtopology in enumerate(subtopologies):
        for topic in subtopology.repartition_source_topics:
            readers.setdefault(topic.name, []).append(index)
    seen = {index for index, one in enumerate(subtopologies) if _known_inputs(one, found, counts)}
    queue = [(0, index) for index in sorted(seen)]  # by pass and index: a heap
    while queue:
        number, index = heapq.heappop(queue)
        subtopology = subtopologies[index]
        yield subtopology, max(_known_inputs(subtopology, found, counts))
        for sink in subtopology.repartition_sink_topics:
            for reader in readers.pop(sink, ()):
                if reader not in seen:
                    seen.add(reader)
                    heapq.heappush(queue, (number + (reader <= index), reader))


def _known_inputs(subtopology: Subtopology, found: Mapping[str, int], counts: _Counts) -> list[int]:
    known = [found[topic.name] for topic in subtopology.repartition_source_topics if topic.name in found]
    return known + [count for name in subtopology.source_topics if (count := counts.find(name)) is not None]


# --- copartitioned topics


def _enforce_copartitioning(topology: Topology, groups: Iterable[frozenset[str]], counts: _Counts) -> None:
    """Kafka compares the repartition topics of the whole topology whose number is fixed, not only of one group."""
    repartition = {
        topic.name: topic.partitions != 0
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.repartition_source_topics
    }
    fixed = {name: counts.of(name) for name, is_fixed in repartition.items() if is_fixed}
    fixed_counts = set(fixed.values())
    for group in groups:
        if group:
            counts.decided |= _copartition(group, repartition.keys(), fixed, fixed_counts, counts)


def _copartition(
    group: frozenset[str],
    repartition: Collection[str],
    fixed: Collection[str],
    fixed_counts: Collection[int],
    counts: _Counts,
) -> dict[str, int]:
    """What the repartition topics of one group get: what the other topics of it have, who must all have the same."""
    wanted = {name: counts.of(name) for name in group if name in repartition}
    given = {name: counts.of(name) for name in group if name not in repartition}
    if given:
        count = _same(given.values(), given)
    elif fixed:
        count = _same(fixed_counts, wanted)
    else:
        count = max(wanted.values())
    for name, has in sorted(wanted.items()):
        if name in fixed and has != count:
            raise _Unusable(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{has}] of repartition topic [{name}] doesn't match number of partitions "
                f"[{count}] of the source topic.",
            )
    return dict.fromkeys(wanted, count)


def _same(found: Collection[int], shown: Mapping[str, int]) -> int:
    first = next(iter(found))
    if any(count != first for count in found):
        text = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise _Unusable(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{text}}}]",
        )
    return first


# --- tasks, and what is missing


def _task_count(subtopology: Subtopology, counts: _Counts) -> int:
    names = list(subtopology.all_source_topics)
    if not names:
        text = f"No source topics found for subtopology {subtopology.subtopology_id}"
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    return max(map(counts.of, names))


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        _task_count(subtopology, counts),
        replace(
            subtopology,
            state_changelog_topics=tuple(_sized(topic, counts) for topic in subtopology.state_changelog_topics),
            repartition_source_topics=tuple(_sized(topic, counts) for topic in subtopology.repartition_source_topics),
        ),
    )


def _sized(topic: TopicInfo, counts: _Counts) -> TopicInfo:
    partitions = topic.partitions or counts.decided[topic.name]
    if partitions < 1:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return replace(topic, partitions=partitions)


def _require_few_tasks(configured: Iterable[ConfiguredSubtopology]) -> None:
    tasks = sum(one.task_count for one in configured)
    if tasks > TASKS_MAX:
        text = f"The topology has {tasks} tasks, and at most {TASKS_MAX} are assigned."
        raise _Unusable(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, text)


def _missing_internal_topics(configured: Iterable[ConfiguredSubtopology], topics: Topics) -> dict[str, TopicInfo]:
    missing: dict[str, TopicInfo] = {}
    for one in configured:
        for topic in (*one.subtopology.repartition_source_topics, *one.subtopology.state_changelog_topics):
            existing = topics.by_name(topic.name)
            if existing is None:
                missing[topic.name] = topic
            elif existing.partition_count != topic.partitions:
                raise _Unusable(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: "
                    f"expected {topic.partitions}, found {existing.partition_count}",
                )
    return dict(sorted(missing.items()))
