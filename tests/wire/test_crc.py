"""The checksum of record batches."""

from __future__ import annotations

import sys

from kpybroker.wire.crc import crc32c


def test_known_value() -> None:
    # the check value of CRC-32C (RFC 3720, appendix B.4 uses the same polynomial)
    assert crc32c(b"123456789") == 0xE3069283


def test_takes_any_buffer_without_a_copy() -> None:
    data = bytearray(b"xx123456789xx")
    assert crc32c(memoryview(data)[2:-2]) == crc32c(data[2:-2]) == 0xE3069283


def test_agrees_with_the_package() -> None:
    import crc32c as package

    assert all(crc32c(bytes(range(size))) == package.crc32c(bytes(range(size))) for size in range(256))
    assert "crc32c" in sys.modules
