"""DescribeTransactions 0: the state of transactions that this broker coordinates (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_partition import indexes_by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, {0: "state, producer, start, timeout and partitions"})

State = DescribeTransactionsResponse.TransactionState


async def handle(
    broker: Broker, request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """The state of each transaction that this broker coordinates."""
    response, budget = DescribeTransactionsResponse(), YieldBudget()
    for transactional_id in request.transactional_ids:
        await budget.spend()
        try:
            state = _describe(broker, context, transactional_id)
        except KafkaError as error:
            state = State(transactional_id=transactional_id, error_code=error.code)
        response.transaction_states.append(state)
    return response


def _describe(broker: Broker, context: RequestContext, transactional_id: str) -> State:
    """Without the topics that the client may not describe."""
    context.require(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    described = broker.transactions.describe(transactional_id)
    return State(
        error_code=described.error,
        transactional_id=transactional_id,
        transaction_state=described.state,
        transaction_timeout_ms=described.timeout_ms,
        transaction_start_time_ms=described.start_timestamp_ms,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in indexes_by_topic(described.partitions).items()
            if context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )


def error_response(
    request: DescribeTransactionsRequest, context: RequestContext, error: KafkaError
) -> DescribeTransactionsResponse:
    """The error at each transactional id."""
    return DescribeTransactionsResponse(
        transaction_states=[
            State(transactional_id=transactional_id, error_code=error.code)
            for transactional_id in request.transactional_ids
        ]
    )
