"""AlterClientQuotas 0-1: set and remove quotas of users, client ids and addresses (KIP-546, KIP-612).

Each entity succeeds or fails by itself; one that is named twice is changed twice, and its last outcome is returned, as
in Kafka. What is not a quota among the overrides of an entity (a user's SCRAM credentials) stays.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.security.quota_entities import (
    EntityName,
    check_address,
    check_props,
    format_value,
    parse_entity,
)
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.tree_failures import error_of
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.tree import TreeError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.ZkAdminManager")

LEDGER = Ledger(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, {0: "set and remove; validate_only", 1: "flexible"})

Entry = AlterClientQuotasResponse.EntryData
EntityData = AlterClientQuotasResponse.EntityData
Op = AlterClientQuotasRequest.OpData


async def handle(
    broker: Broker, request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    """Change each entity, or only check the change."""
    context.require(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    responses: dict[frozenset[tuple[str, str | None]], Entry] = {}
    budget = YieldBudget()
    for entry in request.entries:
        await budget.spend()
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        await budget.spend(ELEMENT * (len(entity) + len(entry.ops)))
        code, message = ErrorCode.NONE, None
        try:
            await _alter(broker, entity, entry.ops, validate_only=request.validate_only)
        except KafkaError as error:
            logger.info("Quota change by %s refused: %s", client_name(context.connection), error.message)
            code, message = error.code, None if error.message == error.code.message else error.message
        except TreeError as error:
            logger.error("Quota change by %s failed in the tree: %r", client_name(context.connection), error)
            failure = error_of(error)
            code, message = failure.code, None if failure.message == failure.code.message else failure.message
        await budget.spend(ELEMENT * len(entity))
        parts = await listed((EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()), budget)
        await budget.spend(ELEMENT * len(entity))
        responses[frozenset(entity.items())] = Entry(error_code=code, error_message=message, entity=parts)
    return AlterClientQuotasResponse(entries=list(responses.values()))


async def _alter(broker: Broker, entity: EntityName, ops: list[Op], *, validate_only: bool) -> None:
    node = parse_entity(entity)
    await check_address(node)
    props = await broker.configs.read(node.entity_type, node.path)
    for op in ops:
        if op.remove:
            props.pop(op.key, None)
        else:
            props[op.key] = format_value(node, op.key, op.value)
    if not validate_only:
        check_props(node, props)
        await broker.configs.write(node.entity_type, node.path, props)


def error_response(
    request: AlterClientQuotasRequest, context: RequestContext, error: KafkaError
) -> AlterClientQuotasResponse:
    """The error at each entity."""
    return AlterClientQuotasResponse(
        entries=[
            Entry(
                error_code=error.code,
                error_message=error.code.message,
                entity=[EntityData(entity_type=e.entity_type, entity_name=e.entity_name) for e in entry.entity],
            )
            for entry in request.entries
        ]
    )
