"""WriteTxnMarkers 0-2: a coordinator, or `kafka-transactions --abort`, ends transactions in partitions led here.

A marker of a transaction of version 2 (from version 2 of the request on) must have a later epoch than its records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.transaction_markers import TransactionEnd
from kpybroker.broker.handlers.transactions.results import results_by_topic
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_partition import PartitionKey, by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.WRITE_TXN_MARKERS,
    0,
    2,
    {0: "commit and abort markers", 1: "flexible", 2: "the version of the transaction (KIP-1228)"},
)

Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
ErrorsByProducer = dict[int, dict[PartitionKey, ErrorCode]]


async def handle(broker: Broker, request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    """Append the markers to the partitions that this broker leads."""
    if not context.authorized(Operation.ALTER, ResourceType.CLUSTER, log_denied=False):
        context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if any(marker.producer_id < 0 or marker.producer_epoch < 0 for marker in request.markers):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # no batch can be made of it, which no code says
    errors: ErrorsByProducer = {}
    budget = YieldBudget()
    for marker in request.markers:
        await budget.spend()
        partitions = _partitions(marker)
        await budget.spend(ELEMENT * len(partitions))
        if not partitions:
            continue
        end = TransactionEnd(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            marker.transaction_version,
        )
        written = await broker.markers.write_here(end, partitions)
        errors.setdefault(marker.producer_id, {}).update(written)
        await budget.spend(ELEMENT * len(written))
    return WriteTxnMarkersResponse(
        markers=[
            Result(producer_id=producer_id, topics=await results_by_topic(by_partition, budget, _result, _topic))
            for producer_id, by_partition in errors.items()
        ]
    )


def _result(index: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(partition_index=index, error_code=code)


def _topic(name: str, results: list[PartitionResult]) -> TopicResult:
    return TopicResult(name=name, partitions=results)


def _partitions(marker: WriteTxnMarkersRequest.WritableTxnMarker) -> dict[PartitionKey, None]:
    return dict.fromkeys((topic.name, index) for topic in marker.topics for index in topic.partition_indexes)


def _response(errors: ErrorsByProducer) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            Result(
                producer_id=producer_id,
                topics=[
                    _topic(name, [_result(index, code) for index, code in codes])
                    for name, codes in by_topic(by_partition.items()).items()
                ],
            )
            for producer_id, by_partition in errors.items()
        ]
    )


def error_response(
    request: WriteTxnMarkersRequest, context: RequestContext, error: KafkaError
) -> WriteTxnMarkersResponse:
    """The error at each partition of each producer."""
    errors: ErrorsByProducer = {}
    for marker in request.markers:
        errors.setdefault(marker.producer_id, {}).update(dict.fromkeys(_partitions(marker), error.code))
    return _response(errors)
