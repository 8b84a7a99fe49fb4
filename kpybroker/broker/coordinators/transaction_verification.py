"""Verification (KIP-890): before a transaction's first batch enters a partition, its coordinator must confirm that the
transaction is open and includes the partition. For producers of transactions of version 2 it adds the partition.

Kafka's AddPartitionsToTxnManager and ``ReplicaManager.maybeSendPartitionsToTransactionCoordinator``. If the producer's
transaction is open in the partition already, the coordinator is not asked. A verification begins by taking a guard,
which the append must present. A marker in between invalidates the guard: otherwise a late batch could open a
transaction that never ends.

Which version a transaction has, its requests say: so it ends as it began when the cluster's level changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.log.verification import NO_VERIFICATION, VerificationGuard
from kpybroker.core.topic_names import TRANSACTION_STATE_TOPIC_NAME
from kpybroker.core.topic_partition import PartitionKey, indexes_by_topic
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM, AddPartitions
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.records.batch import parse_header

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.coordinators.transaction_markers import AskPeer
    from kpybroker.broker.coordinators.transactions import TransactionCoordinators
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.wire.messages.produce import ProduceRequest

BETWEEN_BROKERS_VERSION = 4


class Asks(Enum):
    """What the coordinator is asked for a client (``TransactionSupportedOperation``): its version of a request says."""

    VERIFY = "VERIFY"
    """Whether the transaction has the partition; the client does not know TRANSACTION_ABORTABLE."""
    VERIFY_ABORTABLE = "VERIFY_ABORTABLE"
    """The same for a client that does."""
    ADD = "ADD"
    """To add the partition: the transaction is of version 2."""

    @classmethod
    def of(cls, version: int, abortable_from: int) -> Asks:
        """Of a request whose version `abortable_from` knows TRANSACTION_ABORTABLE, and whose next one adds."""
        if version > abortable_from:
            return cls.ADD
        return cls.VERIFY_ABORTABLE if version == abortable_from else cls.VERIFY


# The coordinator cannot say now. Old clients may not retry on these codes, but do on NOT_ENOUGH_REPLICAS.
_RETRIABLE = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class VerificationError(KafkaError):
    """A batch that must not be appended; `client_message` goes to the client together with the code."""

    def __init__(self, code: ErrorCode, client_message: str | None = None) -> None:
        super().__init__(code, client_message)
        self.client_message = client_message


class Verification:
    """The result for batches of one transaction: an error, or the guard to append with, for each partition."""

    __slots__ = ("asks", "errors", "guards")

    def __init__(self, asks: Asks) -> None:
        self.asks = asks
        self.errors: dict[PartitionKey, ErrorCode] = {}
        self.guards: dict[PartitionKey, VerificationGuard] = {}

    def guard(self, partition: PartitionKey) -> VerificationGuard:
        """NO_VERIFICATION if none was needed."""
        return self.guards.get(partition, NO_VERIFICATION)

    def produce_guard(self, partition: PartitionKey) -> VerificationGuard:
        """The guard to append a client's batch with. Raises VerificationError."""
        code = self.errors.get(partition, ErrorCode.NONE)
        if code is ErrorCode.NONE:
            return self.guard(partition)
        if code is ErrorCode.INVALID_TXN_STATE:
            raise VerificationError(code, "Partition was not added to the transaction")
        # A client that adds by producing knows CONCURRENT_TRANSACTIONS, which is usual while markers are written.
        is_known = code is ErrorCode.CONCURRENT_TRANSACTIONS and self.asks is Asks.ADD
        if code in _RETRIABLE and not is_known:
            raise VerificationError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                "Unable to verify the partition has been added to the transaction. Underlying error: " + code.name,
            )
        raise VerificationError(code)


class TransactionProducer(NamedTuple):
    """A producer as its requests name it, and who is charged for it. An empty transactional id is refused."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    owner: Owner = UNOWNED


class TransactionVerifier:
    """Asks coordinators, here or on other brokers. `coordinators` are this broker's own, built at the first call."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        replicas: Replicas,
        ask_peer: AskPeer,
        coordinators: Callable[[], TransactionCoordinators],
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._replicas = replicas
        self._ask_peer = ask_peer
        self._coordinators = coordinators

    async def verify_produce(
        self,
        request: ProduceRequest,
        budget: YieldBudget,
        may_write: Callable[[str], bool],
        *,
        asks: Asks,
        owner: Owner,
    ) -> Verification:
        """Verify every transactional batch of a produce request, of the topics that `may_write` allows.

        Raises INVALID_PRODUCER_ID_MAPPING if there are several producers.
        """
        producers: dict[tuple[int, int], dict[PartitionKey, int]] = {}
        unknown: dict[PartitionKey, ErrorCode] = {}
        for topic in request.topic_data:
            if not topic.name or not may_write(topic.name):
                continue
            for data in topic.partition_data:
                await budget.spend()
                if not data.records:
                    continue
                if not self._metadata.contains(topic.name, data.index):
                    # Kafka refuses this too. While a broker starts it may lead a partition before its metadata arrive.
                    unknown[topic.name, data.index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    continue
                try:
                    header = parse_header(data.records)
                except KafkaError:
                    continue  # the append will refuse it
                if header.is_transactional and header.has_producer_id:
                    sequences = producers.setdefault((header.producer_id, header.producer_epoch), {})
                    sequences[topic.name, data.index] = header.base_sequence
        if len(producers) > 1:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
            )
        result = Verification(asks)
        for (producer_id, producer_epoch), sequences in producers.items():
            producer = TransactionProducer(request.transactional_id or "", producer_id, producer_epoch, owner)
            result = await self.verify_patiently(producer, sequences, asks)
        result.errors |= unknown
        return result

    async def verify_patiently(
        self, producer: TransactionProducer, sequences: Mapping[PartitionKey, int], asks: Asks
    ) -> Verification:
        """`verify`, repeated for a while where partitions are added and the transaction before is not complete yet: a
        producer waits longer than that, and sends its records again.
        """
        config = self._host.config
        backoff_s = config.get_int("add.partitions.to.txn.retry.backoff.ms") / 1000
        retry_ms = min(
            config.get_int("add.partitions.to.txn.retry.backoff.max.ms"), config.get_int("request.timeout.ms")
        )
        deadline = trio.current_time() + retry_ms / 1000
        while True:
            result = await self.verify(producer, sequences, asks)
            if (
                asks is not Asks.ADD
                or ErrorCode.CONCURRENT_TRANSACTIONS not in result.errors.values()
                or trio.current_time() >= deadline
            ):
                return result
            await trio.sleep(backoff_s)

    async def verify(
        self, producer: TransactionProducer, sequences: Mapping[PartitionKey, int], asks: Asks
    ) -> Verification:
        """Verify partitions of a producer's transaction, or add them to it; `sequences` has the first sequence of each
        one's batch.
        """
        result = Verification(asks)
        is_needed = asks is Asks.ADD or self._host.config.get_bool("transaction.partition.verification.enable")
        if not is_needed:
            return result
        now_ms = self._host.clock.time_ms()
        for key, sequence in sequences.items():
            try:
                guard = (
                    self._replicas.hosted(*key)
                    .leader_log()
                    .start_verification(
                        producer.producer_id, sequence, producer.producer_epoch, now_ms, adds=asks is Asks.ADD
                    )
                )
            except KafkaError as error:
                result.errors[key] = error.code
            else:
                if guard is not NO_VERIFICATION:
                    result.guards[key] = guard
        if result.guards:
            results = await self._ask_coordinator(producer, result.guards, asks)
            for key, code in results.items():
                if code is ErrorCode.PRODUCER_FENCED:
                    result.errors[key] = ErrorCode.INVALID_PRODUCER_EPOCH  # what producers expect here
                elif code is ErrorCode.TRANSACTION_ABORTABLE and asks is Asks.VERIFY:
                    result.errors[key] = ErrorCode.INVALID_TXN_STATE
                elif code is not ErrorCode.NONE:
                    result.errors[key] = code
        return result

    async def _ask_coordinator(
        self, producer: TransactionProducer, partitions: Collection[PartitionKey], asks: Asks
    ) -> Mapping[PartitionKey, ErrorCode]:
        coordinators = self._coordinators()
        index = coordinators.partition_for(producer.transactional_id)
        leader, _ = self._metadata.leader_and_epoch(TRANSACTION_STATE_TOPIC_NAME, index) or (-1, -1)
        if not self._metadata.is_alive(leader):
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if leader != self._host.node_id:
            return await self._ask_broker(leader, producer, partitions, asks)
        transactional_id, producer_id, producer_epoch, owner = producer
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        try:
            if asks is not Asks.ADD:
                return coordinators.verify(transactional_id, producer_id, producer_epoch, partitions)
            added = AddPartitions(
                transactional_id, producer_id, producer_epoch, frozenset(partitions), owner, EPOCH_BUMP_FROM
            )
            return dict.fromkeys(partitions, await coordinators.add(added))
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)

    async def _ask_broker(
        self, leader: int, producer: TransactionProducer, partitions: Collection[PartitionKey], asks: Asks
    ) -> Mapping[PartitionKey, ErrorCode]:
        from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=asks is not Asks.ADD,
            topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in indexes_by_topic(partitions).items()
            ],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        try:
            response: AddPartitionsToTxnResponse = await self._ask_peer(
                leader, ApiKey.ADD_PARTITIONS_TO_TXN, request, BETWEEN_BROKERS_VERSION
            )
        except (OSError, ProtocolError):
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        if response.error_code:
            # That one broker does not trust the other is hidden from the client.
            code = ErrorCode(response.error_code)
            refused = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return dict.fromkeys(partitions, ErrorCode.INVALID_TXN_STATE if refused else code)
        return {
            (topic.name, result.partition_index): ErrorCode(result.partition_error_code)
            for verified in response.results_by_transaction
            for topic in verified.topic_results
            for result in topic.results_by_partition
        }
