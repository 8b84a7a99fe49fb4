"""InitProducerId 0-5: a producer id and epoch.

Without a transactional id (an idempotent producer) any broker answers with a fresh id and epoch 0. With one, it is the
transaction coordinator's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.context import RequestContext
from kpybroker.broker.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

LEDGER = Ledger(
    ApiKey.INIT_PRODUCER_ID,
    0,
    5,
    {0: "a new id", 2: "flexible", 3: "the id and epoch a producer has (KIP-360)", 4: "PRODUCER_FENCED"},
    absent="transactional ids: COORDINATOR_NOT_AVAILABLE until the transaction coordinator is there",
)


async def handle(broker: Broker, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        if not context.authorized(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not context.authorized(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=await broker.producer_ids.generate(), producer_epoch=0)


def error_response(
    request: InitProducerIdRequest, context: RequestContext, error: KafkaError
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
