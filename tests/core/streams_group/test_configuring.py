"""What a topology means with the topics that exist."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.streams_group.topics.configuring import TASKS_MAX, ConfiguredTopology, StatusCode, configure
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


# --- as large as may be, and chains


def in_passes(of: Topology) -> dict[str, int] | None:
    """As Kafka finds the partitions of repartition topics: pass by pass, with what is known at that moment."""
    parts = [of.subtopologies[name] for name in sorted(of.subtopologies)]
    sources = [topic for one in parts for topic in one.repartition_source_topics]
    found = {topic.name: topic.partitions for topic in sources if topic.partitions}
    while True:
        before = len(found)
        for one in parts:
            for sink in one.repartition_sink_topics:
                known = [found[topic.name] for topic in one.repartition_source_topics if topic.name in found]
                known += [COUNTS_OF_SOURCES[name] for name in one.source_topics]
                if sink not in found and known:
                    found[sink] = max(known)
        if all(sink in found for one in parts for sink in one.repartition_sink_topics):
            return found if all(topic.name in found for topic in sources) else None
        if len(found) == before:
            return None


COUNTS_OF_SOURCES = {"a": 1, "b": 2, "c": 3}
NAMES = st.sampled_from([f"r{number}" for number in range(6)])
SOME = st.lists(NAMES, max_size=3, unique=True).map(tuple)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    fixed = draw(st.dictionaries(NAMES, st.integers(1, 4), max_size=2))
    parts = [
        Subtopology(
            str(number),
            draw(st.lists(st.sampled_from(list(COUNTS_OF_SOURCES)), max_size=2, unique=True).map(tuple)),
            repartition_sink_topics=draw(SOME),
            repartition_source_topics=tuple(TopicInfo(name, fixed.get(name, 0)) for name in draw(SOME)),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    return topology(*(one for one in parts if one.source_topics or one.repartition_source_topics))


@given(topologies())
def test_repartition_topics_have_what_passes_over_the_topology_find(of: Topology) -> None:
    expected = in_passes(of)
    if expected is None:
        with pytest.raises(KafkaError) as refused:
            configured(of, **COUNTS_OF_SOURCES)
        assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
        return
    found = configured(of, **COUNTS_OF_SOURCES)
    read = {topic.name for one in of.subtopologies.values() for topic in one.repartition_source_topics}
    assert sizes(found) == {name: count for name, count in expected.items() if name in read}


def test_there_are_at_most_so_many_tasks() -> None:
    of = topology(Subtopology("0", ("in",)), Subtopology("1", ("in",)))
    assert configured(of, **{"in": TASKS_MAX // 2}).is_ready
    text = f"The topology has {TASKS_MAX + 2} tasks, and at most {TASKS_MAX} are assigned."
    assert problem(of, **{"in": TASKS_MAX // 2 + 1}) == (WRONG, text)
