"""DescribeClientQuotas 0-1: the quotas of users, client ids and addresses that a filter selects (KIP-546, KIP-612).

Read from the tree, so that the response is the same on every broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kpybroker.broker.handlers.security.quota_entities import (
    IP,
    Component,
    Node,
    check_filter,
    entity_of,
    matches,
    quota_values,
)
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    0,
    1,
    {0: "filters by user, client id and address, exact, default or any", 1: "flexible"},
)

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2

Entity = DescribeClientQuotasResponse.EntityData
Value = DescribeClientQuotasResponse.ValueData
Entry = DescribeClientQuotasResponse.EntryData


async def handle(
    broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """Every entity that the filter selects and that has a quota."""
    context.require(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
    budget = YieldBudget()
    components = []
    for component in request.components:
        await budget.spend()
        components.append((component.entity_type, _component(component)))
    wanted = check_filter(components)
    types = [znodes.CONFIG_IPS] if IP in wanted else [znodes.CONFIG_USERS, znodes.CONFIG_CLIENTS]
    if not wanted:
        types.append(znodes.CONFIG_IPS)
    entries = []
    for entity_type in types:
        nodes = [Node(entity_type, path) for path in await broker.configs.entities_and_pairs(entity_type)]
        nodes = [node for node in nodes if matches(wanted, entity_of(node), is_strict=request.strict)]
        for node, props in zip(
            nodes, await broker.configs.read_many(entity_type, [node.path for node in nodes]), strict=True
        ):
            if values := quota_values(node, props):
                entries.append(_entry(node, values))
    return DescribeClientQuotasResponse(entries=entries, error_message="")


def _component(component: DescribeClientQuotasRequest.ComponentData) -> Component:
    if component.match_type == EXACT and component.match is not None:
        return Component(is_any=False, name=component.match)
    if component.match_type == DEFAULT:
        return Component(is_any=False, name=None)
    if component.match_type == SPECIFIED:
        return Component(is_any=True, name=None)
    reason = None if component.match_type == EXACT else f"Unexpected match type: {component.match_type}"
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)


def _entry(node: Node, values: dict[str, float]) -> Entry:
    return Entry(
        entity=[Entity(entity_type=kind, entity_name=name) for kind, name in entity_of(node).items()],
        values=[Value(key=key, value=value) for key, value in values.items()],
    )


def error_response(
    request: DescribeClientQuotasRequest, context: RequestContext, error: KafkaError
) -> DescribeClientQuotasResponse:
    """The error at the top, and no entries; a text only where it says more than the code."""
    message = None if error.message == error.code.message else error.message
    return DescribeClientQuotasResponse(error_code=error.code, error_message=message, entries=None)
