"""The partition of a key, against values of Kafka's own test of it."""

from __future__ import annotations

import pytest

from kpybroker.wire.records.partitioner import murmur2, murmur2_partition


@pytest.mark.parametrize(
    ("key", "expected"),
    # The values of Kafka's own test of it (UtilsTest.testMurmur2), as signed numbers.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_go_where_kafkas_producer_sends_them(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF
    assert murmur2_partition(key, 7) == (expected & 0x7FFFFFFF) % 7
