"""Topic names are valid as in Kafka's ``Topic.validate``, with its error messages."""

from __future__ import annotations

import pytest

from kpybroker.core import topic_names


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"])
def test_good(name: str) -> None:
    assert topic_names.invalid_reason(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("é", "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_bad(name: str, reason: str) -> None:
    assert topic_names.invalid_reason(name) == f"Topic name is invalid: {reason}"


def test_dots_and_underscores_collide() -> None:
    assert topic_names.has_collision("a.b_c", "a_b.c")
    assert not topic_names.has_collision("a.b", "a-b")
    assert topic_names.has_collision_chars("a.b")
    assert not topic_names.has_collision_chars("a-b")


def test_internal() -> None:
    assert topic_names.is_internal("__consumer_offsets")
    assert topic_names.is_internal("__transaction_state")
    assert not topic_names.is_internal("__other")
