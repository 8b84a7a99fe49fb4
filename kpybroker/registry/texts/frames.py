"""What goes over a channel: a length, a number that belongs to the content, the content."""

from __future__ import annotations

import struct
from typing import IO, Final, NamedTuple

HEAD: Final = struct.Struct(">Id")
BYTES_MAX: Final = 64 << 20
READY: Final = b"ready"
"""The first frame of a worker."""


class Frame(NamedTuple):
    """`number` of a question is its seconds on the processor, and of a reply 1 if it is the worker's last, else 0."""

    content: bytes
    number: float


def write_frame(writer: IO[bytes], content: bytes, number: float = 0.0) -> None:
    """Raises OSError where the other side has ended."""
    writer.write(HEAD.pack(len(content), number) + content)
    writer.flush()


def read_frame(reader: IO[bytes]) -> Frame | None:
    """None where the other side has ended."""
    head = reader.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    length, number = HEAD.unpack(head)
    content = reader.read(length) if length <= BYTES_MAX else b""
    return Frame(content, number) if len(content) == length else None
