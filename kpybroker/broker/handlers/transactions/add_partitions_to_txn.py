"""AddPartitionsToTxn 0-5: partitions take part in a transaction.

Up to version 3 from producers, one transaction a request. From version 4 on between brokers, several at once: only for
verification (KIP-890), or for producers of transactions of version 2, which add partitions by writing to them. Where
one partition is refused, none is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.transactions.results import results_by_topic
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.topic_names import is_internal
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM, AddPartitions
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    0,
    5,
    {
        0: "the partitions of a transaction",
        1: "throttle time",
        2: "PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH",
        3: "flexible",
        4: "between brokers: several transactions, verification alone (KIP-890)",
        5: "TRANSACTION_ABORTABLE",
    },
)

FENCED_FROM = 2
BETWEEN_BROKERS_FROM = 4

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
Errors = Mapping[PartitionKey, ErrorCode]


async def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    """Add partitions to each transaction, or verify that they were added."""
    if context.api_version < BETWEEN_BROKERS_FROM:
        (transaction,) = _transactions(request, context)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _add(broker, transaction, context))
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    response, budget = AddPartitionsToTxnResponse(), YieldBudget()
    for transaction in request.transactions:
        await budget.spend()
        results = await _add(broker, transaction, context)
        response.results_by_transaction.append(
            Result(transactional_id=transaction.transactional_id, topic_results=results)
        )
    return response


def _transactions(request: AddPartitionsToTxnRequest, context: RequestContext) -> list[Transaction]:
    if context.api_version >= BETWEEN_BROKERS_FROM:
        return request.transactions
    return [
        Transaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


async def _add(broker: Broker, transaction: Transaction, context: RequestContext) -> list[TopicResult]:
    transactional_id = transaction.transactional_id
    partitions = dict.fromkeys((topic.name, index) for topic in transaction.topics for index in topic.partitions)
    from_client = context.api_version < BETWEEN_BROKERS_FROM
    if from_client and not context.authorized(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return list(_all(transaction, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(partitions))
    refused = await _refused(broker, context, partitions, from_client=from_client)
    if refused:
        return await _each(dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused, budget)
    if transaction.verify_only:
        return await _each(_verify(broker, transaction, partitions), budget)
    owner, version = (context.owner, 0) if from_client else (UNOWNED, EPOCH_BUMP_FROM)
    error = await _ask(broker, transaction, frozenset(partitions), owner, version)
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return await listed(_all(transaction, error), budget)


def _verify(broker: Broker, transaction: Transaction, partitions: Iterable[PartitionKey]) -> Errors:
    if not transaction.transactional_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    try:
        return broker.transactions.verify(
            transaction.transactional_id, transaction.producer_id, transaction.producer_epoch, partitions
        )
    except KafkaError as error:
        return dict.fromkeys(partitions, error.code)


async def _ask(
    broker: Broker, transaction: Transaction, partitions: frozenset[PartitionKey], owner: Owner, version: int
) -> ErrorCode:
    if not transaction.transactional_id:
        return ErrorCode.INVALID_REQUEST
    try:
        return await broker.transactions.add(
            AddPartitions(
                transaction.transactional_id,
                transaction.producer_id,
                transaction.producer_epoch,
                partitions,
                owner,
                version,
            )
        )
    except KafkaError as error:
        return error.code


async def _refused(
    broker: Broker, context: RequestContext, partitions: Collection[PartitionKey], *, from_client: bool
) -> dict[PartitionKey, ErrorCode]:
    """Those that the client may not write to, or that the cluster does not know. Clients may not write to Kafka's own
    topics.
    """
    refused: dict[PartitionKey, ErrorCode] = {}
    budget = YieldBudget()
    closed = _closed_topics(context, Counter(topic for topic, _ in partitions)) if from_client else frozenset()
    for topic, index in partitions:
        await budget.spend()
        if topic in closed:
            refused[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not broker.metadata.contains(topic, index):
            refused[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _closed_topics(context: RequestContext, topics: Mapping[str, int]) -> frozenset[str]:
    """Of these topics, with the number of their partitions, those that the client may not write to."""
    return frozenset(
        topic
        for topic, count in topics.items()
        if is_internal(topic) or not context.authorized(Operation.WRITE, ResourceType.TOPIC, topic, references=count)
    )


def _all(transaction: Transaction, code: ErrorCode) -> Iterator[TopicResult]:
    """One code everywhere, topics and partitions as they were asked for."""
    for topic in transaction.topics:
        results = [PartitionResult(partition_index=index, partition_error_code=code) for index in topic.partitions]
        yield TopicResult(name=topic.name, results_by_partition=results)


async def _each(errors: Errors, budget: YieldBudget) -> list[TopicResult]:
    def result(index: int, code: ErrorCode) -> PartitionResult:
        return PartitionResult(partition_index=index, partition_error_code=code)

    def topic(name: str, results: list[PartitionResult]) -> TopicResult:
        return TopicResult(name=name, results_by_partition=results)

    return await results_by_topic(errors, budget, result, topic)


def error_response(
    request: AddPartitionsToTxnRequest, context: RequestContext, error: KafkaError
) -> AddPartitionsToTxnResponse:
    """The error at the top of the response, before version 4 at each partition."""
    if context.api_version >= BETWEEN_BROKERS_FROM:
        return AddPartitionsToTxnResponse(error_code=error.code)
    (transaction,) = _transactions(request, context)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=list(_all(transaction, error.code)))
