"""Jute, the encoding of ZooKeeper's messages: big-endian numbers, and strings, buffers and vectors with a length.

A length of -1 is null. Java's own decoder replaces bytes that are no UTF-8; so does this one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_ITEM_BYTES_MIN = 4
"""Of all that vectors hold here: what a client claims to send is compared with what it sent."""


class JuteError(Exception):
    """Bytes that are no such message."""


class Reader:
    """Takes one value after the other out of a message. Each method raises JuteError at its end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return len(self._data) - self._at

    def int32(self) -> int:
        """Four bytes, signed."""
        return self._number(_INT)

    def int64(self) -> int:
        """Eight bytes, signed."""
        return self._number(_LONG)

    def boolean(self) -> bool:
        """One byte."""
        return self._take(1) != b"\0"

    def buffer(self) -> bytes | None:
        """Bytes, or null."""
        size = self.int32()
        return None if size == -1 else self._take(size)

    def string(self) -> str:
        """Text; null is read as empty, which no message distinguishes."""
        return (self.buffer() or b"").decode("utf-8", "replace")

    def vector(self, item: Callable[[Reader], T]) -> list[T]:
        """Items that `item` reads; null is read as empty."""
        count = self.int32()
        if count > self.left // _ITEM_BYTES_MIN:
            raise JuteError(f"a vector of {count} items in {self.left} bytes")
        return [item(self) for _ in range(count)]

    def _number(self, kind: struct.Struct) -> int:
        value: int
        (value,) = kind.unpack(self._take(kind.size))
        return value

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise JuteError(f"{size} bytes where {self.left} are left")
        self._at += size
        return self._data[self._at - size : self._at]


def int32(value: int) -> bytes:
    """Four bytes, signed."""
    return _INT.pack(value)


def int64(value: int) -> bytes:
    """Eight bytes, signed."""
    return _LONG.pack(value)


def buffer(value: bytes | None) -> bytes:
    """Bytes, or null."""
    return _INT.pack(-1) if value is None else _INT.pack(len(value)) + value


def string(value: str) -> bytes:
    """Text with its length."""
    return buffer(value.encode("utf-8", "replace"))


def vector(items: Iterable[bytes]) -> bytes:
    """Encoded items with their number."""
    encoded = list(items)
    return _INT.pack(len(encoded)) + b"".join(encoded)
