"""The transaction coordinators of this broker: one shard for each partition of `__transaction_state` that it leads.

`partitions` loads them. Two tasks here abort transactions that have been open for too long and forget ids that have not
been used for long, at Kafka's intervals. `transaction_markers` writes the markers that a machine orders, in a task for
each transaction.

Not here: the rules (`core.transaction`), the APIs and the creation of the topic (`handlers`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kpybroker.broker.coordinators.kind import CoordinatorKind, Run
from kpybroker.broker.coordinators.partitions import CoordinatorPartitions
from kpybroker.core.features import TRANSACTION_VERSION
from kpybroker.core.machine import Now
from kpybroker.core.topic_names import TRANSACTION_STATE_TOPIC_NAME
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction.machine import TransactionMachine
from kpybroker.core.transaction.records import TransactionRecord, decode_record, encode_record
from kpybroker.core.transaction.step import TransactionOutcome
from kpybroker.core.transaction.values import (
    AddPartitions,
    DescribedTransaction,
    EndResult,
    EndTransaction,
    InitProducerId,
    InitResult,
    MarkersWritten,
    TransactionConfig,
    TransactionOverview,
    WriteMarkers,
)
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.cluster.producer_ids import ProducerIds
    from kpybroker.broker.coordinators.shard import Shard
    from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.replicas import Replicas

EXPIRED_AT_ONCE = 500

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")


class TransactionCoordinators:
    """All transactional ids of this broker. All methods run on the loop; none but the `async` ones has a checkpoint."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        replicas: Replicas,
        producer_ids: ProducerIds,
        markers: TransactionMarkers,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._markers = markers
        config = host.config
        self.config = TransactionConfig(
            transaction_max_timeout_ms=config.get_int("transaction.max.timeout.ms"),
            transactional_id_expiration_ms=config.get_int("transactional.id.expiration.ms"),
        )
        kind = CoordinatorKind(
            topic=TRANSACTION_STATE_TOPIC_NAME,
            partitions_key="transaction.state.log.num.partitions",
            load_buffer_key="transaction.state.log.load.buffer.size",
            name=f"TransactionCoordinator id={host.node_id}",
            manager_name=f"Transaction State Manager {host.node_id}",
            contents="transaction metadata",
            logger=logger,
            manager_logger=logging.getLogger("kafka.coordinator.transaction.TransactionStateManager"),
            new_machine=lambda leader_epoch: TransactionMachine(self.config, leader_epoch, host.budget),
            encode=self._encode,
            decode=decode_record,
            codec=Codec.NONE,  # as in Kafka, which has no setting for it
            commit_timeout_s=config.get_int("request.timeout.ms") / 1000,
            tasks={
                "transaction-abort": self._abort_timed_out,
                "transactionalId-expiration": self._remove_expired,
            },
            perform=self._order_markers,
        )
        self.partitions = CoordinatorPartitions(host, metadata, replicas, kind)
        self.on_elected = self.partitions.on_elected
        self.on_resigned = self.partitions.on_resigned
        self.partition_for = self.partitions.partition_for
        self.stop = self.partitions.stop

    # --- requests. All raise COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR

    async def init_producer_id(self, request: InitProducerId) -> InitResult:
        """Give a producer its id and a new epoch, which fences its predecessors."""
        if not self.config.allows_timeout(request.timeout_ms):
            return InitResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        result: InitResult = await self._ask_with_id(replace(request, level=self._level))
        return result

    async def add(self, request: AddPartitions) -> ErrorCode:
        """Add partitions to a producer's transaction; the first ones begin it."""
        error: ErrorCode = await self.partitions.shard_for(request.transactional_id).ask(request)
        return error

    async def end(self, request: EndTransaction) -> EndResult:
        """Commit or abort a producer's transaction: returns once the decision is in the log."""
        result: EndResult = await self._ask_with_id(request)
        return result

    async def _ask_with_id(self, request: InitProducerId | EndTransaction) -> Any:
        """With a fresh producer id if one is needed; it stays unused if another request gets there first."""
        shard = self.partitions.shard_for(request.transactional_id)
        if shard.machine.needs_producer_id(request):
            request = replace(request, new_producer_id=await self._producer_ids.generate())
            shard = self.partitions.shard_for(request.transactional_id)
        return await shard.ask(request)

    def _encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        return encode_record(record, self._level)

    @property
    def _level(self) -> int:
        """The finalized level of `transaction.version`."""
        return self._metadata.snapshot.features.level(TRANSACTION_VERSION)

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[PartitionKey]
    ) -> Mapping[PartitionKey, ErrorCode]:
        """Whether these partitions belong to the producer's open transaction (KIP-890)."""
        machine = self.partitions.shard_for(transactional_id).machine
        return machine.verify(transactional_id, producer_id, producer_epoch, partitions)

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """The state of one id, with an error inside for an unknown one. Raises COORDINATOR_NOT_AVAILABLE too."""
        if not self.partitions.is_active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self.partitions.shard_for(transactional_id).machine.describe(transactional_id)

    def list_transactions(self, wanted: Callable[[TransactionOverview], bool]) -> list[TransactionOverview]:
        """All transactions that are `wanted`. Raises COORDINATOR_NOT_AVAILABLE too."""
        if not self.partitions.is_active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self.partitions.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [row for machine in self.partitions.machines for row in machine.overviews() if wanted(row)]

    # --- markers

    def _order_markers(self, machine: TransactionMachine, order: WriteMarkers, run: Run) -> None:
        name = f"write markers of {order.transactional_id}"
        self._host.spawn(name, self._write_markers, machine, order, run)

    async def _write_markers(self, machine: TransactionMachine, order: WriteMarkers, run: Run) -> None:
        errors = await self._markers.write(order)
        clock = self._host.clock
        run(machine.on_markers(MarkersWritten(order, errors), Now(clock.time_ms(), clock.monotonic())))

    # --- time

    async def _abort_timed_out(self) -> None:
        while True:
            await self._sleep("transaction.abort.timed.out.transaction.cleanup.interval.ms")
            await self._abort_all_timed_out(self._level)

    async def _abort_all_timed_out(self, level: int) -> None:
        exhausted: list[str] = []

        def abort(shard: Shard[TransactionMachine], ids: list[str]) -> TransactionOutcome:
            if shard.machine.needs_id_to_abort(ids[0], shard.now(), level):
                exhausted.append(ids[0])
                return TransactionOutcome()
            return shard.machine.abort_timed_out(ids[0], shard.now(), level)

        await self.partitions.for_each(abort)
        for transactional_id in exhausted:
            await self._abort_with_next_id(transactional_id, level)

    async def _abort_with_next_id(self, transactional_id: str, level: int) -> None:
        try:
            next_id = await self._producer_ids.generate()
            shard = self.partitions.shard_for(transactional_id)
        except KafkaError as error:
            logger.warning("The transaction of %s is aborted later: %s", transactional_id, error.code.name)
            return
        shard.run(shard.machine.abort_timed_out(transactional_id, shard.now(), level, next_id))

    async def _remove_expired(self) -> None:
        while True:
            await self._sleep("transaction.remove.expired.transaction.cleanup.interval.ms")
            await self.partitions.for_each(
                lambda shard, ids: shard.machine.remove_expired(ids, shard.now()), EXPIRED_AT_ONCE
            )

    async def _sleep(self, key: str) -> None:
        await self._host.clock.pause(self._host.config.get_int(key) / 1000)
