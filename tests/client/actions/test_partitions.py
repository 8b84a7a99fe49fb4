"""How partitions are named."""

from __future__ import annotations

import pytest

from kpybroker.client.actions.partitions import matching, parse_partitions, parse_places
from kpybroker.client.connect.errors import CommandError


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a"], {"a": None}),
        (["a,b"], {"a": None, "b": None}),
        (["a:0"], {"a": [0]}),
        (["a:0,2-4,b"], {"a": [0, 2, 3, 4], "b": None}),
        (["a:1", "a:0"], {"a": [1, 0]}),
        (["a:0", "7"], {"a": [0], "7": None}),
        ([], {}),
    ],
)
def test_topics_with_partitions(texts: list[str], expected: dict[str, list[int] | None]) -> None:
    assert parse_places(texts) == expected


@pytest.mark.parametrize("text", ["a:", "a:x", "a:1-", "a:-1"])
def test_what_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="does not name partitions"):
        parse_places([text])


def test_partitions_alone() -> None:
    assert parse_partitions(["0,2", "4-6"]) == [0, 2, 4, 5, 6]
    assert parse_partitions([]) == []
    with pytest.raises(CommandError):
        parse_partitions(["one"])


def test_patterns_are_those_of_a_shell() -> None:
    assert matching(["b2", "a1", "b1"], ["b*"]) == ["b1", "b2"]
    assert matching(["b", "a"], []) == ["a", "b"]
    assert matching(["Ab"], ["ab"]) == []
