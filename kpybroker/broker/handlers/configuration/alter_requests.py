"""What AlterConfigs and IncrementalAlterConfigs share: authorization, resources named twice, the outcome of each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kpybroker.broker.handlers.configuration.alter import resource_twice
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.tree_failures import error_of
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import GROUP_VERSION, NOT_SUPPORTED
from kpybroker.core.tree import TreeError
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.ConfigAdminManager")

T = TypeVar("T")
Alter = Callable[["Broker", RequestContext, "Alteration"], Awaitable[None]]
"""Change one resource. Raises KafkaError or TreeError."""


class Alteration(NamedTuple):
    """The change of one resource that a request asks for."""

    kind: ConfigResourceType
    resource: Any
    validate_only: bool

    @property
    def name(self) -> str:
        """The resource's name: a topic, a group, a subscription, or a broker id."""
        name: str = self.resource.resource_name
        return name


def is_kafka_4(broker: Broker) -> bool:
    """Whether the broker has what only Kafka 4 has: it supports a feature of Kafka 4."""
    return broker.features.supported.get(GROUP_VERSION, NOT_SUPPORTED).max > 0


def served_type(broker: Broker, type_id: int) -> ConfigResourceType:
    """The type of an id on the wire. Kafka 3.9 does not know groups, nor does a cluster without `group.version`."""
    kind = ConfigResourceType.of(type_id)
    if kind is ConfigResourceType.GROUP and not broker.metadata.snapshot.features.level(GROUP_VERSION):
        return ConfigResourceType.UNKNOWN
    return kind


def authorize_alter(context: RequestContext, kind: ConfigResourceType, name: str) -> None:
    """Raises the KafkaError of a client that may not alter this resource."""
    if kind is ConfigResourceType.TOPIC:
        context.require(Operation.ALTER_CONFIGS, ResourceType.TOPIC, name)
    elif kind is ConfigResourceType.GROUP:
        context.require(Operation.ALTER_CONFIGS, ResourceType.GROUP, name)
    else:
        context.require(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)


async def alter_each(
    broker: Broker, request: Any, context: RequestContext, response_class: Callable[..., T], alter: Alter
) -> list[T]:
    """A `response_class` for each resource of a request; the failure of one leaves the others alone."""
    named = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses, budget = [], YieldBudget()
    for resource in request.resources:
        await budget.spend()
        kind = served_type(broker, resource.resource_type)
        is_twice = named[resource.resource_type, resource.resource_name] > 1
        change = (
            _refuse_twice() if is_twice else alter(broker, context, Alteration(kind, resource, request.validate_only))
        )
        responses.append(_response(resource, response_class, *await _outcome(change, context)))
    return responses


def refuse_each(request: Any, response_class: Callable[..., T], error: KafkaError) -> list[T]:
    """`error` for each resource of a request."""
    return [_response(resource, response_class, error.code, error.message) for resource in request.resources]


def _response(resource: Any, response_class: Callable[..., T], code: ErrorCode, message: str | None) -> T:
    return response_class(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def _refuse_twice() -> None:
    raise resource_twice()


_WITHOUT_MESSAGE = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


async def _outcome(change: Awaitable[None], context: RequestContext) -> tuple[ErrorCode, str | None]:
    try:
        await change
    except KafkaError as error:
        logger.info("Configuration change by %s refused: %s", client_name(context.connection), error.message)
        return error.code, None if error.code in _WITHOUT_MESSAGE else error.message
    except TreeError as error:
        logger.error("Configuration change by %s failed in the tree: %r", client_name(context.connection), error)
        failure = error_of(error)
        return failure.code, None if failure.code is ErrorCode.UNKNOWN_SERVER_ERROR else failure.message
    return ErrorCode.NONE, None
