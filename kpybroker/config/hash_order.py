"""The order in which Kafka lists configuration keys: that of the hash map that it keeps them in.

Nobody promised it, but it is always the same, and clients' tests take the first entry of an answer for what Kafka's is.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

FEWEST_BUCKETS = 16
"""Scala's `mutable.HashMap`: so many to begin with, twice as many whenever three quarters of them are reached."""


def hash_order(names: Collection[str]) -> list[str]:
    """The keys of an answer, as Kafka lists them. Which come first depends on how many there are."""
    buckets = FEWEST_BUCKETS
    while len(names) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(names, key=lambda name: (_hash(name) & (buckets - 1), _hash(name)))


@lru_cache(1024)
def _hash(name: str) -> int:
    """Java's of a string, signed, its upper half mixed into the lower one."""
    units = name.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    code ^= code >> 16
    return code - (1 << 32) if code >> 31 else code
