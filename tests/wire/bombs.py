"""Small inputs that decompress to a lot of output, forty of them, ten a codec. Built without holding the output.

Run as a program on a directory of them, it decompresses each under a limit and prints the growth of its peak memory in
KiB: the test measures in a fresh process.
"""

from __future__ import annotations

import gzip
import resource
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import cramjam

from kpybroker.wire.compression import Codec, compress, decompress
from kpybroker.wire.errors import ErrorCode, KafkaError

MIB = 1024 * 1024
BOMB_BYTES = 256 * MIB
LIMIT = 4 * MIB
REFUSED = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE)


def gzip_stream(size: int, level: int, pattern: bytes = bytes(MIB)) -> bytes:
    compressor = zlib.compressobj(level, zlib.DEFLATED, 31)
    parts = [compressor.compress(pattern) for _ in range(size // MIB)]
    return b"".join((*parts, compressor.flush()))


def gzip_bombs() -> Iterator[bytes]:
    for level in (1, 6, 9):
        yield gzip_stream(BOMB_BYTES // 16, level)
    member = gzip.compress(bytes(MIB))
    yield member * 256
    yield gzip.compress(b"") * 100 + member * 256
    yield gzip.compress(bytes(64 * 1024)) * 4096
    yield gzip_stream(BOMB_BYTES // 16, 6, bytes(range(256)) * 4096)
    yield gzip_stream(BOMB_BYTES // 16, 6)[:-8] + bytes(8)  # false checksum and size
    yield gzip_stream(BOMB_BYTES // 16, 6)[:-4] + struct.pack("<I", 10)  # claims to be short
    yield gzip_stream(BOMB_BYTES // 16, 6)[:60_000]  # cut off


def lz4_frame(block: bytes, count: int, *, flags: int = 0x60, block_id: int = 7, descriptor: bytes = b"") -> bytes:
    """Independent blocks without checksums; the descriptor's checksum is borrowed from a repaired magic 0 frame."""
    from kpybroker.wire.compression import _lz4_header_checksum

    head = b"\x04\x22\x4d\x18" + bytes((flags, block_id << 4)) + descriptor
    head += bytes((_lz4_header_checksum(head + b"\0", broken=False),))
    return head + (struct.pack("<I", len(block)) + block) * count + bytes(4)


def lz4_bombs() -> Iterator[bytes]:
    blocks = {
        block_id: bytes(cramjam.lz4.compress_block(bytes(size), store_size=False))
        for block_id, size in ((4, 64 * 1024), (5, 256 * 1024), (6, MIB), (7, 4 * MIB))
    }
    sizes = {4: 64 * 1024, 5: 256 * 1024, 6: MIB, 7: 4 * MIB}
    for block_id, block in blocks.items():
        yield lz4_frame(block, BOMB_BYTES // sizes[block_id], block_id=block_id)
    frame = lz4_frame(blocks[7], 1)
    yield frame * 64
    yield lz4_frame(blocks[7], 64, flags=0x68, descriptor=struct.pack("<Q", 100))  # claims to be short
    yield lz4_frame(blocks[7], 64, flags=0x68, descriptor=struct.pack("<Q", 2**62))
    yield lz4_frame(blocks[7], 64)[:-4]  # no end mark
    linked = cramjam.lz4.Compressor(block_linked=True)
    for _ in range(64):
        linked.compress(bytes(MIB))
    yield bytes(linked.finish())
    yield bytes(cramjam.lz4.compress(bytes(range(256)) * 65536))


def snappy_bombs() -> Iterator[bytes]:
    raw = bytes(cramjam.snappy.compress_raw(bytes(32 * MIB)))
    yield raw
    yield b"\xff\xff\xff\xff\x0f" + raw[4:]  # claims 4 GiB
    yield b"\x80\x80\x80\x80\x04\x00"  # claims 1 GiB in six bytes
    header = compress(Codec.SNAPPY, b"")
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    yield header + (struct.pack(">i", len(block)) + block) * 256
    yield (header + struct.pack(">i", len(block)) + block) * 256
    yield header + struct.pack(">i", len(raw)) + raw
    lie = b"\xff\xff\xff\xff\x0f" + block[3:]
    yield header + struct.pack(">i", len(lie)) + lie
    yield header + (struct.pack(">i", 6) + b"\x80\x80\x80\x80\x04\x00") * 1000
    yield header + struct.pack(">i", 2**31 - 1) + raw
    yield header + (struct.pack(">i", len(block)) + block) * 256 + b"\0"


def zstd_frame(blocks: int, *, block_size: int = 128 * 1024, descriptor: bytes = b"\x00\x58") -> bytes:
    """A frame of RLE blocks: three bytes of header and one byte that expands to `block_size`."""
    frame = bytearray(b"\x28\xb5\x2f\xfd" + descriptor)
    for index in range(blocks):
        frame += struct.pack("<I", block_size << 3 | 1 << 1 | (index == blocks - 1))[:3] + b"\0"
    return bytes(frame)


def zstd_bombs() -> Iterator[bytes]:
    count = BOMB_BYTES // (128 * 1024)
    yield zstd_frame(count)
    yield zstd_frame(count * 4)
    yield zstd_frame(1) * count
    yield zstd_frame(count, descriptor=b"\x80\x58" + struct.pack("<I", 1000))  # claims to be short
    yield zstd_frame(count, descriptor=b"\xc0\x58" + struct.pack("<Q", 2**62))  # claims to be endless
    yield zstd_frame(count, descriptor=b"\x00\x88")  # a window of 128 MiB
    yield b"\x50\x2a\x4d\x18" + struct.pack("<I", 2**32 - 1) + zstd_frame(count)  # a skippable frame past the end
    yield bytes(cramjam.zstd.compress(bytes(64 * MIB), level=3))
    stream = cramjam.zstd.Compressor(level=1)
    for _ in range(64):
        stream.compress(bytes(MIB))
    yield bytes(stream.finish())
    yield zstd_frame(count)[:-4]  # no last block


BUILDERS: dict[Codec, Callable[[], Iterator[bytes]]] = {
    Codec.GZIP: gzip_bombs,
    Codec.LZ4: lz4_bombs,
    Codec.SNAPPY: snappy_bombs,
    Codec.ZSTD: zstd_bombs,
}


@cache
def all_bombs() -> Sequence[tuple[Codec, bytes]]:
    """All forty, 54 MB: to make them takes a second."""
    return tuple((codec, bomb) for codec, build in BUILDERS.items() for bomb in build())


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(directory: Path) -> None:
    """One line for each bomb: codec, index, result, growth of the peak so far."""
    bombs = [(Codec[path.stem.split("-")[0]], path.stem, path.read_bytes()) for path in sorted(directory.iterdir())]
    for codec in BUILDERS:
        decompress(codec, compress(codec, b"warm"), LIMIT)
    before = peak_kib()
    for codec, name, bomb in bombs:
        try:
            outcome = str(len(decompress(codec, bomb, LIMIT)))
        except KafkaError as error:
            outcome = error.code.name
        print(name, outcome, peak_kib() - before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
