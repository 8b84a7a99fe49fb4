"""A producer of records with keys to a compacted topic: of each key the last record is there, whatever was cleaned."""

from __future__ import annotations

from collections.abc import Sequence

from compat_tests.faults.history import History, Record
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.producer import Producer
from tests.simulation.world import World

TOPIC = "k"
KEYS = 5
CONFIGS = {
    "cleanup_policy": "compact",
    "segment_bytes": "10240",
    "min_cleanable_dirty_ratio": "0.01",
}


class Keyed(Producer):
    """Its records have a history of their own: the checker of the others knows of no compaction."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, History(), name, [(TOPIC, 0)])
        self.keys: dict[Record, bytes] = {}

    def _key(self, record: Record) -> bytes:
        return self.keys.setdefault(record, b"key%d" % self.chance.randrange(KEYS))

    async def judge(self) -> None:
        """Once it has ended, so that all that it has sent was acknowledged."""
        partition = self._partitions[0]
        reader = Fetcher(self.world, f"last-{self.name}", [partition], committed=False)
        found = [
            stored.record
            for stored in await reader.read_all(partition)
            if stored.record is None or stored.record.producer == self.name
        ]
        reader.close()
        for problem in self._wrong(found):
            self.world.problem(f"compacted: {problem}")

    def _wrong(self, found: Sequence[Record | None]) -> list[str]:
        last = {key: record for record, key in self.keys.items()}
        problems = [
            f"{record.producer}.{record.number} is not there, the last one of {key!r}"
            for key, record in last.items()
            if record not in found
        ]
        numbers = [-1 if record is None else record.number for record in found]
        if numbers != sorted(set(numbers)) or -1 in numbers:
            problems.append(f"twice, out of order or invented: {numbers}")
        if any(record not in self.keys for record in found):
            problems.append(f"records that were not sent: {found}")
        return problems
