"""EndTxn 0-5: commit or abort a transaction.

The response is sent when the decision is in the coordinator's log. The markers follow; until all partitions have
theirs, the producer's next transaction is refused with CONCURRENT_TRANSACTIONS. From version 5 on every end bumps the
producer's epoch (KIP-890), and the response has the id and epoch of its next transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM, EndTransaction
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.END_TXN,
    0,
    5,
    {
        0: "commit or abort",
        1: "throttle time",
        2: "PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH",
        3: "flexible",
        4: "TRANSACTION_ABORTABLE, which is never the error here",
        5: "the epoch is bumped with every transaction (KIP-890 part 2)",
    },
)

FENCED_FROM = 2
EPOCH_BUMPED_FROM = 5


async def handle(broker: Broker, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Commit or abort the transaction; returns when the decision is in the log."""
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    version = EPOCH_BUMP_FROM if context.api_version >= EPOCH_BUMPED_FROM else 0
    result = await broker.transactions.end(
        EndTransaction(
            request.transactional_id, request.producer_id, request.producer_epoch, request.committed, version
        )
    )
    if result.error is not ErrorCode.NONE:
        raise KafkaError(result.error)
    return EndTxnResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)


def error_response(request: EndTxnRequest, context: RequestContext, error: KafkaError) -> EndTxnResponse:
    """The error at the top of the response; PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to older versions."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=code)
