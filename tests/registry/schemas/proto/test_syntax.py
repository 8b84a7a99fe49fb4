"""Words, texts and numbers of .proto files, in a time that is linear in the text."""

from __future__ import annotations

import pytest

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas.proto.syntax import Syntax


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a"', "a"),
        ("'a' \"b\"\n'c'", "abc"),
        (r'"\n\x41\101\0\q\""', '\nAA\0q"'),
        ('"' + r"\'" + '"', "'"),
    ],
)
def test_texts_are_joined_and_escapes_read(text: str, expected: str) -> None:
    assert Syntax(f"{text};").quoted() == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("7", 7), ("-7", -7), ("0x1F", 31), ("007", 7), ("2147483647", 2**31 - 1)]
)
def test_numbers_have_32_bits(text: str, expected: int) -> None:
    assert Syntax(text).integer() == expected


@pytest.mark.parametrize("text", ["", "x", "1.5", "2147483648", "0x", "9" * 10_000])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(RegistryError):
        Syntax(text).integer()


def test_a_refusal_names_the_place() -> None:
    syntax = Syntax("// a\n  x ;")
    assert syntax.word() == "x"
    with pytest.raises(RegistryError) as caught:
        syntax.require("=")
    assert "line 2, column 5" in caught.value.message


@pytest.mark.parametrize("text", ["/*a" * 100_000, '"' * 199_999, "\n" * 300_000, "//\n" * 100_000, "map<a," * 100_000])
def test_hostile_texts_are_read_in_one_pass(text: str) -> None:
    syntax = Syntax(text)
    with pytest.raises(RegistryError):
        syntax.type() if text.startswith("map") else syntax.quoted()
