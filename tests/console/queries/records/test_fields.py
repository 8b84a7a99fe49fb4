"""What is copied into a form and sent again is what it was: null, empty, bytes, any header."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import key_bytes
from kpybroker.console.queries.records.fields import Field, encoded, field_of, lines_of, parse_headers

DATA = st.none() | st.binary(max_size=300) | st.text(max_size=40).map(lambda text: text.encode(errors="replace"))
KEYS = st.binary(max_size=20).map(lambda data: data.decode(errors="surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=12
)


def sent_by_a_browser(text: str, *, is_one_line: bool = False) -> str:
    """As HTML is parsed and a form is sent."""
    parser = HTMLParser(convert_charrefs=True)
    found: list[str] = []
    parser.handle_data = found.append  # type: ignore[method-assign,assignment]
    parser.feed(html.escape(text))
    parser.close()
    shown = "".join(found).replace("\r\n", "\n").replace("\r", "\n")
    return shown.replace("\n", "") if is_one_line else shown.replace("\n", "\r\n")


@given(DATA, st.booleans())
def test_bytes_come_back_from_a_form(data: bytes | None, is_key: bool) -> None:
    field = field_of(data, is_one_line=is_key)
    again = Field(field.kind, sent_by_a_browser(field.text, is_one_line=is_key))
    assert encoded("key" if is_key else "value", again, is_key=is_key) == data


@given(st.lists(st.tuples(KEYS, DATA), max_size=5))
def test_headers_come_back_from_a_form(headers: list[tuple[str, bytes | None]]) -> None:
    again = parse_headers(sent_by_a_browser(lines_of(headers)))
    assert [(key_bytes(key), value) for key, value in again] == [(key_bytes(key), value) for key, value in headers]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Field("", ""), b""),
        (Field("text", ""), b""),
        (Field("null", ""), None),
        (Field("hex", ""), b""),
        (Field("hex", "00 FF\n7a"), b"\0\xffz"),
        (Field("base64", "AP96\r\n"), b"\0\xffz"),
        (Field("json", '{"a":  1}'), b'{"a":  1}'),
        (Field("text", "a\r\nb"), b"a\nb"),
    ],
)
def test_kinds(field: Field, expected: bytes | None) -> None:
    assert encoded("value", field) == expected


def test_a_key_that_was_left_empty_is_none_and_an_empty_one_is_said_to_be() -> None:
    assert encoded("key", Field("", ""), is_key=True) is None
    assert encoded("key", Field("text", ""), is_key=True) == b""
    assert encoded("key", Field("", "a"), is_key=True) == b"a"


@pytest.mark.parametrize(
    ("field", "cause"),
    [
        (Field("null", "x"), "the value is null and has a text"),
        (Field("json", "{"), "the value is not JSON"),
        (Field("json", "NaN"), "the value is not JSON"),
        (Field("json", "[" * 100_000), "the value is not JSON"),
        (Field("hex", "0"), "the value is not hex"),
        (Field("base64", "a"), "the value is not base64"),
        (Field("utf-7", ""), "is nothing that a value can be"),
    ],
)
def test_a_text_that_is_not_of_its_kind(field: Field, cause: str) -> None:
    with pytest.raises(CommandError, match=cause) as caught:
        encoded("value", field)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("line", ["=x", "{", '{"key": null}', '{"key": "a", "more": 1}', '{"key": {"base64": "?"}}'])
def test_a_bad_header(line: str) -> None:
    with pytest.raises(CommandError):
        parse_headers(line)
