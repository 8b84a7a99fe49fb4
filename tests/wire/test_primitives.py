"""Varints, tagged fields and the element budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.primitives import (
    array_packer,
    array_unpacker,
    claim,
    merge_tagged_fields,
    read_tagged_fields,
    read_unsigned_varint,
    string_length,
    unsigned_varint,
    write_tagged_fields,
)


@given(st.integers(0, 2**31 - 1))
def test_varints_round_trip(value: int) -> None:
    encoded = unsigned_varint(value)
    assert read_unsigned_varint(b"x" + encoded + b"y", 1) == (value, 1 + len(encoded))
    assert len(encoded) <= 5


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (16384, "808001"), (2**31 - 1, "ffffffff07")],
)
def test_varints_are_kafkas(value: int, encoded: str) -> None:
    assert unsigned_varint(value).hex() == encoded


@pytest.mark.parametrize("encoded", ["8080808010", "ffffffffff", "80808080808001"])
def test_varints_beyond_31_bits_are_refused(encoded: str) -> None:
    with pytest.raises(ProtocolError):
        read_unsigned_varint(bytes.fromhex(encoded), 0)


def test_a_cut_varint_is_an_index_error_which_the_codec_translates() -> None:
    with pytest.raises(IndexError):
        read_unsigned_varint(b"\x80", 0)


def test_lengths_of_strings_stop_where_kafka_stops() -> None:
    assert string_length(0x8000) == unsigned_varint(0x8000)
    with pytest.raises(ValueError, match="too long"):
        string_length(0x8001)


@given(st.dictionaries(st.integers(0, 2**20), st.binary(max_size=300), max_size=20))
def test_tagged_fields_round_trip(fields: dict[int, bytes]) -> None:
    ordered = tuple(sorted(fields.items()))
    chunks: list[bytes] = []
    write_tagged_fields(chunks.append, ordered)
    data = b"".join(chunks)
    assert read_tagged_fields(data, 0, len(data), len(ordered), 1000) == (
        ordered,
        len(data),
        1000 - len(ordered),
    )


def test_tagged_fields_are_written_in_ascending_order_only() -> None:
    with pytest.raises(ValueError, match="tag 1 follows tag 2"):
        write_tagged_fields(list[bytes]().append, [(2, b""), (1, b"")])
    assert merge_tagged_fields([(1, b"a"), (5, b"b")], ((3, b"c"),)) == [(1, b"a"), (3, b"c"), (5, b"b")]


@pytest.mark.parametrize(
    ("count", "min_size", "remaining", "budget"), [(-1, 1, 10, 10), (3, 4, 11, 10), (11, 1, 100, 10)]
)
def test_claims_are_held_against_bytes_and_budget(count: int, min_size: int, remaining: int, budget: int) -> None:
    with pytest.raises(ProtocolError):
        claim(count, min_size, remaining, budget)
    assert claim(3, 4, 12, 10) == 7


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40))
def test_arrays_of_fixed_size_round_trip(values: list[int]) -> None:
    data = array_packer("i")(values)
    assert array_unpacker("i")(b"??" + data, 2, len(values)) == values
