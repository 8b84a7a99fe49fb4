"""What a topology means with the topics that exist."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology, StatusCode, configure
from kpybroker.core.streams_group.topics.topology import CopartitionGroup, Subtopology, TopicInfo, Topology
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.core.streams_group.topologies import COUNTING, COUNTS, READS, SomeTopics, topology

WRONG = StatusCode.INCORRECTLY_PARTITIONED_TOPICS


def configured(of: Topology, **counts: int) -> ConfiguredTopology:
    """Names of topics have `-` where Python has `_`."""
    return configure(of, SomeTopics({name.replace("_", "-"): count for name, count in counts.items()}))


def problem(of: Topology, **counts: int) -> tuple[StatusCode, str]:
    found = configured(of, **counts)
    assert found.problem is not None
    assert not found.is_ready
    return found.problem.code, found.problem.detail


def sizes(found: ConfiguredTopology) -> dict[str, int]:
    return {name: topic.partitions for name, topic in found.to_create.items()}


def test_internal_topics_have_as_many_partitions_as_what_is_written_into_them() -> None:
    found = configured(COUNTING, **{"in": 3})
    assert problem(COUNTING, **{"in": 3}) == (
        StatusCode.MISSING_INTERNAL_TOPICS,
        "Internal topics are missing: by-key, counts",
    )
    assert sizes(found) == {"by-key": 3, "counts": 3}
    assert found.to_create["counts"].configs == (("cleanup.policy", "compact"),)
    assert found.subtopologies is not None
    assert {name: one.task_count for name, one in found.subtopologies.items()} == {"0": 3, "1": 3}
    assert [one.is_stateful for one in found.subtopologies.values()] == [False, True]


def test_with_all_topics_it_is_ready() -> None:
    found = configured(COUNTING, by_key=3, counts=3, **{"in": 3})
    assert found.is_ready
    assert not found.to_create


def test_an_existing_repartition_topic_keeps_its_partitions() -> None:
    """It is in a copartition group, as Kafka Streams sends it: then what exists counts, not what would be made."""
    found = configured(COUNTING, by_key=2, **{"in": 3})
    assert sizes(found) == {"counts": 2}


def test_an_existing_internal_topic_of_another_size_is_reported() -> None:
    assert problem(COUNTING, by_key=3, counts=2, **{"in": 3}) == (
        WRONG,
        "Existing topic counts has different number of partitions: expected 3, found 2",
    )
    assert configured(COUNTING, by_key=3, counts=2, **{"in": 3}).subtopologies is None


def test_missing_source_topics_are_counted_over_three() -> None:
    many = topology(Subtopology("0", ("e", "d", "c", "b", "a")))
    assert problem(many, e=1) == (
        StatusCode.MISSING_SOURCE_TOPICS,
        "Source topics a, b, c and 1 additional topics are missing.",
    )
    assert problem(topology(Subtopology("0", ("a",)))) == (
        StatusCode.MISSING_SOURCE_TOPICS,
        "Source topics a are missing.",
    )


def test_copartitioned_source_topics_must_be_alike() -> None:
    joined = topology(Subtopology("0", ("a", "b"), copartition_groups=(CopartitionGroup((0, 1)),)))
    assert problem(joined, a=1, b=2) == (
        WRONG,
        "Following topics do not have the same number of partitions: [{a=1, b=2}]",
    )
    assert configured(joined, a=2, b=2).is_ready


@pytest.mark.parametrize(("fixed", "expected"), [(0, {"by-key": 4}), (4, {"by-key": 4})])
def test_a_repartition_topic_follows_the_topic_that_it_is_joined_with(fixed: int, expected: dict[str, int]) -> None:
    joined = topology(READS, joining(fixed))
    assert sizes(configured(joined, table=4, **{"in": 3})) == expected


def test_a_repartition_topic_of_a_fixed_size_does_not_follow() -> None:
    assert problem(topology(READS, joining(3)), table=4, **{"in": 3}) == (
        WRONG,
        "Number of partitions [3] of repartition topic [by-key] doesn't match number of partitions [4] of the source "
        "topic.",
    )


def joining(partitions: int) -> Subtopology:
    """Reads a table and a repartition topic together."""
    return Subtopology(
        "1",
        ("table",),
        repartition_source_topics=(TopicInfo("by-key", partitions),),
        copartition_groups=(CopartitionGroup((0,), (), (0,)),),
    )


def test_two_repartition_topics_of_fixed_sizes_must_be_alike() -> None:
    two = replace(
        COUNTS,
        repartition_source_topics=(TopicInfo("by-key", 2), TopicInfo("other", 3)),
        copartition_groups=(CopartitionGroup((), (), (0, 1)),),
    )
    assert problem(topology(READS, two), **{"in": 1}) == (
        WRONG,
        "Following topics do not have the same number of partitions: [{by-key=2, other=3}]",
    )


def test_a_chain_of_repartition_topics_is_resolved_in_any_order() -> None:
    first = Subtopology("9", ("in",), repartition_sink_topics=("r1",))
    second = Subtopology("0", repartition_sink_topics=("r2",), repartition_source_topics=(TopicInfo("r1"),))
    third = Subtopology("1", repartition_source_topics=(TopicInfo("r2"),))
    assert sizes(configured(topology(third, second, first), **{"in": 5})) == {"r1": 5, "r2": 5}


LOOP = topology(
    Subtopology("0", repartition_sink_topics=("b",), repartition_source_topics=(TopicInfo("a"),)),
    Subtopology("1", repartition_sink_topics=("a",), repartition_source_topics=(TopicInfo("b"),)),
)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (LOOP, "There may be loops in the topology that cannot be resolved."),
        (topology(COUNTS), "because a repartition source topic is never used as a sink topic."),
        (
            topology(Subtopology("7", state_changelog_topics=(TopicInfo("c"),))),
            "No source topics found for subtopology 7",
        ),
    ],
)
def test_a_topology_that_no_topics_can_satisfy_is_refused(of: Topology, text: str) -> None:
    with pytest.raises(KafkaError) as raised:
        configured(of, **{"in": 1})
    assert raised.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert raised.value.message.endswith(text)


@pytest.mark.parametrize(
    "of",
    [
        topology(Subtopology("0", ("in",), copartition_groups=(CopartitionGroup((-1,)),))),
        topology(Subtopology("0", ("in",), copartition_groups=(CopartitionGroup((1,)),))),
        topology(Subtopology("0", ("in",), copartition_groups=(CopartitionGroup((), (), (0,)),))),
        topology(READS, Subtopology("1", repartition_source_topics=(TopicInfo("by-key", -4),))),
    ],
)
def test_a_topology_that_contradicts_itself_is_an_error_of_the_server_as_in_kafka(of: Topology) -> None:
    with pytest.raises(KafkaError) as raised:
        configured(of, **{"in": 1})
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
