"""Verification (KIP-890, part 1): before a transaction's first batch enters a partition, its coordinator confirms that
the partition belongs to the transaction and that it is open.

Kafka's AddPartitionsToTxnManager and `ReplicaManager.maybeStartTransactionVerificationForPartitions`. A partition with
an open transaction of the producer asks nobody. The guard that a verification begins with must come with the append:
a marker in between takes it away, so that a late batch cannot open a transaction that nobody will end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.log.producer_state import NO_VERIFICATION, VerificationGuard
from kpybroker.core.offsets.values import TopicPartition
from kpybroker.core.topic_names import TRANSACTION_STATE_TOPIC_NAME
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.records.batch import parse_header

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.wire.messages.produce import ProduceRequest

VERIFY_ONLY_VERSION = 4

# What clients that know no TRANSACTION_ABORTABLE, or expect something else of a produce, are told.
_PRODUCER_ERRORS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_ABORTABLE: ErrorCode.INVALID_TXN_STATE,
}

# What the coordinator could not tell just now. Old clients may not try again on these, but on NOT_ENOUGH_REPLICAS.
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
    """A batch that was not even tried to append; `told` is what the client hears beside the code."""

    def __init__(self, code: ErrorCode, told: str | None = None) -> None:
        super().__init__(code, told)
        self.told = told


class Verification:
    """What is known before batches of one transaction are appended: why not, or the guards to append with."""

    __slots__ = ("errors", "guards")

    def __init__(self) -> None:
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.guards: dict[TopicPartition, VerificationGuard] = {}

    def guard(self, partition: TopicPartition) -> VerificationGuard:
        return self.guards.get(partition, NO_VERIFICATION)

    def produce_guard(self, partition: TopicPartition) -> VerificationGuard:
        """The guard to append a client's batch with. Raises VerificationError."""
        code = self.errors.get(partition, ErrorCode.NONE)
        if code is ErrorCode.NONE:
            return self.guard(partition)
        if code is ErrorCode.INVALID_TXN_STATE:
            raise VerificationError(code, "Partition was not added to the transaction")
        if code in _RETRIABLE:
            raise VerificationError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                "Unable to verify the partition has been added to the transaction. Underlying error: " + code.name,
            )
        raise VerificationError(code)


async def verify_produce(
    broker: Broker,
    request: ProduceRequest,
    budget: YieldBudget,
    may_write: Callable[[str], bool],
    *,
    knows_abortable: bool,
) -> Verification:
    """Of every transactional batch of a produce request. Raises INVALID_PRODUCER_ID_MAPPING for several producers."""
    producers: dict[tuple[int, int], dict[TopicPartition, int]] = {}
    unknown: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topic_data:
        if not may_write(topic.name):
            continue
        for data in topic.partition_data:
            await budget.spend()
            if not data.records:
                continue
            if not broker.metadata.contains(topic.name, data.index):
                # Kafka appends nothing here; a broker that starts may lead it a moment before its metadata says so.
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
    result = Verification()
    for (producer_id, producer_epoch), sequences in producers.items():
        result = await verify(
            broker,
            request.transactional_id or "",
            producer_id,
            producer_epoch,
            sequences,
            knows_abortable=knows_abortable,
        )
    result.errors |= unknown
    return result


async def verify(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    sequences: Mapping[TopicPartition, int],
    *,
    knows_abortable: bool,
) -> Verification:
    """`sequences` has the first sequence of each partition's batch; `knows_abortable`: of the client."""
    result = Verification()
    if not broker.config.get_bool("transaction.partition.verification.enable"):
        return result
    now_ms = broker.clock.time_ms()
    for key, sequence in sequences.items():
        try:
            guard = broker.replicas.hosted(*key).start_verification(producer_id, sequence, producer_epoch, now_ms)
        except KafkaError as error:
            result.errors[key] = error.code
        else:
            if guard is not NO_VERIFICATION:
                result.guards[key] = guard
    if result.guards:
        answers = await _ask_coordinator(broker, transactional_id, producer_id, producer_epoch, result.guards)
        for key, code in answers.items():
            if code is ErrorCode.TRANSACTION_ABORTABLE and knows_abortable:
                result.errors[key] = code
            elif code is not ErrorCode.NONE:
                result.errors[key] = _PRODUCER_ERRORS.get(code, code)
    return result


async def _ask_coordinator(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    index = broker.transactions.partition_for(transactional_id)
    leader, _ = broker.metadata.leader_and_epoch(TRANSACTION_STATE_TOPIC_NAME, index) or (-1, -1)
    if not broker.metadata.is_alive(leader):
        return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if leader != broker.node_id:
        return await _ask_peer(broker, leader, transactional_id, producer_id, producer_epoch, partitions)
    if not transactional_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    try:
        return broker.transactions.verify(transactional_id, producer_id, producer_epoch, partitions)
    except KafkaError as error:
        return dict.fromkeys(partitions, error.code)


async def _ask_peer(
    broker: Broker,
    leader: int,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=True,
        topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )
    request = AddPartitionsToTxnRequest(transactions=[transaction])
    try:
        response: AddPartitionsToTxnResponse = await broker.peers.ask(
            leader, ApiKey.ADD_PARTITIONS_TO_TXN, request, VERIFY_ONLY_VERSION
        )
    except (OSError, ProtocolError):
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    if response.error_code:
        # A client is not to hear that one broker does not trust the other.
        code = ErrorCode(response.error_code)
        refused = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return dict.fromkeys(partitions, ErrorCode.INVALID_TXN_STATE if refused else code)
    return {
        (topic.name, result.partition_index): ErrorCode(result.partition_error_code)
        for answered in response.results_by_transaction
        for topic in answered.topic_results
        for result in topic.results_by_partition
    }
