"""What ought to stand in the topics: every record that a broker has acknowledged, whichever broker it was."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

Partition = tuple[str, int]


class Entry(NamedTuple):
    """A record as a client wrote it and reads it."""

    key: str | None
    value: str | None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Contents:
    """Records by offset; those that a transaction has not committed are apart."""

    entries: dict[Partition, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))
    uncommitted: dict[Partition, set[int]] = field(default_factory=lambda: defaultdict(set))
    last_stable: dict[Partition, int] = field(default_factory=dict)  # where a transaction is left open
    unacknowledged: dict[Partition, set[Entry]] = field(default_factory=lambda: defaultdict(set))
    compacted: set[str] = field(default_factory=set)
    groups: dict[str, dict[Partition, int]] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[str, str] = field(default_factory=dict)
    partition_counts: dict[str, int] = field(default_factory=dict)

    def add(self, partition: Partition, offset: int, entry: Entry, *, committed: bool = True) -> None:
        assert offset not in self.entries[partition], f"{partition} has two records at offset {offset}"
        self.entries[partition][offset] = entry
        if not committed:
            self.uncommitted[partition].add(offset)

    def adopt(self, partition: Partition, read: dict[int, Entry]) -> None:
        """Take over what was found of records whose producer had no response when the broker was killed."""
        for offset, entry in read.items():
            if offset not in self.entries[partition] and entry in self.unacknowledged[partition]:
                self.unacknowledged[partition].discard(entry)
                self.add(partition, offset, entry)
        self.unacknowledged[partition].clear()

    def of(self, partition: Partition, isolation: str) -> dict[int, Entry]:
        """What a consumer of that isolation level reads; for a compacted topic at the most."""
        entries = self.entries[partition]
        if isolation != "read_committed":
            return dict(entries)
        hidden, end = self.uncommitted[partition], self.last_stable.get(partition, 2**63)
        return {offset: entry for offset, entry in entries.items() if offset not in hidden and offset < end}

    def differences(self, partition: Partition, isolation: str, read: dict[int, Entry]) -> list[str]:
        """What is wrong with the records that a consumer has read from the start to the end."""
        expected = self.of(partition, isolation)
        wrong = [
            f"{partition} {isolation} offset {offset}: read {read[offset]}, written {expected.get(offset)}"
            for offset in read
            if read[offset] != expected.get(offset)
        ]
        needed = set(expected)
        if partition[0] in self.compacted:
            last_of_key = {entry.key: offset for offset, entry in sorted(expected.items())}
            needed = {offset for offset in last_of_key.values() if expected[offset].value is not None}
        wrong += [f"{partition} {isolation} offset {offset} is missing" for offset in sorted(needed - set(read))]
        return wrong[:20]
