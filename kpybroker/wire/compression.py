"""Codecs of record batches."""

from __future__ import annotations

from enum import IntEnum


class Codec(IntEnum):
    """Kafka's CompressionType; the ids are the low three attribute bits of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
