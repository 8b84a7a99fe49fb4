"""ListConfigResources 0-1: the names of what has a configuration (KIP-1142).

Groups are those that set something themselves, client metrics are the subscriptions that this broker knows, topics and
brokers are all there are. Version 0 is ListClientMetricsResources. Served where the broker supports a feature of Kafka
4, as Kafka 3.9 in ZooKeeper mode has no such API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from kpybroker.broker.handlers.configuration.alter_requests import is_kafka_4
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.LIST_CONFIG_RESOURCES,
    0,
    1,
    {0: "client metrics subscriptions (KIP-714)", 1: "every type of resource (KIP-1142)"},
)

Names = Callable[["Broker", RequestContext], Awaitable[Iterable[str]]]


async def _groups(broker: Broker, context: RequestContext) -> Iterable[str]:
    return map(znodes.group_of_entity, await broker.configs.entities(znodes.CONFIG_GROUPS))


async def _client_metrics(broker: Broker, context: RequestContext) -> Iterable[str]:
    return broker.client_metrics.names


async def _brokers(broker: Broker, context: RequestContext) -> Iterable[str]:
    return [str(node.id) for node in broker.metadata.alive_nodes(context)]


async def _topics(broker: Broker, context: RequestContext) -> Iterable[str]:
    return list(broker.metadata.snapshot.topics)


_NAMES: Final[dict[ConfigResourceType, Names]] = {
    ConfigResourceType.GROUP: _groups,
    ConfigResourceType.CLIENT_METRICS: _client_metrics,
    ConfigResourceType.BROKER_LOGGER: _brokers,
    ConfigResourceType.BROKER: _brokers,
    ConfigResourceType.TOPIC: _topics,
}
"""The types that version 1 may ask for, in the order of Kafka's response."""


async def handle(
    broker: Broker, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """The names of the requested types of resources; of all types if none is requested."""
    if not is_kafka_4(broker):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    context.require(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
    supported = _NAMES.keys() if context.api_version else {ConfigResourceType.CLIENT_METRICS}
    wanted = set(request.resource_types) or supported
    if not wanted <= supported:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    found, budget = [], YieldBudget()
    for kind, names in _NAMES.items():
        for name in await names(broker, context) if kind in wanted else ():
            found.append(ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind))
            await budget.spend()
    return ListConfigResourcesResponse(config_resources=found)


def error_response(
    request: ListConfigResourcesRequest, context: RequestContext, error: KafkaError
) -> ListConfigResourcesResponse:
    """The error at the top of the response."""
    return ListConfigResourcesResponse(error_code=error.code)
