"""EndTxn 0-4: commit or abort a transaction.

The response is sent when the decision is in the coordinator's log. The markers follow; until all partitions have
theirs, the producer's next transaction is refused with CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.transaction.values import EndTransaction
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.END_TXN,
    0,
    4,
    {
        0: "commit or abort",
        1: "throttle time",
        2: "PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH",
        3: "flexible",
        4: "TRANSACTION_ABORTABLE, which is never the error here",
    },
    absent="version 5 (KIP-890 part 2: the epoch is bumped with every transaction)",
)

FENCED_FROM = 2


async def handle(broker: Broker, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Commit or abort the transaction; returns when the decision is in the log."""
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    error = await broker.transactions.ask(
        EndTransaction(request.transactional_id, request.producer_id, request.producer_epoch, request.committed)
    )
    if error is not ErrorCode.NONE:
        raise KafkaError(error)
    return EndTxnResponse()


def error_response(request: EndTxnRequest, context: RequestContext, error: KafkaError) -> EndTxnResponse:
    """The error at the top of the response; PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to older versions."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=code)
