"""A transactional producer, of either version of transactions: batches to a few partitions, then a commit or an abort.

What fails ends the transaction: the next one begins with another epoch, and the coordinator has aborted the one before,
unless its end was asked for and the response was lost: then what became of it is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.faults.history import History, Outcome, Record, Transaction
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kpybroker.wire.messages.end_txn import EndTxnRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.simulation.clients.client import Lost, Partition, now_ns, only_partition
from tests.simulation.clients.producer import Producer
from tests.simulation.world import World

BATCHES_MAX = 4
ABORTED_OF_ALL = 0.3
TIMEOUT_MS = 15_000
PAUSE_S = 0.5
TRANSACTION = 1
"""As a type of coordinator."""
AGAIN = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
OTHER_COORDINATOR = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Failed(Exception):
    """The transaction cannot go on."""


class Transactional(Producer):
    """`version` is that of transactions: in 2 a produce adds its partition, and an end is followed by another epoch."""

    def __init__(
        self, world: World, history: History, name: str, partitions: Sequence[Partition], *, version: int
    ) -> None:
        super().__init__(world, history, name, partitions)
        self._version = version

    async def init(self) -> None:
        """A producer id and an epoch, which end what there was before."""
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS)
        while (found := await self._ask_coordinator(request, 4)) is None or found.error_code:
            await self.pause()
        self._producer_id, self._epoch = found.producer_id, found.producer_epoch
        self._sequences.clear()

    async def run(self) -> None:
        await self.init()
        while not self.is_stopping:
            await self.transaction()
            await self.pause(PAUSE_S)
        self.close()

    async def transaction(self) -> None:
        """One, and what became of it in the history."""
        sent: list[tuple[Partition, Record]] = []
        commits = self.chance.random() >= ABORTED_OF_ALL
        outcome = Outcome.ABORTED
        try:
            added: set[Partition] = set()
            for _ in range(self.chance.randint(1, BATCHES_MAX)):
                partition = self.chance.choice(self._partitions)
                if self._version == 1 and partition not in added:
                    await self._add(partition)
                    added.add(partition)
                records, batch = self._next_batch(partition, is_transactional=True)
                sent += [(partition, record) for record in records]
                await self._produce(partition, records, batch)
            outcome = Outcome.UNKNOWN
            await self._end(commits=commits)
            outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        except Failed as failure:
            self.note(f"its transaction fails: {failure}")
            await self.init()
        if not commits and outcome is Outcome.UNKNOWN:
            outcome = Outcome.ABORTED
        self.note(f"{len(sent)} records are {outcome.value}")
        self._history.transactions.append(Transaction(outcome, tuple(sent)))

    async def _produce(self, partition: Partition, records: Sequence[Record], batch: bytes) -> None:
        data = ProduceRequest.PartitionProduceData(index=partition[1], records=batch)
        topic = ProduceRequest.TopicProduceData(name=partition[0], partition_data=[data])
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=2000, topic_data=[topic])
        sent_ns = now_ns()
        while True:
            try:
                response = await self.ask(await self.leader(partition), request, 12 if self._version == 2 else 11)
                found = only_partition(response, "responses", "partition_responses")
                if found.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    offset = -1 if found.error_code else found.base_offset
                    self._note_acknowledged(partition, records, offset, sent_ns, None)
                    return
                if found.error_code not in AGAIN:
                    raise Failed(f"{partition[0]}-{partition[1]}: {ErrorCode(found.error_code).name}")
            except Lost:
                pass
            self.forget(partition)
            await self.pause()

    async def _add(self, partition: Partition) -> None:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=partition[0], partitions=[partition[1]])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )
        while True:
            response = await self._ask_coordinator(request, 3)
            if response is not None:
                found = only_partition(response, "results_by_topic_v3_and_below", "results_by_partition")
                if found.partition_error_code == ErrorCode.NONE:
                    return
                if found.partition_error_code in OTHER_COORDINATOR:
                    self.forget_coordinators()
                elif found.partition_error_code not in AGAIN:
                    raise Failed(f"adding: {ErrorCode(found.partition_error_code).name}")
            await self.pause()

    async def _end(self, *, commits: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commits,
        )
        while True:
            response = await self._ask_coordinator(request, 5 if self._version == 2 else 4)
            if response is not None and response.error_code == ErrorCode.NONE:
                if self._version == 2:
                    self._take(response)
                return
            if response is not None and response.error_code not in AGAIN:
                raise Failed(f"ending: {ErrorCode(response.error_code).name}")
            await self.pause()

    def _take(self, response: Any) -> None:
        """The epoch of the next transaction, in which sequences begin again."""
        if (response.producer_id, response.producer_epoch) == (self._producer_id, self._epoch):
            self.world.problem(f"epoch not bumped: {self.name}, at an end of version 2: {self._epoch}")
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch
        self._sequences.clear()

    async def _ask_coordinator(self, request: Any, version: int) -> Any:
        """None: there was no response, or another one is the coordinator."""
        try:
            response = await self.ask(await self.coordinator(self.name, TRANSACTION), request, version)
        except Lost:
            self.forget_coordinators()
            return None
        if getattr(response, "error_code", 0) in OTHER_COORDINATOR:
            self.forget_coordinators()
            return None
        return response
