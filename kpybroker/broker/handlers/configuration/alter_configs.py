"""AlterConfigs 0-2: replace everything that a topic, this broker, the broker defaults, a group or a subscription to
client metrics set.

Deprecated by KIP-339.
Each resource succeeds or fails by itself; one named twice fails twice, and nothing of it is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.configuration import alter as config_alter
from kpybroker.broker.handlers.configuration.alter_requests import (
    Alteration,
    alter_each,
    authorize_alter,
    is_kafka_4,
    refuse_each,
)
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ALTER_CONFIGS,
    0,
    2,
    {0: "replace a resource's overrides", 1: "throttling after the response", 2: "flexible"},
)

_REPLACED = frozenset(
    {
        ConfigResourceType.TOPIC,
        ConfigResourceType.BROKER,
        ConfigResourceType.GROUP,
        ConfigResourceType.CLIENT_METRICS,
    }
)
ResourceResponse = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(broker: Broker, request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Replace the configuration of each resource; each succeeds or fails by itself."""
    return AlterConfigsResponse(responses=await alter_each(broker, request, context, ResourceResponse, _alter))


async def _alter(broker: Broker, context: RequestContext, alteration: Alteration) -> None:
    kind, name, entries = alteration.kind, alteration.name, alteration.resource.configs
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(entries))
    config_alter.check_entries([e.name for e in entries], [e.name for e in entries if e.value is None])
    await budget.spend(ELEMENT * len(entries))
    if kind not in _REPLACED or (kind is ConfigResourceType.CLIENT_METRICS and not is_kafka_4(broker)):
        raise config_alter.refuse_type(kind, alteration.resource.resource_type)
    if kind is ConfigResourceType.BROKER:
        config_alter.check_broker_name(broker, name)
    authorize_alter(context, kind, name)
    props = {entry.name: entry.value for entry in entries if entry.value is not None}
    await budget.spend(ELEMENT * len(entries))
    await config_alter.alter(broker, kind, name, props, validate_only=alteration.validate_only)


def error_response(request: AlterConfigsRequest, context: RequestContext, error: KafkaError) -> AlterConfigsResponse:
    """The error at each resource."""
    return AlterConfigsResponse(responses=refuse_each(request, ResourceResponse, error))
