"""Variable-length integers, raw tagged fields and the small tables that compiled codecs use.

Rules: every reader takes (buffer, position) and returns (value, new position); whatever a peer's bytes can
cause is a ProtocolError, an IndexError or a struct.error, and `codec` turns the last two into the first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kpybroker.wire.errors import ProtocolError

Buffer: TypeAlias = "bytes | bytearray | memoryview"

BYTE: Final[tuple[bytes, ...]] = tuple(bytes((n,)) for n in range(256))
MAX_STRING: Final = 0x7FFF
"""Bytes of the longest string: Kafka rejects longer ones, also where the length is a varint."""
ELLIPSIS: Final = b"..."

FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Types of fixed size, as `struct` formats."""

_MAX_VARINT_VALUE: Final = 0x7FFFFFFF


def unsigned_varint(value: int) -> bytes:
    """Kafka's unsigned varint: seven bits a byte, least significant first."""
    if value < 128:
        return BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_length(length_plus_one: int) -> bytes:
    """The length of a compact string; ValueError where Kafka's own writer raises."""
    if length_plus_one > MAX_STRING + 1:
        raise ValueError(f"a string of {length_plus_one - 1} bytes is too long, at most {MAX_STRING}")
    return unsigned_varint(length_plus_one)


def error_text(text: str) -> bytes:
    """The bytes of an error message. One that quotes long names is cut, between characters, to what a string holds."""
    data = text.encode()
    if len(data) <= MAX_STRING:
        return data
    return cut_text(text, MAX_STRING - len(ELLIPSIS)).encode() + ELLIPSIS


def cut_text(text: str, bytes_max: int) -> str:
    """The begin of a text that is no longer than that when it is encoded."""
    return text.encode()[:bytes_max].decode(errors="ignore")


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """At most five bytes and 31 bits: no length or tag of a frame needs more."""
    first = buffer[position]
    if first < 128:
        return first, position + 1
    return varint_tail(buffer, position + 1, first)


def varint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, with its high bit set, has been read."""
    value = first & 127
    shift = 7
    while shift < 35:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _MAX_VARINT_VALUE:
                break
            return value, position
        shift += 7
    raise ProtocolError("an unsigned varint is longer than 31 bits")


def string_length_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """As varint_tail, for a string's length plus one: at most MAX_STRING + 1."""
    value, position = varint_tail(buffer, position, first)
    if value > MAX_STRING + 1:
        raise ProtocolError(f"a string claims {value - 1} bytes, at most {MAX_STRING}")
    return value, position


def read_tagged_fields(
    buffer: Buffer, position: int, end: int, count: int, budget: int
) -> tuple[tuple[tuple[int, bytes], ...], int, int]:
    """`count` tagged fields that are all unknown here; `count` may be the first byte of a longer varint.

    Returns (fields, position, what is left of the element budget).
    """
    if count > 127:
        count, position = varint_tail(buffer, position, count)
    budget = claim(count, 2, end - position, budget)
    fields = []
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        if size > end - position:
            raise ProtocolError(f"tagged field {tag} claims {size} bytes, {end - position} are left")
        fields.append((tag, bytes(buffer[position : position + size])))
        position += size
    return tuple(fields), position, budget


def claim(count: int, min_size: int, remaining: int, budget: int) -> int:
    """What is left of the budget after `count` elements; ProtocolError if they do not fit the bytes or the budget."""
    if count < 0:
        raise ProtocolError("an array that must not be null is null")
    if count * min_size > remaining:
        raise ProtocolError(f"{count} elements are claimed, {remaining} bytes are left")
    if count > budget:
        raise ProtocolError(f"{count} elements are claimed, {budget} are still allowed in this frame")
    return budget - count


def write_tagged_fields(append: Callable[[bytes], Any], fields: Sequence[tuple[int, bytes]]) -> None:
    """Appends the fields, whose count has been written. ValueError where tags do not rise."""
    last = -1
    for tag, value in fields:
        if tag <= last:
            raise ValueError(f"tag {tag} follows tag {last}")
        last = tag
        size = len(value)
        append(BYTE[tag] + BYTE[size] if tag < 128 and size < 128 else unsigned_varint(tag) + unsigned_varint(size))
        append(value)


def merge_tagged_fields(
    known: list[tuple[int, bytes]], unknown: tuple[tuple[int, bytes], ...]
) -> list[tuple[int, bytes]]:
    """Known and preserved fields in ascending order, as they go on the wire."""
    if not unknown:
        return known
    return sorted([*known, *unknown], key=lambda field: field[0])


_READY_COUNTS: Final = 16


def array_packer(format_char: str) -> Callable[[Sequence[Any]], bytes]:
    """A function that packs a list of fixed-size values; short lists use formats that are compiled here."""
    ready = [struct.Struct(">" + format_char * count).pack for count in range(_READY_COUNTS)]

    def pack(values: Sequence[Any]) -> bytes:
        count = len(values)
        if count < _READY_COUNTS:
            return ready[count](*values)
        return struct.pack(">" + format_char * count, *values)

    return pack


def array_unpacker(format_char: str) -> Callable[[Buffer, int, int], list[Any]]:
    """A function (buffer, position, count) -> list of fixed-size values."""
    ready = [struct.Struct(">" + format_char * count).unpack_from for count in range(_READY_COUNTS)]

    def unpack(buffer: Buffer, position: int, count: int) -> list[Any]:
        if count < _READY_COUNTS:
            return list(ready[count](buffer, position))
        return list(struct.unpack_from(">" + format_char * count, buffer, position))

    return unpack
