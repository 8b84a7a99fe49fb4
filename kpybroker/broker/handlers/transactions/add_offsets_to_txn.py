"""AddOffsetsToTxn 0-4: a consumer group's offsets take part in a transaction.

That is, the partition of `__consumer_offsets` that the group belongs to does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.core.transaction.values import AddPartitions
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ADD_OFFSETS_TO_TXN,
    0,
    4,
    {
        0: "the offsets of a group",
        1: "throttle time",
        2: "PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH",
        3: "flexible",
        4: "TRANSACTION_ABORTABLE, which is never the error here",
    },
)

FENCED_FROM = 2


async def handle(broker: Broker, request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    """Add the group's partition of `__consumer_offsets` to the transaction."""
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    partition = (GROUP_METADATA_TOPIC_NAME, broker.groups.partition_for(request.group_id))
    error = await broker.transactions.add(
        AddPartitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset((partition,)),
            context.owner,
        )
    )
    if error is not ErrorCode.NONE:
        raise KafkaError(error)
    return AddOffsetsToTxnResponse()


def error_response(
    request: AddOffsetsToTxnRequest, context: RequestContext, error: KafkaError
) -> AddOffsetsToTxnResponse:
    """The error at the top of the response; PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to older versions."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=code)
