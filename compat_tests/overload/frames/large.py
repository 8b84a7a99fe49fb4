"""The frames of `fuzz_decode.large_frames`, whose elements are all equal: only a few of them are encoded.

To encode a hundred thousand takes as long as a broker takes to refuse many of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpybroker.wire.api import ApiInfo
from kpybroker.wire.primitives import unsigned_varint
from tests.wire.fuzz import fuzz_decode
from tests.wire.fuzz.fuzz_decode import LARGE_FRAME_BYTES

PARTS = (1, 4, 16)
"""A frame has all elements, or the largest of these parts that fits."""


def large_frames(info: ApiInfo, version: int, elements: int) -> Iterator[bytes]:
    """For each array of a request, a frame that holds `elements` in it, or the share of them that fits."""
    ones = fuzz_decode.large_frames(info, version, 1)
    for one, two in zip(ones, fuzz_decode.large_frames(info, version, 2), strict=True):
        counts = [elements // part for part in PARTS]
        fits = [count for count in counts if len(one) + (len(two) - len(one)) * count <= LARGE_FRAME_BYTES]
        if fits:
            yield _repeated(one, two, fits[0], is_compact=version >= info.flexible_from)


def _repeated(one: bytes, two: bytes, count: int, *, is_compact: bool) -> bytes:
    """The frame with `count` elements, of those with one and with two: first they differ in the number of elements."""
    size = len(two) - len(one)
    end = next(at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b) + 1
    start = end - (1 if is_compact else 4)
    length = unsigned_varint(count + 1) if is_compact else count.to_bytes(4, "big")
    return one[:start] + length + one[end : end + size] * count + one[end + size :]
