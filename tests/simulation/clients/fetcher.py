"""A reader of partitions from their start, in either isolation level; and the last reading, by which all are judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat_tests.faults.history import Read, Reader, Stored, record_of
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.record import iter_records
from tests.simulation.clients.client import Client, Lost, Partition, only_partition
from tests.simulation.world import World

WAIT_MS = 500
EARLIEST = -2


class Fetcher(Client):
    """Reads until it is stopped and at the end of what there is. What it reads is noted in `reader`.

    With `rereads` it begins again where what it has read may be gone, and before it ends.
    """

    def __init__(
        self, world: World, name: str, partitions: Sequence[Partition], *, committed: bool, rereads: bool = False
    ) -> None:
        super().__init__(world, name)
        self._partitions = partitions
        self._is_committed = committed
        self._rereads = rereads
        self._positions = dict.fromkeys(partitions, 0)
        self._aborted: dict[Partition, list[tuple[int, int]]] = {partition: [] for partition in partitions}
        self.reader = Reader(name, committed, {partition: [] for partition in partitions})

    async def run(self) -> None:
        at_end: set[Partition] = set()
        asked_again: set[Partition] = set()
        while not (self.is_stopping and len(at_end) == len(self._partitions)):
            if self.is_stopping and self._rereads:
                self._positions = dict.fromkeys(self._partitions, 0)
                self._rereads = False
            for partition in self._partitions:
                stored = await self.fetch(partition)
                if stored is None:
                    self.forget(partition)
                    await self.pause()
                    continue
                if self.is_stopping and not stored:
                    # A leader from which the partition was taken while it was away does not know that; metadata do.
                    (at_end if partition in asked_again else asked_again).add(partition)
                    self.forget(partition)
                self.reader.reads[partition] += [Read(found.offset, found.record) for found in stored]
        self.reader.finished = True
        self.close()

    async def read_all(self, partition: Partition) -> list[Stored]:
        """Everything that is there now."""
        found: list[Stored] = []
        while True:
            stored = await self.fetch(partition)
            if stored is None:
                self.forget(partition)
                await self.pause()
            elif not stored:
                return found
            else:
                found += stored

    async def fetch(self, partition: Partition) -> list[Stored] | None:
        """The next records of a partition; None where it has to be asked for again, empty at its end."""
        wanted = FetchRequest.FetchPartition(
            partition=partition[1], fetch_offset=self._positions[partition], partition_max_bytes=20_000
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            isolation_level=int(self._is_committed),
            topics=[FetchRequest.FetchTopic(topic=partition[0], partitions=[wanted])],
        )
        leader = await self.leader(partition)
        try:
            response = await self.ask(leader, request, 11)
        except Lost:
            return None
        found = only_partition(response, "responses", "partitions")
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A leader that has just been elected may not know yet how far its log is committed.
            self.note(f"{partition[0]}-{partition[1]}@{self._positions[partition]} is out of range at {leader}")
            await self._reset(leader, partition)
            return None
        if found.error_code:
            return None
        before = self._positions[partition]
        stored = list(self._records(partition, found))
        if not stored and self._positions[partition] > before:
            return await self.fetch(partition)  # only markers, or what was aborted
        return stored

    async def _reset(self, leader: int, partition: Partition) -> None:
        """Go on where the log begins, if that is later."""
        asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition[1], timestamp=EARLIEST)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=partition[0], partitions=[asked])
        try:
            response = await self.ask(leader, ListOffsetsRequest(topics=[topic]), 5)
        except Lost:
            return
        found = only_partition(response, "topics", "partitions")
        if not found.error_code and (self._rereads or found.offset > self._positions[partition]):
            self._positions[partition] = found.offset

    def _records(self, partition: Partition, found: Any) -> Iterator[Stored]:
        data = bytes(found.records or b"")
        aborted = self._aborted[partition]
        for listed in found.aborted_transactions or ():
            if (entry := (listed.first_offset, listed.producer_id)) not in aborted:
                aborted.append(entry)
        for position, header in iter_batches(data):
            verify_crc(data, position, header)
            if header.is_control:
                self._end_aborted(aborted, data, position, header)
            elif not (self._is_committed and self._is_aborted(aborted, header)):
                for record in iter_records(data, header, position):
                    if record.offset >= self._positions[partition]:
                        yield Stored(record.offset, record_of(_bytes(record.value)), header.partition_leader_epoch)
            self._positions[partition] = max(self._positions[partition], header.next_offset)

    @staticmethod
    def _is_aborted(aborted: list[tuple[int, int]], header: BatchHeader) -> bool:
        return header.is_transactional and any(
            producer_id == header.producer_id and first <= header.base_offset for first, producer_id in aborted
        )

    @staticmethod
    def _end_aborted(aborted: list[tuple[int, int]], data: bytes, position: int, header: BatchHeader) -> None:
        (record,) = iter_records(data, header, position)
        if parse_control_type(record.key) is not ControlRecordType.ABORT:
            return
        for entry in sorted(aborted):
            if entry[1] == header.producer_id and entry[0] <= header.base_offset:
                aborted.remove(entry)
                return


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)
