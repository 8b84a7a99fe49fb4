"""The last offset of every key in the dirty part of a log, in bounded memory (Kafka's SkimpyOffsetMap).

The map takes as many keys as Kafka's: 24 bytes of `log.cleaner.dedupe.buffer.size` each, filled up to the load factor.
Dirty offsets that do not fit are left for the next cleaning. A small number of keys is kept in a dict, which is three
times as fast. When the dict would need a quarter of the memory, the keys move to one block with an MD5 digest and an
offset each, 24 bytes a key. Like Kafka, the table takes keys with equal digests for the same key.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import md5

DIGEST_SIZE = 16
ENTRY_SIZE = DIGEST_SIZE + 8
_EMPTY = bytes(DIGEST_SIZE)
_OFFSET = struct.Struct(">q")
DICT_SHARE = 4
_DICT_ENTRY_BYTES = 200  # besides the key's own bytes: its object, the offset's, and the place in the dict

NOT_FOUND = -1


class DigestTable:
    """A hash table with linear probing in one block of memory. Keys are never removed."""

    __slots__ = ("_block", "_slots", "entries")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._block = bytearray(slots * ENTRY_SIZE)
        self.entries = 0

    def put(self, key: bytes, offset: int) -> None:
        """Set the key's last offset. There must be a free slot."""
        digest = md5(key, usedforsecurity=False).digest()
        block = self._block
        place = int.from_bytes(digest[:8], "big") % self._slots * ENTRY_SIZE
        while (found := block[place : place + DIGEST_SIZE]) != digest:
            if found == _EMPTY:
                block[place : place + DIGEST_SIZE] = digest
                self.entries += 1
                break
            place += ENTRY_SIZE
            if place == len(block):
                place = 0
        _OFFSET.pack_into(block, place + DIGEST_SIZE, offset)

    def get(self, key: bytes, default: int) -> int:
        """The key's last offset, or `default` for a key that is not in the table."""
        digest = md5(key, usedforsecurity=False).digest()
        block = self._block
        place = int.from_bytes(digest[:8], "big") % self._slots * ENTRY_SIZE
        while (found := block[place : place + DIGEST_SIZE]) != digest:
            if found == _EMPTY:
                return default
            place += ENTRY_SIZE
            if place == len(block):
                place = 0
        offset: int = _OFFSET.unpack_from(block, place + DIGEST_SIZE)[0]
        return offset


class OffsetMap:
    """`latest_offset` is the last offset in the map: this cleaning ignores records above it."""

    __slots__ = ("_exact", "_key_bytes", "_memory", "_table", "latest_offset", "room", "slots")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """Raises ValueError where not even one key would fit."""
        self.slots = memory_bytes // ENTRY_SIZE
        self.room = min(int(self.slots * load_factor), self.slots - 1)  # a free slot ends every search
        if self.slots * load_factor <= 1 or self.slots < 2:
            raise ValueError(
                "offset map is too small to fit in even a single message, so log cleaning will never make progress. "
                "You can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads"
            )
        self.latest_offset = -1
        self._memory = memory_bytes
        self._exact: dict[bytes, int] = {}
        self._key_bytes = 0
        self._table: DigestTable | None = None

    def __len__(self) -> int:
        return len(self._exact) if self._table is None else self._table.entries

    @property
    def utilization(self) -> float:
        """The share of slots in use, 0 to 1."""
        return len(self) / self.slots

    def put_all(self, entries: list[tuple[bytes, int]], key_bytes_max: int) -> bool:
        """Put keys with rising offsets; False once the map is full, with `latest_offset` at the last one put.

        As in Kafka, a full map takes nothing more, not even a newer offset of a key in it. The keys have at most
        `key_bytes_max` bytes together.
        """
        table = self._table
        if table is None:
            if len(self._exact) + len(entries) <= self.room:
                self._exact.update(entries)
                self._key_bytes += key_bytes_max
                self._move_if_large()
                if entries:
                    self.latest_offset = entries[-1][1]
                return True
            table = self._move()
        for key, offset in entries:
            if table.entries >= self.room:
                return False
            table.put(key, offset)
            self.latest_offset = offset
        return True

    def _move_if_large(self) -> None:
        limit = self._memory // DICT_SHARE
        if len(self._exact) * _DICT_ENTRY_BYTES + self._key_bytes <= limit:
            return
        self._key_bytes = sum(map(len, self._exact))
        if len(self._exact) * _DICT_ENTRY_BYTES + self._key_bytes > limit:
            self._move()

    def _move(self) -> DigestTable:
        table = self._table = DigestTable(self.slots)
        while self._exact:
            table.put(*self._exact.popitem())
        self._exact = {}
        return table

    @property
    def get(self) -> Callable[[bytes, int], int]:
        """`get(key, default)`: the key's last offset."""
        return self._exact.get if self._table is None else self._table.get
