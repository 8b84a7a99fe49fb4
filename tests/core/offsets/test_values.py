"""Java's view of strings, on which the choice of a coordinator and a limit depend."""

from __future__ import annotations

import pytest

from kpybroker.core.offsets.values import coordinator_partition, java_hash_code, java_length


@pytest.mark.parametrize(
    ("text", "expected"),
    # String.hashCode of Java 17.
    [("", 0), ("a", 97), ("group", 98629247), ("console-consumer-12345", 158455506), ("ü", 252), ("😀", 1772899)],
)
def test_hash_codes_are_javas(text: str, expected: int) -> None:
    assert java_hash_code(text) == expected


def test_hash_codes_wrap_as_int32() -> None:
    assert java_hash_code("polygenelubricants") == -(2**31)
    assert coordinator_partition("polygenelubricants", 50) == 0


def test_partitions_are_never_negative() -> None:
    assert {coordinator_partition(f"group-{n}", 7) for n in range(200)} == set(range(7))


def test_lengths_count_utf_16_units() -> None:
    assert [java_length(text) for text in ("", "abc", "üü", "😀a")] == [0, 3, 2, 3]
