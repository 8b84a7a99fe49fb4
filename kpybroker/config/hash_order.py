"""The order in which Kafka lists configuration keys: that of its hash map.

It is not documented but always the same, and tests of clients rely on the first entry of a response.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

_BUCKETS_MIN = 16
"""Scala's ``mutable.HashMap`` starts with this many and doubles them when it is three quarters full."""


def hash_order(names: Collection[str]) -> list[str]:
    """`names` in the order of a response of Kafka. The order depends on how many names there are."""
    buckets = _BUCKETS_MIN
    while len(names) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(names, key=lambda name: (_hash(name) & (buckets - 1), _hash(name)))


def hash_set_order(names: Collection[str]) -> list[str]:
    """Distinct `names`, in the order of their insertion, in that of a Java ``HashSet`` that grew with them."""
    buckets = _BUCKETS_MIN
    while len(names) > buckets * 3 // 4:
        buckets *= 2
    return sorted(names, key=lambda name: _hash(name) & (buckets - 1))


@lru_cache(1024)
def _hash(name: str) -> int:
    """Java's ``String.hashCode``, signed, with the upper half mixed into the lower half."""
    units = name.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    code ^= code >> 16
    return code - (1 << 32) if code >> 31 else code
