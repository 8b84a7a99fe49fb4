"""Patterns of properties: found anywhere in a name, as in JSON Schema."""

from __future__ import annotations

import pytest

from kpybroker.registry.compatibility.json_patterns import NAME_MAX, PATTERN_MAX, matches


@pytest.mark.parametrize(
    ("pattern", "name", "wanted"),
    [
        ("^x-", "x-a", True),
        ("^x-", "ax-", False),
        ("a$", "ba", True),
        ("b", "a\nb", True),
        ("(?i)AB", "xabx", True),
        ("a|b", "xb", True),
        ("", "x", True),
        ("^(?!x-)", "y", True),
        ("^(?!x-)", "x-y", False),
        ("^(?!x[)]|y).*$", "x)", False),
        ("^(?!x[)]|y).*$", "xy", True),
        ("^(?=a)b", "ab", False),
        ("^(?=a).b", "ab", True),
        ("^(?!(?!a)b)", "a", False),
        ("^(?!x", "y", False),
        ("(a)\\1", "aa", False),
        ("a)(b", "ab", False),
        ("[", "[", False),
        ("^ä", "äb", True),
        ("ö$", "ö", True),
        ("^ä$", "äb", False),
        ("ä.", "äb", False),
        ("a" * (PATTERN_MAX + 1), "a", False),
        ("a", "a" * (NAME_MAX + 1), False),
    ],
)
def test_whether_a_pattern_is_found(pattern: str, name: str, wanted: bool) -> None:
    assert matches(pattern, name) is wanted


@pytest.mark.parametrize("pattern", ["a*a*a*b", "(a+)+$", "(a|aa)*b", "(x+x+)+y", "(.*){50}x", "(a?){900}"])
def test_the_time_is_linear_in_the_name(pattern: str) -> None:
    """With a library that goes back, this would not end."""
    assert {matches(pattern, "a" * 200 + f"{number}!") for number in range(100)} <= {True, False}
