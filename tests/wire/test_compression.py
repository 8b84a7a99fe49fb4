"""Codecs: decompression restores the bytes, in every framing that clients use, within the limit."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.wire.compression import (
    DEFAULT_LEVELS,
    LEVELS,
    Codec,
    compress,
    decompress,
    has_linked_lz4_blocks,
)
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.examples import examples
from tests.wire import bombs

LIMIT = 1 << 20
CODEC_MAGICS = [(codec, magic) for codec in Codec for magic in (0, 1, 2) if codec is not Codec.ZSTD or magic == 2]
BITE_SIZED = st.one_of(
    st.binary(max_size=2000),
    st.builds(lambda unit, count: unit * count, st.binary(min_size=1, max_size=20), st.integers(1, 10_000)),
)


def outcome(codec: Codec, data: bytes | bytearray, magic: int) -> int:
    """The size of the output; 0 for a refusal with one of the expected codes."""
    try:
        return len(decompress(codec, data, LIMIT, magic))
    except KafkaError as error:
        if error.code not in bombs.REFUSED:
            raise
        return 0


@pytest.mark.parametrize(("codec", "magic"), CODEC_MAGICS)
@given(data=BITE_SIZED)
@settings(max_examples=25, deadline=None)
def test_decompression_restores_what_was_compressed(codec: Codec, magic: int, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data, magic=magic), LIMIT, magic)) == data


@pytest.mark.parametrize(("codec", "magic"), [pair for pair in CODEC_MAGICS if pair[0] is not Codec.NONE])
@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 300_000])
def test_the_limit_is_exact(codec: Codec, magic: int, size: int) -> None:
    data = os.urandom(size // 2) + bytes(size - size // 2)
    compressed = compress(codec, data, magic=magic)
    assert bytes(decompress(codec, compressed, size, magic)) == data
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.MESSAGE_TOO_LARGE):
        decompress(codec, compressed, size - 1, magic)


def test_uncompressed_bytes_are_returned_at_any_limit() -> None:
    data = bytes(100)
    assert decompress(Codec.NONE, data, 1) is data


@pytest.mark.parametrize("codec", LEVELS)
def test_every_level_of_kafka_is_taken(codec: Codec) -> None:
    data = b"some words, some words again, " * 500
    low, high = LEVELS[codec]
    for level in {low, max(low, -5), 1, DEFAULT_LEVELS[codec], high}:
        assert bytes(decompress(codec, compress(codec, data, level), LIMIT)) == data
    for level in (low - 1, high + 1):
        if level != DEFAULT_LEVELS[codec] and not (codec is Codec.GZIP and level == 0 and low == 0):
            with pytest.raises(ValueError):
                compress(codec, data, level)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_any_buffer_is_taken(codec: Codec) -> None:
    data = b"0123456789" * 50
    compressed = compress(codec, bytearray(data))
    for kind in (bytes, bytearray, memoryview):
        assert bytes(decompress(codec, kind(compressed), LIMIT)) == data


def test_snappy_is_framed_as_snappy_java_does_and_read_bare_too() -> None:
    data = os.urandom(100) * 1000
    framed = compress(Codec.SNAPPY, data)
    assert framed[:16] == b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"
    (first,) = struct.unpack_from(">i", framed, 16)
    assert cramjam.snappy.decompress_raw_len(framed[20 : 20 + first]) == 32 * 1024
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), LIMIT)) == data


def test_concatenated_snappy_streams_are_one() -> None:
    framed = compress(Codec.SNAPPY, b"first ") + compress(Codec.SNAPPY, b"second")
    assert bytes(decompress(Codec.SNAPPY, framed, LIMIT)) == b"first second"


def test_lz4_is_written_with_independent_blocks_and_read_with_either() -> None:
    data = os.urandom(1000) * 300
    ours = compress(Codec.LZ4, data)
    assert not has_linked_lz4_blocks(ours)
    linked = cramjam.lz4.Compressor(block_linked=True)
    linked.compress(data)
    theirs = bytes(linked.finish())
    assert has_linked_lz4_blocks(theirs)
    assert bytes(decompress(Codec.LZ4, theirs, LIMIT)) == data


def test_magic_0_lz4_has_the_checksum_of_kafka_3160() -> None:
    right, broken = compress(Codec.LZ4, b"hello", magic=1), compress(Codec.LZ4, b"hello", magic=0)
    assert right[6] != broken[6]
    assert right[:6] + right[7:] == broken[:6] + broken[7:]
    assert bytes(decompress(Codec.LZ4, broken, LIMIT, 0)) == b"hello"
    assert bytes(decompress(Codec.LZ4, right, LIMIT, 0)) == b"hello"
    with pytest.raises(KafkaError):
        decompress(Codec.LZ4, broken, LIMIT, 1)


def test_several_members_or_frames_are_one_stream() -> None:
    parts = (b"one ", b"", b"two")
    assert bytes(decompress(Codec.GZIP, b"".join(map(gzip.compress, parts)), LIMIT)) == b"one two"
    frames = b"".join(bytes(cramjam.zstd.compress(part)) for part in parts)
    assert bytes(decompress(Codec.ZSTD, frames, LIMIT)) == b"one two"


def test_zstd_without_a_content_size_is_read() -> None:
    stream = cramjam.zstd.Compressor(level=3)
    frame = b""
    for _ in range(10):
        stream.compress(b"chunk" * 20_000)
        frame += bytes(stream.flush())
    frame += bytes(stream.finish())
    assert len(decompress(Codec.ZSTD, frame, LIMIT)) == 1_000_000


@pytest.mark.parametrize(("codec", "magic"), [pair for pair in CODEC_MAGICS if pair[0] is not Codec.NONE])
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_damaged_input_raises_nothing_but_kafka_errors(codec: Codec, magic: int, data: st.DataObject) -> None:
    compressed = bytearray(compress(codec, b"a sentence, another sentence, " * 40, magic=magic))
    for _ in range(data.draw(st.integers(1, 4))):
        compressed[data.draw(st.integers(0, len(compressed) - 1))] = data.draw(st.integers(0, 255))
    del compressed[data.draw(st.integers(0, len(compressed))) :]
    assert outcome(codec, compressed, magic) <= LIMIT


@pytest.mark.parametrize(("codec", "magic"), [pair for pair in CODEC_MAGICS if pair[0] is not Codec.NONE])
@given(noise=st.binary(max_size=200))
@settings(max_examples=examples(60), deadline=None)
def test_noise_raises_nothing_but_kafka_errors(codec: Codec, magic: int, noise: bytes) -> None:
    assert outcome(codec, noise, magic) <= LIMIT


@pytest.mark.not_quick
def test_forty_bombs_are_refused_and_memory_stays_flat(tmp_path: Path) -> None:
    """Measured by the peak memory of a fresh process: no more than the limit and a codec's own window."""
    for codec, build in bombs.BUILDERS.items():
        for index, bomb in enumerate(build()):
            (tmp_path / f"{codec.name}-{index}").write_bytes(bomb)
    command = [sys.executable, "-m", "tests.wire.bombs", str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in output.splitlines()]
    assert len(lines) == 40
    refusals = {code.name for code in bombs.REFUSED}
    assert [line for line in lines if line[1] not in refusals] == []
    assert max(int(line[2]) for line in lines) <= (bombs.LIMIT + 8 * bombs.MIB) // 1024
