"""Damage to a record batch that a consumer must notice: in its checksum, length, magic or records.

The magic is at the same place in every format, so that batches (magic 2) and messages (magic 0 and 1) are both damaged.
"""

from __future__ import annotations

import struct
import zlib

from kpybroker.control.rules.acts import Damage
from kpybroker.wire.crc import crc32c
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_OVERHEAD_V0,
    LEGACY_OVERHEAD_V1,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    RECORD_BATCH_OVERHEAD,
)

_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_LENGTH_OFFSET = 8
_CRC_OFFSETS = {0: 12, 1: 12, 2: 17}
_SIZES_MIN = {
    0: LOG_OVERHEAD + LEGACY_OVERHEAD_V0,
    1: LOG_OVERHEAD + LEGACY_OVERHEAD_V1,
    2: RECORD_BATCH_OVERHEAD + 1,
}
UNKNOWN_MAGIC = 99
INVALID_LENGTH = 5
"""Shorter than the shortest message."""
MINUS_ONE = 0x01
"""As a varint."""


def corrupted(records: Buffer, damage: Damage) -> bytes | None:
    """A copy of some batches with damage in the first one; None if that is not there as a whole."""
    data = bytearray(records)
    if len(data) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    end = LOG_OVERHEAD + _INT32.unpack_from(data, _LENGTH_OFFSET)[0]
    magic = data[MAGIC_OFFSET]
    if magic not in _SIZES_MIN or not _SIZES_MIN[magic] <= end <= len(data):
        return None
    match damage:
        case Damage.CRC:
            data[_CRC_OFFSETS[magic]] ^= 0xFF
        case Damage.LENGTH:
            _INT32.pack_into(data, _LENGTH_OFFSET, INVALID_LENGTH)
        case Damage.MAGIC:
            data[MAGIC_OFFSET] = UNKNOWN_MAGIC
        case Damage.RECORD:
            _damage_records(data, magic, end)
    return bytes(data)


def _damage_records(data: bytearray, magic: int, end: int) -> None:
    """Lengths that exceed what is there, under a checksum that is correct."""
    view = memoryview(data)
    if magic == 2:
        data[RECORD_BATCH_OVERHEAD] = MINUS_ONE  # the first record's length, or the first byte of a compressed block
        crc = crc32c(view[ATTRIBUTES_OFFSET:end])
    else:
        key_length_offset = 18 if magic == 0 else 26
        _INT32.pack_into(data, key_length_offset, 0x7FFFFFF0)
        crc = zlib.crc32(view[MAGIC_OFFSET:end])
    _UINT32.pack_into(data, _CRC_OFFSETS[magic], crc)
