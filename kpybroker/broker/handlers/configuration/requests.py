"""What AlterConfigs and IncrementalAlterConfigs share: who may, which resources are named twice, what came of each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.core.tree import TreeError
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

log = logging.getLogger("kafka.server.ConfigAdminManager")

T = TypeVar("T")
Alter = Callable[["Broker", Any, bool, bool, RequestContext], Awaitable[None]]
"""Change one resource, or only say whether it can be: `validate_only`, then whether it is named twice."""


def authorize_alter(context: RequestContext, kind: ConfigResourceType, name: str) -> None:
    if kind is ConfigResourceType.TOPIC:
        resource_type, resource, code = ResourceType.TOPIC, name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        resource_type, resource = ResourceType.CLUSTER, CLUSTER_NAME
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not context.authorized(Operation.ALTER_CONFIGS, resource_type, resource):
        raise KafkaError(code)


async def alter_each(
    broker: Broker, request: Any, context: RequestContext, answer: Callable[..., T], alter: Alter
) -> list[T]:
    """An answer for each resource of a request: a failure of one is not a failure of the others."""
    keys = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    twice = {key for key, count in Counter(keys).items() if count > 1}
    answers, budget = [], YieldBudget()
    for resource, (resource_type, name) in zip(request.resources, keys, strict=True):
        await budget.spend()
        is_twice = (resource_type, name) in twice
        code, message = await _outcome(alter(broker, resource, request.validate_only, is_twice, context))
        answers.append(answer(error_code=code, error_message=message, resource_type=resource_type, resource_name=name))
    return answers


async def _outcome(change: Awaitable[None]) -> tuple[ErrorCode, str | None]:
    try:
        await change
    except KafkaError as error:
        log.info("Configuration change refused: %s", error.message)
        return error.code, error.message
    except TreeError as error:
        log.error("Configuration change failed in the tree: %r", error)
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return ErrorCode.NONE, None
