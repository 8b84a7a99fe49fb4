"""InitProducerId 0-5: a producer id and epoch.

Without a transactional id (an idempotent producer) any broker returns a new id and epoch 0. With one, its coordinator
first aborts the open transaction, then returns the same id in a higher epoch, which fences the previous producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.budget import Owner
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.INIT_PRODUCER_ID,
    0,
    5,
    {
        0: "a new id, or the transactional id's in its next epoch",
        2: "flexible",
        3: "the id and epoch a producer has (KIP-360)",
        4: "PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH",
        5: "TRANSACTION_ABORTABLE, which is never the error here",
    },
)

FENCED_FROM = 4


async def handle(broker: Broker, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """A new producer id and epoch, or the next epoch of a transactional id."""
    transactional_id = request.transactional_id
    if transactional_id is not None:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    elif not _may_write_idempotently(context):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1) or transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if transactional_id is None:
        return InitProducerIdResponse(producer_id=await broker.producer_ids.generate(), producer_epoch=0)
    return await _init_transactional(broker, transactional_id, request, context.owner)


def _may_write_idempotently(context: RequestContext) -> bool:
    """A client that may write to any topic may do so idempotently (KIP-679)."""
    return context.authorized(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, log_denied=False
    ) or context.authorized_on_any(Operation.WRITE, ResourceType.TOPIC)


async def _init_transactional(
    broker: Broker, transactional_id: str, request: InitProducerIdRequest, owner: Owner
) -> InitProducerIdResponse:
    from kpybroker.core.transaction.values import InitProducerId, ProducerIdAndEpoch

    has_id = request.producer_id != -1
    result = await broker.transactions.init_producer_id(
        InitProducerId(
            transactional_id,
            request.transaction_timeout_ms,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None,
            owner=owner,
        )
    )
    if result.error is not ErrorCode.NONE:
        raise KafkaError(result.error)
    return InitProducerIdResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)


def error_response(
    request: InitProducerIdRequest, context: RequestContext, error: KafkaError
) -> InitProducerIdResponse:
    """The error at the top of the response; PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to older versions."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
