"""What was spelled in several ways is one text."""

from __future__ import annotations

import pytest

from kpybroker.registry.schemas.proto.earlier import comparable, default_json_name
from kpybroker.registry.schemas.proto.names import names_of
from kpybroker.registry.schemas.proto.reader import read


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('int32 a_b = 1 [json_name = "aB"];', "int32 a_b = 1;", True),
        ('int32 a_b = 1 [json_name = "a"];', "int32 a_b = 1;", False),
        ("M m = 1;", ".a.M m = 1;", True),
        ('option x = "\\303\\251";', 'option x = "\u00e9";', True),
        ('option x = "\\351";', 'option x = "\u00e9";', True),
        ('option x = "e";', 'option x = "\u00e9";', False),
        ("oneof o { int32 a = 1; } int32 b = 2;", "int32 b = 2; oneof o { int32 a = 1; }", True),
    ],
)
def test_spellings_are_compared(one: str, other: str, is_same: bool) -> None:
    files = [read(f'syntax = "proto3"; package a; message M {{ {text} }}') for text in (one, other)]
    texts = [comparable(file, names_of(file, [])) for file in files]
    assert (texts[0] == texts[1]) is is_same


@pytest.mark.parametrize(
    ("name", "expected"), [("a", "a"), ("a_b", "aB"), ("a__b", "aB"), ("_a", "A"), ("aB_c1", "aBC1"), ("a_1", "a1")]
)
def test_the_default_name_of_json_is_that_of_protoc(name: str, expected: str) -> None:
    assert default_json_name(name) == expected
