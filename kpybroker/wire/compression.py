"""The four codecs of record batches, as Kafka's clients write them, with bounded decompression.

Rules: `decompress` never holds more than `limit` bytes of output (plus the codec's own window), whatever the input
claims; the output buffer takes memory only as it is written. Every error of an input is a KafkaError: CORRUPT_MESSAGE
for bytes that are not of the codec, MESSAGE_TOO_LARGE for more than `limit`.
Also here: Kafka's own framings, which are xerial snappy and the LZ4 frame of magic 0, whose header checksum also
covers the frame's magic number (KAFKA-3160). Not here: which codec a client may use (`records.validate`).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import cramjam

from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer


class Codec(IntEnum):
    """Kafka's CompressionType; the ids are the low three attribute bits of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES: Final = {codec.name.lower(): codec for codec in Codec}

LEVELS: Final = {Codec.GZIP: (1, 9), Codec.LZ4: (1, 17), Codec.ZSTD: (-131072, 22)}
"""Lowest and highest compression level (KIP-390); -1 is also allowed for gzip."""

DEFAULT_LEVELS: Final = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}

_GZIP_DEFAULT_LEVEL = 6  # what -1 means to zlib
_LZ4_FAST_LEVEL = 1
_LZ4_MAX_LEVEL = 12  # the highest of liblz4; 13 to 17 of lz4-java mean the same
_ZSTD_MIN_LEVEL = -131072

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
_SNAPPY_RATIO_MAX = 64  # a copy element takes at least 2 bytes and yields at most 64
_INT32 = struct.Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_BLOCK_INDEPENDENCE = 0x20
_LZ4_CONTENT_SIZE = 0x08

_FIRST_GUESS_MIN = 64 * 1024
_FIRST_GUESS_MAX = 1024 * 1024


def compress(codec: Codec, data: Buffer, level: int | None = None, magic: int = 2) -> bytes:
    """`data` in the codec's framing for a batch of that magic. `level` None is Kafka's default."""
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.ZSTD and magic < 2:
        raise ValueError("zstd does not exist below magic 2")
    if level is None or level == DEFAULT_LEVELS.get(codec):
        level = None
    elif codec in LEVELS and not LEVELS[codec][0] <= level <= LEVELS[codec][1]:
        raise ValueError(f"{codec.name.lower()} doesn't support given compression level: {level}")
    compressed = _COMPRESSORS[codec](data, level)
    if codec is Codec.LZ4 and magic == 0:
        compressed[_lz4_checksum_position(compressed)] = _lz4_header_checksum(compressed, broken=True)
    return bytes(compressed)


def decompress(codec: Codec, data: Buffer, limit: int, magic: int = 2) -> Buffer:
    """The decompressed bytes, at most `limit` of them; for Codec.NONE `data` itself, whatever its size.

    Raises CORRUPT_MESSAGE or MESSAGE_TOO_LARGE.
    """
    if codec is Codec.NONE:
        return data
    if codec is Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), limit)
    if codec is Codec.LZ4 and magic == 0:
        data = _repair_lz4_header(data)
    return _decompress_stream(_STREAM_DECOMPRESSORS[codec], codec, data, limit)


def has_linked_lz4_blocks(data: Buffer, position: int = 0) -> bool:
    """Whether the LZ4 frame at `position` has blocks that depend on each other: Java clients and brokers reject it."""
    return len(data) > position + 4 and not data[position + 4] & _LZ4_BLOCK_INDEPENDENCE


def _too_large(limit: int) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"Compressed records take more than {limit} bytes uncompressed")


class UndecodableError(KafkaError):
    """Bytes that are not of the codec: CORRUPT_MESSAGE, unless the caller knows that Kafka reports another error."""


def _corrupt(codec: Codec, reason: object) -> UndecodableError:
    text = f"Compressed records are not valid {codec.name.lower()}: {reason}"
    return UndecodableError(ErrorCode.CORRUPT_MESSAGE, text)


# --- gzip, lz4, zstd: one call into a buffer of fixed size, which bounds the output


def _decompress_stream(
    decompress_into: Callable[[Buffer, bytearray | mmap.mmap], int], codec: Codec, data: Buffer, limit: int
) -> Buffer:
    """First into a small buffer, which is enough for nearly all; then into an anonymous map of `limit` bytes.

    The map takes physical memory only as the decompressor writes to it: a bomb ends at `limit`, and any other batch
    costs its own size.
    """
    guess = min(limit, max(_FIRST_GUESS_MIN, min(4 * len(data), _FIRST_GUESS_MAX)))
    if guess < limit:
        buffer = bytearray(guess)
        try:
            size = decompress_into(data, buffer)
        except cramjam.DecompressionError as error:
            if not _is_full(error):
                raise _corrupt(codec, error) from None
        else:
            return memoryview(buffer)[:size]
    target = mmap.mmap(-1, limit + 1)
    try:
        size = decompress_into(data, target)
    except cramjam.DecompressionError as error:
        target.close()
        if _is_full(error):
            raise _too_large(limit) from None
        raise _corrupt(codec, error) from None
    if size > limit:
        target.close()
        raise _too_large(limit)
    return memoryview(target)[:size]


def _is_full(error: cramjam.DecompressionError) -> bool:
    return "failed to write whole buffer" in str(error)


def _compress_gzip(data: Buffer, level: int | None) -> bytearray:
    return bytearray(cramjam.gzip.compress(data, level=_GZIP_DEFAULT_LEVEL if level is None else level))


def _compress_zstd(data: Buffer, level: int | None) -> bytearray:
    return bytearray(cramjam.zstd.compress(data, level=DEFAULT_LEVELS[Codec.ZSTD] if level is None else level))


def _compress_lz4(data: Buffer, level: int | None) -> bytearray:
    """Independent blocks: Java rejects linked ones. Kafka's default level means the fast compressor."""
    compressor = cramjam.lz4.Compressor(
        level=_LZ4_FAST_LEVEL if level is None else min(level, _LZ4_MAX_LEVEL),
        content_checksum=False,
        block_linked=False,
    )
    compressor.compress(bytes(data))  # takes nothing else
    return bytearray(compressor.finish())


# --- snappy: the xerial framing of snappy-java, and bare snappy as some clients send it


def _compress_snappy(data: Buffer, level: int | None) -> bytearray:
    view = memoryview(data)
    output = bytearray(_XERIAL_HEADER)
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        output += _INT32.pack(len(block))
        output += block
    return output


def _decompress_snappy(data: memoryview, limit: int) -> Buffer:
    if data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
        blocks = _xerial_blocks(data)
    else:
        blocks = [data]
    sizes = [_snappy_size(block) for block in blocks]
    total = sum(sizes)
    if total > limit:
        raise _too_large(limit)
    output = memoryview(bytearray(total))
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        try:
            written = cramjam.snappy.decompress_raw_into(block, output[position : position + size])
        except cramjam.DecompressionError as error:
            raise _corrupt(Codec.SNAPPY, error) from None
        if written != size:
            raise _corrupt(Codec.SNAPPY, f"a block of {size} bytes gave {written}")
        position += size
    return output


def _snappy_size(block: memoryview) -> int:
    """The uncompressed size that a block claims; CORRUPT_MESSAGE where a block of its length cannot hold so much."""
    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, error) from None
    if size > len(block) * _SNAPPY_RATIO_MAX:
        raise _corrupt(Codec.SNAPPY, f"{len(block)} bytes claim to hold {size}")
    return size


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    """The blocks of one or several concatenated streams (SnappyInputStream reads on through a second header)."""
    blocks: list[memoryview] = []
    position, end = 0, len(data)
    while position < end:
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if end - position < _INT32.size:
            raise _corrupt(Codec.SNAPPY, "cut off within a block's length")
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < size <= end - position:
            raise _corrupt(Codec.SNAPPY, f"a block of {size} bytes with {end - position} left")
        blocks.append(data[position : position + size])
        position += size
    if position > end:
        raise _corrupt(Codec.SNAPPY, "cut off within the header")
    return blocks


# --- the LZ4 frame header


def _lz4_checksum_position(frame: Buffer) -> int:
    return 14 if frame[4] & _LZ4_CONTENT_SIZE else 6


def _lz4_header_checksum(frame: Buffer, *, broken: bool) -> int:
    """The header checksum byte: of the frame descriptor, or, broken, of the magic number and the descriptor."""
    end = _lz4_checksum_position(frame)
    return _xxh32_short(bytes(frame[0 if broken else 4 : end])) >> 8 & 0xFF


def _repair_lz4_header(data: Buffer) -> Buffer:
    """The frame with a correct header checksum: Kafka's readers ignore the stored one for magic 0."""
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC or len(data) <= _lz4_checksum_position(data):
        return data
    repaired = bytearray(data)
    repaired[_lz4_checksum_position(repaired)] = _lz4_header_checksum(repaired, broken=False)
    return repaired


_XXH_PRIME_1 = 2654435761
_XXH_PRIME_2 = 2246822519
_XXH_PRIME_3 = 3266489917
_XXH_PRIME_4 = 668265263
_XXH_PRIME_5 = 374761393
_UINT32_MASK = 0xFFFFFFFF


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _UINT32_MASK


def _xxh32_short(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes, which is enough for a frame header."""
    assert len(data) < 16
    result = _XXH_PRIME_5 + len(data)
    words = len(data) // 4
    for (word,) in struct.iter_unpack("<I", data[: words * 4]):
        result = _rotate_left((result + word * _XXH_PRIME_3) & _UINT32_MASK, 17) * _XXH_PRIME_4 & _UINT32_MASK
    for byte in data[words * 4 :]:
        result = _rotate_left((result + byte * _XXH_PRIME_5) & _UINT32_MASK, 11) * _XXH_PRIME_1 & _UINT32_MASK
    result = (result ^ result >> 15) * _XXH_PRIME_2 & _UINT32_MASK
    result = (result ^ result >> 13) * _XXH_PRIME_3 & _UINT32_MASK
    return result ^ result >> 16


_COMPRESSORS: Final[dict[Codec, Callable[[Buffer, int | None], bytearray]]] = {
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}

_STREAM_DECOMPRESSORS: Final[dict[Codec, Callable[[Buffer, bytearray | mmap.mmap], int]]] = {
    Codec.GZIP: lambda data, into: int(cramjam.gzip.decompress_into(data, into)),
    Codec.LZ4: lambda data, into: int(cramjam.lz4.decompress_into(data, into)),
    Codec.ZSTD: lambda data, into: int(cramjam.zstd.decompress_into(data, into)),
}
"""Functions, so that the library is loaded with the first batch that needs it: it is 2 MB."""
