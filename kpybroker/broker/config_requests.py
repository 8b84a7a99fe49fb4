"""What AlterConfigs and IncrementalAlterConfigs share: who may, which resources are named twice, what came
of each.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from kpybroker.broker.config_describe import ConfigResourceType
from kpybroker.broker.context import RequestContext
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.core.tree import TreeError
from kpybroker.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("kafka.server.ConfigAdminManager")

ResourceKey = tuple[int, str]


def repeated(keys: Iterable[ResourceKey]) -> frozenset[ResourceKey]:
    return frozenset(key for key, count in Counter(keys).items() if count > 1)


def authorize_alter(context: RequestContext, kind: ConfigResourceType, name: str) -> None:
    if kind is ConfigResourceType.TOPIC:
        resource_type, resource, code = ResourceType.TOPIC, name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        resource_type, resource = ResourceType.CLUSTER, CLUSTER_NAME
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not context.authorized(Operation.ALTER_CONFIGS, resource_type, resource):
        raise KafkaError(code)


async def outcome(change: Callable[..., Awaitable[None]], *args: Any) -> tuple[ErrorCode, str | None]:
    """Code and message of one resource's change: a failure of one resource is not a failure of the others."""
    try:
        await change(*args)
    except KafkaError as error:
        log.info("Configuration change refused: %s", error.message)
        return error.code, error.message
    except TreeError as error:
        log.error("Configuration change failed in the tree: %r", error)
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return ErrorCode.NONE, None
