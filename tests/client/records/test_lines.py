"""Input as records."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.records import lines
from kpybroker.client.records.json_lines import BadLine
from kpybroker.client.records.lines import LineOptions, parser, pieces
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate


class Chunks:
    """A stream that has these chunks, one a read."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)

    def read1(self, size: int, /) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""


@pytest.mark.parametrize(
    ("chunks", "delimiter", "expected"),
    [
        ([b"a\nb\n"], b"\n", [b"a", b"b"]),
        ([b"a\nb"], b"\n", [b"a", b"b"]),
        ([b"a\n", b"\n", b"b\n"], b"\n", [b"a", b"", b"b"]),
        ([b"a-", b"-b-", b"-"], b"--", [b"a", b"b"]),
        ([], b"\n", []),
    ],
)
def test_a_stream_is_cut_at_the_delimiter(chunks: list[bytes], delimiter: bytes, expected: list[bytes]) -> None:
    assert list(pieces(Chunks(*chunks), delimiter)) == expected


@given(st.lists(st.binary(max_size=6).filter(lambda b: b"ab" not in b and not b.endswith(b"a")), max_size=8), st.data())
def test_where_chunks_end_makes_no_difference(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(part + b"ab" for part in parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if a < b]
    assert list(pieces(Chunks(*chunks), b"ab")) == parts


def test_a_piece_is_there_before_the_next_chunk_is_read() -> None:
    source = Chunks(b"a\n", b"b\n")
    found = pieces(source, b"\n")
    assert next(found) == b"a"
    assert source.read1(1) == b"b\n"


def test_input_without_a_delimiter_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PIECE_BYTES_MAX", 10)
    with pytest.raises(BadLine, match="is the delimiter right"):
        list(pieces(io.BytesIO(b"x" * 100), b"\n"))


def test_a_line_is_a_value() -> None:
    assert parser("line", LineOptions())(b"a:b") == Record(None, None, b"a:b", [])
    assert parser("line", LineOptions(key=b"k"))(b"v") == Record(None, b"k", b"v", [])


def test_a_separator_parts_key_and_value() -> None:
    parse = parser("line", LineOptions(key_separator=b"::", headers=(("h", b"1"),)))
    assert parse(b"k::v::w") == Record(None, b"k", b"v::w", [("h", b"1")])
    with pytest.raises(BadLine, match="no key separator '::'"):
        parse(b"kv")


def test_empty_is_null_if_asked_for() -> None:
    parse = parser("line", LineOptions(key_separator=b":", empty_is_null=True))
    assert parse(b":v")[1:3] == (None, b"v")
    assert parse(b"k:")[1:3] == (b"k", None)
    assert parser("json", LineOptions(empty_is_null=True))(b'{"key":"","value":""}')[1:3] == (b"", b"")


def test_headers_and_a_key_are_added_to_json_records() -> None:
    parse = parser("json", LineOptions(key=b"k", headers=(("h", b"1"),)))
    assert parse(b'{"value":"v","headers":{"a":"b"}}') == Record(None, b"k", b"v", [("a", b"b"), ("h", b"1")])
    assert parse(b'{"key":"mine","value":"v"}').key == b"mine"


@pytest.mark.parametrize(
    ("template", "piece", "expected"),
    [
        ("%k\\t%v", b"a\tb\tc", Record(None, b"a", b"b\tc", [])),
        ("%t %p %T %v", b"t 3 17 x y", Record("t", None, b"x y", [], 3, None, 17)),
        ("100%%:%v", b"100%:x", Record(None, None, b"x", [])),
        ("%v", b"\xff\n", Record(None, None, b"\xff\n", [])),
    ],
)
def test_a_format_reads_what_it_writes(template: str, piece: bytes, expected: Record) -> None:
    assert parser(template, LineOptions())(piece) == expected


def test_a_piece_that_does_not_fit_the_format() -> None:
    with pytest.raises(BadLine, match="does not fit"):
        parser("%p %v", LineOptions())(b"x y")


@pytest.mark.parametrize("template", ["%k", "%v%v", "%o %v", "nonsense", "%v%"])
def test_a_format_that_cannot_be_read(template: str) -> None:
    with pytest.raises(BadTemplate):
        parser(template, LineOptions())
