"""Any bytes become text that is harmless in a page."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.console.queries.decoding import DECODERS, JSON_BYTES_MAX, ONE_LINE_MAX, decoded

DEEP = b"[" * 100_000


@given(data=st.binary(max_size=300) | st.text().map(lambda text: text.encode(errors="surrogatepass")))
def test_no_bytes_fail_and_none_leave_a_control_character(data: bytes) -> None:
    for name in DECODERS:
        found = decoded(data, 50, name)
        assert found.size == len(data)
        assert all(letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs") for letter in found.text)
        found.text.encode()


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b'{"a":1}', "json", '{"a": 1}'),
        (b"12", "text", "12"),
        (b'{"a":', "text", '{"a":'),
        ("å".encode(), "text", "å"),
        (b"\xff\x00A", "hex", f"00000000  {'ff 00 41':<47}  ..A"),
        (b"a\x00\x1b[0m\x7f", "text", "a\u2400\u241b[0m\u2421"),
        ("\u202egpj.exe".encode(), "text", "\\u202egpj.exe"),
        (b"", "text", ""),
    ],
)
def test_kinds_are_recognized(data: bytes, kind: str, text: str) -> None:
    found = decoded(data, 100)
    assert (found.kind, found.text, found.is_cut) == (kind, text, False)


def test_json_is_on_one_line_in_a_list_and_indented_where_there_is_room() -> None:
    assert decoded(b'{"a":1}', ONE_LINE_MAX).text == '{"a": 1}'
    assert decoded(b'{"a":1}', ONE_LINE_MAX + 1).text == '{\n  "a": 1\n}'


def test_null_is_no_text() -> None:
    assert decoded(None, 100).kind == "null"


@pytest.mark.parametrize("data", ["å".encode() * 100, b"\xff" * 1000, json.dumps(list(range(100))).encode(), DEEP])
def test_long_values_are_cut(data: bytes) -> None:
    for name in DECODERS:
        found = decoded(data, 60, name)
        assert found.is_cut
        assert len(found.text) <= 90


def test_a_huge_value_is_not_parsed() -> None:
    assert decoded(b"[" + b"1," * JSON_BYTES_MAX + b"1]", 100).kind == "text"


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":2}',
        b'[{"b":{"a":1,"c":2,"a":1}}]',
        b'{"a":1e999}',
        b'{"a":12345678901234567890.5}',
        b'{"a":1e-99999999999}',
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_json_that_would_lose_something_is_shown_as_it_is(data: bytes) -> None:
    assert decoded(data, 10_000)[:3] == ("text", data.decode(), len(data))


def test_numbers_that_lose_nothing_are_json() -> None:
    assert decoded(b'{"a":0.1,"b":1e5,"c":-0.0,"d":12345678901234567890,"e":NaN}', 1000).kind == "json"
