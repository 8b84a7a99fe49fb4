"""Walking the batches of a log file for `kpybroker log`: read-only, in bulk, within bounded memory.

A walk ends at the file's length at its start, so it may run while a broker appends. Where the bytes are no batches it
raises `Damage` with its kind: a batch that is cut off at the end of the file may be one that is being written, zeros
may be space that `preallocate` took; everything else is corruption. A length that leads beyond the end although the
next batch can be found before it is corruption too.

Not here: rows about a batch (`dump_segment`), and what must hold between batches (`verify_checks`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import Enum

from kpybroker.storage.disk.errors import StorageError
from kpybroker.storage.disk.files import File, read_exactly
from kpybroker.wire.crc import crc32c
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import (
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    computed_crc,
    parse_header,
    verify_crc,
)

WINDOW = 4 * 1024 * 1024
WHOLE_BATCH_MAX = 128 * 1024 * 1024
"""Larger batches are not held in memory: their CRC is computed piece by piece, their records are not checked."""

_CRC_COVERS_FROM = (MAGIC_OFFSET, MAGIC_OFFSET, 21)  # by magic
_INT64 = struct.Struct(">q")

Placed = tuple[int, BatchHeader, memoryview | None]
"""Position, header, and the batch's bytes; None where it is larger than WHOLE_BATCH_MAX."""


class DamageKind(Enum):
    """Why a walk ended before the end of the file."""

    CORRUPT = "corrupt"
    INCOMPLETE = "incomplete"  # a batch begins, and the file ends within it
    ZEROS = "zeros"  # nothing but zeros to the end of the file


class Damage(StorageError):
    """From `position` on, the file holds no batches."""

    def __init__(self, position: int, kind: DamageKind, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.kind = kind


def walk(file: File, size: int, position: int = 0) -> Iterator[Placed]:
    """Every batch between `position`, where one begins, and `size`. Raises Damage and OSError."""
    data = memoryview(b"")
    start = position
    while position < size:
        at = position - start
        if len(data) - at < RECORD_BATCH_OVERHEAD and start + len(data) < size:
            data, start, at = _read(file, position, min(WINDOW, size - position)), position, 0
        header = _header(file, data, at, position, size)
        end = at + header.size
        if header.size > WHOLE_BATCH_MAX:
            yield position, header, None
        else:
            if end > len(data):
                wanted = min(max(WINDOW, header.size), size - position)
                data, start, at = _read(file, position, wanted), position, 0
                end = header.size
            yield position, header, data[at:end]
        position += header.size


def _read(file: File, position: int, size: int) -> memoryview:
    data = read_exactly(file, size, position)
    if len(data) < size:
        raise Damage(position + len(data), DamageKind.INCOMPLETE, "the file became shorter while it was read")
    return memoryview(data)


def _header(file: File, data: memoryview, at: int, position: int, size: int) -> BatchHeader:
    left = size - position
    try:
        header = parse_header(data, at)
    except KafkaError as error:
        if left < RECORD_BATCH_OVERHEAD and (left <= MAGIC_OFFSET or data[at + MAGIC_OFFSET] <= 2):
            raise Damage(position, DamageKind.INCOMPLETE, f"the file ends {left} bytes into a batch") from None
        if _only_zeros(file, position, size):
            raise Damage(position, DamageKind.ZEROS, f"{left} zero bytes to the end of the file") from None
        raise Damage(position, DamageKind.CORRUPT, f"not a batch: {error}") from None
    if header.size > left:
        follower = _next_batch(data, at, header)
        if follower is not None:
            message = f"the batch claims {header.size} bytes, but the next one begins after {follower}"
            raise Damage(position, DamageKind.CORRUPT, message)
        message = f"the file ends {left} bytes into a batch of {header.size}"
        raise Damage(position, DamageKind.INCOMPLETE, message)
    return header


def _only_zeros(file: File, position: int, size: int) -> bool:
    while position < size:
        data = read_exactly(file, min(WINDOW, size - position), position)
        if not data or data.count(0) != len(data):
            return False
        position += len(data)
    return True


def _next_batch(data: memoryview, at: int, header: BatchHeader) -> int | None:
    """Bytes from `at` to a whole batch that follows this one by its offset, if the window shows one."""
    rest = bytes(data[at:])
    wanted = _INT64.pack(min(header.next_offset, 2**63 - 1))
    found = rest.find(wanted, LOG_OVERHEAD)
    while found >= 0:
        try:
            verify_crc(rest, found, parse_header(rest, found))
            return found
        except KafkaError:
            found = rest.find(wanted, found + 1)
    return None


def crc_of(file: File, position: int, header: BatchHeader, data: memoryview | None) -> int:
    """The checksum that a walked batch's bytes have."""
    if data is not None:
        return computed_crc(data, 0, header)
    crc = 0
    at, end = position + _CRC_COVERS_FROM[header.magic], position + header.size
    checksum = crc32c if header.magic == 2 else zlib.crc32
    while at < end:
        piece = _read(file, at, min(WINDOW, end - at))
        crc = checksum(piece, crc)
        at += len(piece)
    return crc
