"""The order in which the JVM's maps iterate over their keys, so that our JSON in the tree equals Kafka's byte for byte.

Kafka 3.9 fills a map and passes it to Jackson, which writes the keys in the map's own order: by hash, not by insertion.
No reader depends on that order, but equal bytes can be compared, and a `SetData` that changes nothing is recognized.
There are four maps: Scala's mutable and immutable ones (2.13) and Java's HashMap and Properties.

Keys are strings. The order depends on them alone, except for keys of equal hash and for Properties, where it also
depends on the order of insertion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

_MASK = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """String.hashCode, as an unsigned 32-bit value."""
    value = 0
    if text.isascii():  # nearly always; called for tens of thousands of keys
        for byte in text.encode():
            value = (31 * value + byte) & _MASK
        return value
    data = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(data), 2):
        value = (31 * value + (data[i] << 8 | data[i + 1])) & _MASK
    return value


def _spread(text: str) -> int:
    value = java_hash(text)
    return value ^ (value >> 16)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=256)
def scala_mutable_order(keys: tuple[str, ...], literal: int = 0) -> tuple[str, ...]:
    """scala.collection.mutable.HashMap: doubled when three quarters full; a bucket is sorted by hash.

    `literal` is the number of keys given when the map was made: `mutable.Map(a -> 1, b -> 2)` is sized for its
    arguments, ``mutable.Map()`` has 16 buckets.
    """
    buckets = 16 if literal == 0 else 2 << (max(int((literal + 1) / 0.75) - 1, 4).bit_length() - 1)
    while len(keys) >= buckets * 3 // 4:
        buckets *= 2
    hashed = ((_spread(key), key) for key in keys)
    ordered = sorted(hashed, key=lambda item: (item[0] & (buckets - 1), _signed(item[0])))
    return tuple(key for _, key in ordered)


@lru_cache(maxsize=256)
def scala_immutable_order(keys: tuple[str, ...]) -> tuple[str, ...]:
    """scala.collection.immutable.Map: insertion order up to four keys, a hash trie (CHAMP) from five on."""
    if len(keys) <= 4:
        return keys
    return tuple(_trie_order([(_improve(java_hash(key)), key) for key in keys], shift=0))


def scala_hash_map_order(keys: tuple[str, ...]) -> tuple[str, ...]:
    """scala.collection.immutable.HashMap: the hash trie at any size (`groupBy` makes one)."""
    return tuple(_trie_order([(_improve(java_hash(key)), key) for key in keys], shift=0))


def _improve(value: int) -> int:
    """scala.collection.Hashing.improve."""
    value = (value + (~(value << 9) & _MASK)) & _MASK
    value ^= value >> 14
    value = (value + (value << 4)) & _MASK
    return value ^ (value >> 10)


def _trie_order(items: Sequence[tuple[int, str]], shift: int) -> Iterable[str]:
    if shift >= 32:  # equal hashes
        return [key for _, key in items]
    slots: dict[int, list[tuple[int, str]]] = {}
    for item in items:
        slots.setdefault(item[0] >> shift & 31, []).append(item)
    alone = [slots[slot][0][1] for slot in sorted(slots) if len(slots[slot]) == 1]
    below = [key for slot in sorted(slots) if len(slots[slot]) > 1 for key in _trie_order(slots[slot], shift + 5)]
    return alone + below


@lru_cache(maxsize=256)
def java_hash_map_order(keys: tuple[str, ...]) -> tuple[str, ...]:
    """java.util.HashMap: 16 buckets, doubled when more than 3/4 full; a bucket keeps insertion order."""
    buckets = 16
    while len(keys) > buckets * 3 // 4:
        buckets *= 2
    return tuple(sorted(keys, key=lambda key: _spread(key) & (buckets - 1)))


def java_properties_order(keys: Sequence[str]) -> tuple[str, ...]:
    """java.util.Properties, which is a ConcurrentHashMap of 16 buckets, doubled as soon as it is 3/4 full.

    A bucket keeps insertion order until a doubling splits it: the keys at its end that go to one half keep their
    order, and those before are put in front of their halves one by one (ConcurrentHashMap.transfer).
    """
    table: list[list[str]] = [[] for _ in range(16)]
    for count, key in enumerate(keys, start=1):
        table[_spread(key) & (len(table) - 1)].append(key)
        if count >= len(table) * 3 // 4:
            table = _doubled(table)
    return tuple(key for bucket in table for key in bucket)


def _doubled(table: list[list[str]]) -> list[list[str]]:
    bit = len(table)
    halves: list[list[list[str]]] = [[[] for _ in table], [[] for _ in table]]
    for index, bucket in enumerate(table):
        if not bucket:
            continue
        sides = [1 if _spread(key) & bit else 0 for key in bucket]
        run = len(bucket)
        while run > 0 and sides[run - 1] == sides[-1]:
            run -= 1
        halves[sides[-1]][index] = bucket[run:]
        for key, side in zip(bucket[:run], sides[:run], strict=True):
            halves[side][index].insert(0, key)
    return halves[0] + halves[1]
