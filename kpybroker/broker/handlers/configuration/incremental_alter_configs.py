"""IncrementalAlterConfigs 0-1: set, delete, append to or subtract from keys of topics, brokers, loggers, groups and
subscriptions to client metrics.

Each resource succeeds or fails by itself; one named twice fails twice, and nothing of it is applied (KIP-339).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.cluster import loggers
from kpybroker.broker.handlers.configuration import alter as config_alter
from kpybroker.broker.handlers.configuration.alter_requests import (
    Alteration,
    alter_each,
    authorize_alter,
    is_kafka_4,
    refuse_each,
)
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.config.dynamic import OpType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    0,
    1,
    {0: "change single keys; log levels (KIP-412)", 1: "flexible"},
)

ResourceResponse = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change single keys of each resource; each resource succeeds or fails by itself."""
    return IncrementalAlterConfigsResponse(
        responses=await alter_each(broker, request, context, ResourceResponse, _alter)
    )


async def _alter(broker: Broker, context: RequestContext, alteration: Alteration) -> None:
    kind, name, entries = alteration.kind, alteration.name, alteration.resource.configs
    nulls = [e.name for e in entries if e.value is None and e.config_operation != OpType.DELETE]
    config_alter.check_entries([e.name for e in entries], nulls)
    is_of_kafka_4 = kind is ConfigResourceType.CLIENT_METRICS
    if kind is ConfigResourceType.UNKNOWN or (is_of_kafka_4 and not is_kafka_4(broker)):
        raise config_alter.refuse_type(kind, alteration.resource.resource_type)
    authorize_alter(context, kind, name)
    if kind is ConfigResourceType.BROKER:
        config_alter.check_broker_name(broker, name)
    if kind is ConfigResourceType.BROKER_LOGGER:
        config_alter.check_logger_name(broker, name)
    ops = [config_alter.parse_op(e.name, e.config_operation, e.value) for e in entries]
    if kind is ConfigResourceType.BROKER_LOGGER:
        loggers.check(ops)
        if not alteration.validate_only:
            loggers.apply(ops)
        return
    await config_alter.incremental_alter(broker, kind, name, ops, validate_only=alteration.validate_only)


def error_response(
    request: IncrementalAlterConfigsRequest, context: RequestContext, error: KafkaError
) -> IncrementalAlterConfigsResponse:
    """The error at each resource."""
    return IncrementalAlterConfigsResponse(responses=refuse_each(request, ResourceResponse, error))
