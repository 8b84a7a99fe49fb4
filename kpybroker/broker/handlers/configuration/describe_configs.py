"""DescribeConfigs 0-4: keys of topics, this broker, the broker defaults, loggers, groups and subscriptions to client
metrics, with the source of each value.

The overrides of topics, groups and subscriptions are read from the tree for every request, as in Kafka 3.9, so a change
by another broker shows at once. Groups are refused while `group.version` is not finalized, and subscriptions where the
broker does not support it, as Kafka refuses both in ZooKeeper mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.handlers.configuration import client_metrics
from kpybroker.broker.handlers.configuration.alter_requests import is_kafka_4, served_type
from kpybroker.broker.handlers.configuration.describe import (
    Asked,
    ConfigResourceType,
    broker_entries,
    default_entries,
    group_entries,
    logger_entries,
    topic_entries,
)
from kpybroker.broker.loop.yielding import YieldBudget, next_slice
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.config.values import ConfigError
from kpybroker.core import topic_names
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DESCRIBE_CONFIGS,
    0,
    4,
    {
        0: "values, read-only and sensitive flags",
        1: "sources and synonyms (KIP-226)",
        2: "throttling after the response",
        3: "types and documentation (KIP-569)",
        4: "flexible",
    },
)

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult

_CLUSTER_TYPES = frozenset(
    {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER, ConfigResourceType.CLIENT_METRICS}
)


_OF_TREE: Final[dict[ConfigResourceType, tuple[str, Callable[[str], str]]]] = {
    ConfigResourceType.GROUP: (znodes.CONFIG_GROUPS, znodes.group_entity),
    ConfigResourceType.CLIENT_METRICS: (znodes.CONFIG_CLIENT_METRICS, znodes.client_metrics_entity),
}
"""What is read from the tree for each request, with the names of its nodes."""
_NO_SUBSCRIPTION_NAME: Final = "Client metrics subscription name must not be empty"


async def handle(broker: Broker, request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """The requested keys of each resource, with value, source and synonyms."""
    allowed, refused = await _authorize(broker, request.resources, context)
    topics = [r.resource_name for r in allowed if r.resource_type == ConfigResourceType.TOPIC]
    hosted = [name for name in dict.fromkeys(topics) if broker.metadata.contains(name)]
    found = await broker.configs.read_many(znodes.CONFIG_TOPICS, hosted)
    overrides = dict(zip(hosted, found, strict=True))
    stored = {kind: await _stored(broker, kind, allowed) for kind in _OF_TREE}
    results = []
    for resource in allowed:
        asked = Asked(
            frozenset(resource.configuration_keys or ()), request.include_synonyms, request.include_documentation
        )
        kind = ConfigResourceType.of(resource.resource_type)
        if kind is ConfigResourceType.GROUP or (kind is ConfigResourceType.CLIENT_METRICS and is_kafka_4(broker)):
            results.append(_describe_stored(broker, resource, asked, stored[kind]))
        else:
            results.append(_describe(broker, resource, asked, overrides))
        # A resource takes well below a millisecond: others may run between any two.
        await next_slice()
    return DescribeConfigsResponse(results=results + refused)


async def _stored(broker: Broker, kind: ConfigResourceType, resources: Sequence[Resource]) -> dict[str, dict[str, str]]:
    """What each of the groups, or of the subscriptions, that are asked for sets."""
    entity_type, entity_of = _OF_TREE[kind]
    names = [r.resource_name for r in resources if r.resource_type == kind and r.resource_name]
    wanted = list(dict.fromkeys(names))
    found = await broker.configs.read_many(entity_type, list(map(entity_of, wanted)))
    return dict(zip(wanted, found, strict=True))


async def _authorize(
    broker: Broker, resources: Sequence[Resource], context: RequestContext
) -> tuple[list[Resource], list[DescribeConfigsResponse.DescribeConfigsResult]]:
    allowed, refused, budget = [], [], YieldBudget()
    for resource in resources:
        await budget.spend()
        kind = served_type(broker, resource.resource_type)
        if kind in _CLUSTER_TYPES:
            may = context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        elif kind is ConfigResourceType.TOPIC:
            may = context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, resource.resource_name)
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif kind is ConfigResourceType.GROUP:
            may = context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, resource.resource_name)
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        else:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected resource type {kind.name} for resource {resource.resource_name}",
            )
        if may:
            allowed.append(resource)
        else:
            refused.append(_failed(resource, KafkaError(code)))
    return allowed, refused


def _describe(
    broker: Broker, resource: Resource, asked: Asked, overrides: dict[str, dict[str, str]]
) -> DescribeConfigsResponse.DescribeConfigsResult:
    try:
        entries = _entries(broker, resource, asked, overrides)
    except KafkaError as error:
        return _failed(resource, error)
    return Result(resource_type=resource.resource_type, resource_name=resource.resource_name, configs=entries)


def _describe_stored(
    broker: Broker, resource: Resource, asked: Asked, stored: dict[str, dict[str, str]]
) -> DescribeConfigsResponse.DescribeConfigsResult:
    """A group, or a subscription to client metrics."""
    name, is_group = resource.resource_name, resource.resource_type == ConfigResourceType.GROUP
    if not name:
        text = "Group name must not be empty" if is_group else _NO_SUBSCRIPTION_NAME
        return _failed(resource, KafkaError(ErrorCode.INVALID_REQUEST, text))
    props = stored[name]
    try:
        entries = list(group_entries(broker.config, props, asked) if is_group else client_metrics.entries(props, asked))
    except KafkaError as error:
        return _failed(resource, error)
    except ConfigError as error:
        # Another program has written a value that is none.
        return _failed(resource, KafkaError(ErrorCode.INVALID_CONFIG, str(error)))
    return Result(resource_type=resource.resource_type, resource_name=name, configs=entries)


def _entries(
    broker: Broker, resource: Resource, asked: Asked, overrides: dict[str, dict[str, str]]
) -> list[DescribeConfigsResponse.DescribeConfigsResourceResult]:
    kind, name = ConfigResourceType.of(resource.resource_type), resource.resource_name
    if kind is ConfigResourceType.TOPIC:
        return list(topic_entries(broker.config, _topic(name, overrides), asked))
    if kind is ConfigResourceType.BROKER:
        if not name:
            return list(default_entries(broker.config, asked))
        _check_broker_id(broker, name, " or empty string,")
        # Resources of this type are served where the broker is as Kafka 4: once `group.version` is finalized.
        as_kafka_4 = served_type(broker, ConfigResourceType.GROUP) is ConfigResourceType.GROUP
        return list(broker_entries(broker.config, asked, as_kafka_4=as_kafka_4))
    if kind is ConfigResourceType.BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_broker_id(broker, name, "")
        return list(logger_entries(asked))
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        "Config type client-metrics is only supported on KRaft clusters" if name else _NO_SUBSCRIPTION_NAME,
    )


def _topic(name: str, overrides: dict[str, dict[str, str]]) -> dict[str, str]:
    reason = topic_names.invalid_reason(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name not in overrides:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return overrides[name]


def _check_broker_id(broker: Broker, name: str, or_else: str) -> None:
    if not name.removeprefix("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.node_id}{or_else} but received {name}",
        )


def _failed(resource: Resource, error: KafkaError) -> DescribeConfigsResponse.DescribeConfigsResult:
    return Result(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(
    request: DescribeConfigsRequest, context: RequestContext, error: KafkaError
) -> DescribeConfigsResponse:
    """The error at each resource."""
    return DescribeConfigsResponse(results=[_failed(resource, error) for resource in request.resources])
