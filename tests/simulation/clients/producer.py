"""An idempotent producer: batches of a few records, one in flight, each sent until it is acknowledged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import trio

from compat_tests.faults.history import Acknowledged, History, Record
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import BatchFields, build_batch
from tests.simulation.clients.client import Client, Lost, Partition, now_ns, only_partition
from tests.simulation.seams.clock import EPOCH_MS
from tests.simulation.world import World

RECORDS_MAX = 4
SIZES = (0, 0, 0, 200, 2000)
PAUSE_S = 0.4
FATAL = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
"""What no run may lead to: the producer has sent everything in order, and its state may not be lost."""


class Refused(Exception):
    """The leader has lost what was sent to it before: what was in this batch is given up."""


class Producer(Client):
    """What it has begun is finished before it ends, so that each of its records is there or was never sent.

    With `may_lose` leaders may be elected that have not got all: then it goes on with another producer id.
    """

    def __init__(
        self,
        world: World,
        history: History,
        name: str,
        partitions: Sequence[Partition],
        *,
        may_lose: bool = False,
    ) -> None:
        super().__init__(world, name)
        self._may_lose = may_lose
        self._history = history
        self._partitions = partitions
        self._sequences: dict[Partition, int] = defaultdict(int)
        self._number = 0
        self._producer_id = self._epoch = -1
        history.idempotent.add(name)

    async def run(self) -> None:
        await self.init()
        while not self.is_stopping:
            try:
                await self.produce(self.chance.choice(self._partitions))
            except Refused:
                await self.init()
                self._sequences.clear()
            await self.pause(PAUSE_S)
        self.close()

    async def init(self) -> None:
        while True:
            try:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                found = await self.ask(self.any_broker(), request, 4)
                if found.error_code == 0:
                    self._producer_id, self._epoch = found.producer_id, found.producer_epoch
                    return
            except Lost:
                pass
            await self.pause()

    async def produce(self, partition: Partition) -> None:
        """A batch, acknowledged."""
        records, batch = self._next_batch(partition)
        sent_ns, tries = now_ns(), 1
        while (offset := await self._send(partition, batch)) is None:
            self.forget(partition)
            await self.pause()
            tries += 1
        # A leader acknowledges also what is there from the epoch of another one, if that was sent to it again.
        self._note_acknowledged(
            partition, records, offset, sent_ns, self.leaders.get(partition) if tries == 1 else None
        )

    def _next_batch(self, partition: Partition, *, is_transactional: bool = False) -> tuple[list[Record], bytes]:
        """A few new records, and their batch with the next sequence numbers."""
        records = [Record(self.name, self._number + index) for index in range(self.chance.randint(1, RECORDS_MAX))]
        self._number += len(records)
        values = [record.value(self.chance.choice(SIZES)).encode() for record in records]
        time_ms = EPOCH_MS + int(trio.current_time() * 1000)
        fields = BatchFields(
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences[partition],
            is_transactional=is_transactional,
        )
        self._sequences[partition] += len(records)
        rows = [(self._key(record), value, time_ms) for record, value in zip(records, values, strict=True)]
        return records, bytes(build_batch(rows, fields))

    def _key(self, record: Record) -> bytes | None:
        return None

    def _note_acknowledged(
        self, partition: Partition, records: Sequence[Record], offset: int, sent_ns: int, broker: int | None
    ) -> None:
        self.note(f"{records[0].number}+{len(records)} acknowledged at {partition[0]}-{partition[1]}@{offset}")
        for index, record in enumerate(records):
            place = offset + index if offset >= 0 else -1
            self._history.acknowledged[partition].append(Acknowledged(record, place, sent_ns, now_ns(), broker))

    async def _send(self, partition: Partition, batch: bytes) -> int | None:
        """Its first offset, -1 if it was there already and where is not known; None: it has to be sent again."""
        data = ProduceRequest.PartitionProduceData(index=partition[1], records=batch)
        topic = ProduceRequest.TopicProduceData(name=partition[0], partition_data=[data])
        leader = await self.leader(partition)
        try:
            response = await self.ask(leader, ProduceRequest(acks=-1, timeout_ms=2000, topic_data=[topic]), 9)
        except Lost as error:
            self.note(f"no response to a batch for {partition[0]}-{partition[1]}: {error}")
            return None
        found = only_partition(response, "responses", "partition_responses")
        if found.error_code == ErrorCode.NONE:
            return int(found.base_offset)
        if found.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1
        refusal = ErrorCode(found.error_code)
        self.note(f"a batch for {partition[0]}-{partition[1]} is refused: {refusal.name}")
        if refusal in FATAL and self._may_lose:
            raise Refused
        if refusal in FATAL:
            self.world.problem(f"{refusal.name}: {self.name}, from {leader} for {partition[0]}-{partition[1]}")
        return None
