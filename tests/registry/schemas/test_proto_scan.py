"""Comments and strings of .proto files are passed over, whatever is in them."""

from __future__ import annotations

import pytest

from kpybroker.registry.schemas.model import depth
from kpybroker.registry.schemas.proto_scan import bare, has_syntax


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a // { \n b", "a  \n b"),
        ("a /* { // */ b", "a   b"),
        ("a /* {", "a  "),
        ("a '\"{' b", 'a "" b'),
        ('a "\\"{" b', 'a "" b'),
        ('a "{\n b', 'a "" b'),
        ('a "\\', 'a ""'),
        ("1/2", "1/2"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_what_is_left_of_a_text(text: str, wanted: str) -> None:
    assert bare(text) == wanted


def test_a_quote_in_a_comment_hides_no_bracket() -> None:
    assert depth(bare('// "\n{{{}}}')) == 3


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('syntax = "proto3";', True),
        ('edition="2023";', True),
        ('\ufeff\n// syntax\n/* = */ syntax\n=\n"proto2";', True),
        ("message syntax {}", False),
        ("syntax error", False),
        ("// syntax = 'proto3';", False),
        ("", False),
    ],
)
def test_whether_a_file_says_its_syntax(text: str, wanted: bool) -> None:
    assert has_syntax(bare(text)) is wanted
