"""ListTransactions 0-2: the transactional ids that this broker coordinates and the client may describe (KIP-664).

A pattern is in the language of RE2, and matches the whole of an id.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.loop.yielding import paced
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.transaction.values import STATE_OF_TITLE, TransactionOverview
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kpybroker.wire.yield_budget import WorkBudget

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.LIST_TRANSACTIONS,
    0,
    2,
    {
        0: "filters by state and producer id",
        1: "filter by how long they have been open (KIP-994)",
        2: "filter by a pattern of the transactional id (KIP-1152)",
    },
)


async def handle(broker: Broker, request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """The transactions that pass every filter and that the client may describe."""
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in STATE_OF_TITLE]
    states = {STATE_OF_TITLE[name] for name in request.state_filters if name in STATE_OF_TITLE}
    producer_ids = frozenset(request.producer_id_filters)
    now_ms, duration_ms = broker.clock.time_ms(), request.duration_filter

    def is_wanted(row: TransactionOverview) -> bool:
        return (
            (not producer_ids or row.producer_id in producer_ids)
            and (not request.state_filters or row.state in states)
            and (duration_ms < 0 or now_ms - row.start_timestamp_ms > duration_ms)
        )

    rows = broker.transactions.list_transactions(is_wanted)
    if request.transactional_id_pattern:
        rows = await run_to_end(paced(_matching(request.transactional_id_pattern, rows)))
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=row.transactional_id, producer_id=row.producer_id, transaction_state=row.state.title
            )
            for row in rows
            if context.authorized(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, row.transactional_id)
        ],
    )


def _matching(text: str, rows: Iterable[TransactionOverview]) -> Generator[None, None, list[TransactionOverview]]:
    """The rows whose transactional id matches; yields between slices."""
    from kpybroker.core.patterns.nodes import ANY_TEXT
    from kpybroker.core.patterns.topics import compile_pattern

    pattern = compile_pattern(text, "Transaction ID pattern", ANY_TEXT)
    budget = WorkBudget()
    found = []
    for row in rows:
        if (yield from pattern.matching(row.transactional_id, budget)):
            found.append(row)
    return found


def error_response(
    request: ListTransactionsRequest, context: RequestContext, error: KafkaError
) -> ListTransactionsResponse:
    """The error at the top of the response."""
    return ListTransactionsResponse(error_code=error.code)
