"""Where Kafka's producer sends a record with a key: ``Utils.murmur2`` and ``BuiltInPartitioner.partitionForKey``."""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as an unsigned 32-bit number."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    for position in range(0, length - length % 4, 4):
        part = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        part = (part ^ part >> 24) * _M & _MASK
        value = value * _M & _MASK ^ part
    if rest := data[length - length % 4 :]:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


def murmur2_partition(key: bytes, partitions: int) -> int:
    """The partition of a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
