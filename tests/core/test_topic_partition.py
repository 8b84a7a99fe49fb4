"""Names of partitions, and one object for equal values."""

from __future__ import annotations

from kpybroker.core.topic_partition import KEPT_MAX, TopicPartition, shared


def test_a_name_equals_the_plain_pair() -> None:
    assert TopicPartition("t", 3) == ("t", 3)
    assert hash(TopicPartition("t", 3)) == hash(("t", 3))
    assert str(TopicPartition("t", 3)) == "t-3"


def test_equal_values_are_one_object() -> None:
    replicas = [10_001, 10_002]
    first = shared(tuple(replicas))
    assert shared(tuple(replicas)) is first
    assert shared(frozenset([10_001])) is shared(frozenset([10_001]))


def test_values_of_different_types_are_not_taken_for_each_other() -> None:
    plain = shared(("shared", 1))
    named = shared(TopicPartition("shared", 1))
    assert type(plain) is tuple
    assert type(named) is TopicPartition


def test_a_value_that_is_not_known_any_more_is_itself() -> None:
    before = shared(("kept", -1))
    for number in range(KEPT_MAX + 1):
        shared(("kept", number))
    assert shared(("kept", -1)) == before
