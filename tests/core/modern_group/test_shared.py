"""What groups share: the hash of topics, and which groups a change of topics concerns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpybroker.core.budget import StateBudget
from kpybroker.core.consumer_group.shared import ConsumerShared
from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.modern_group.values import TopicMetadata
from tests.core.consumer_group.harness import Topics

T = TopicMetadata(b"t" * 16, "t", 3, (("r1",), ("r1", "r2"), ()))
U = TopicMetadata(b"u" * 16, "u", 1)


def shared(*topics: TopicMetadata, version: int = 1) -> ConsumerShared:
    made = ConsumerShared(Surroundings(), StateBudget())
    made.update_topics(Topics(version, topics), [topic.name for topic in topics], has_new=True)
    return made


def test_no_topic_has_the_hash_0_and_a_hash_fits_its_field() -> None:
    assert shared().metadata_hash([]) == 0
    assert shared(T).metadata_hash(["gone"]) == 0
    assert -(2**63) <= shared(T, U).metadata_hash(["t", "u"]) < 2**63


def test_the_order_of_topics_does_not_count_nor_those_that_do_not_exist() -> None:
    both = shared(T, U)
    assert (
        both.metadata_hash(["t", "u"])
        == both.metadata_hash(["u", "gone", "t"])
        == shared(U, T).metadata_hash(["t", "u"])
    )


@pytest.mark.parametrize(
    "changed",
    [
        replace(T, topic_id=b"x" * 16),
        replace(T, partition_count=4),
        replace(T, racks=()),
        replace(T, racks=(("r1",), ("r1", "r3"), ())),
        replace(T, racks=(("r1", "r1"), ("r2",), ())),
    ],
)
def test_whatever_changes_in_a_topic_changes_the_hash(changed: TopicMetadata) -> None:
    assert shared(changed).metadata_hash(["t"]) != shared(T).metadata_hash(["t"])
    kept = shared(T)
    before = kept.metadata_hash(["t"])
    kept.update_topics(Topics(2, [changed]), ["t"], has_new=False)
    assert kept.metadata_hash(["t"]) != before


def test_a_change_concerns_the_groups_that_subscribe_to_the_topic() -> None:
    made = shared(T, U)
    made.subscribe("g", "t")
    made.subscribe("h", "t")
    made.subscribe("h", "u")
    assert made.update_topics(Topics(2, [U]), ["t"], has_new=False) == {"g", "h"}
    made.unsubscribe("h", "t")
    made.unsubscribe("h", "t")
    assert made.update_topics(Topics(3, [U]), ["t", "u"], has_new=False) == {"g", "h"}
    made.unsubscribe("g", "t")
    assert made.groups_by_topic == {"u": {"h"}}


def test_patterns_are_resolved_again_only_for_new_topics() -> None:
    made = shared(T, version=7)
    assert made.new_topics_version == 7
    made.update_topics(Topics(8, [T]), ["u"], has_new=False)
    assert made.new_topics_version == 7
    made.update_topics(Topics(9, [T, U]), ["u"], has_new=True)
    assert made.new_topics_version == 9


def test_the_first_metadata_counts_as_new() -> None:
    made = ConsumerShared(Surroundings(), StateBudget())
    made.update_topics(Topics(5, []), [], has_new=False)
    assert made.new_topics_version == 5
