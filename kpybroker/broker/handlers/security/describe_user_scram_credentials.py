"""DescribeUserScramCredentials 0 (KIP-554): the mechanisms and iterations of users' SCRAM credentials, never a key."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.scram import ScramMechanism, parse_credential
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Info = DescribeUserScramCredentialsResponse.CredentialInfo

logger = logging.getLogger("kafka.server.ZkAdminManager")

LEDGER = Ledger(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, {0: "named users, or all"})

NO_NAME = "Username must not be empty"
UNKNOWN = "Attempt to describe a user credential that does not exist: "
TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "


async def handle(
    broker: Broker, request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Read from the tree, so that what was just changed is there."""
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    if not request.users:
        return _response(await _all(broker))
    budget = YieldBudget()
    counts = Counter(user.name for user in request.users)
    await budget.spend(ELEMENT * len(counts))
    names = [name for name, count in counts.items() if name and count == 1]
    entities = await listed(map(znodes.sanitize, names), budget)
    found = await broker.configs.read_many(znodes.CONFIG_USERS, entities)
    described: dict[str, Result | None] = {}
    for name, props in zip(names, found, strict=True):
        await budget.spend()
        described[name] = _described(name, props)
    results = (described.get(name) or _refused(name, count) for name, count in counts.items())
    return _response(await listed(results, budget))


async def _all(broker: Broker) -> list[Result]:
    entities = await broker.configs.entities(znodes.CONFIG_USERS)
    found = await broker.configs.read_many(znodes.CONFIG_USERS, entities)
    described = (_described(znodes.desanitize(e), props) for e, props in zip(entities, found, strict=True))
    return sorted((result for result in described if result is not None), key=lambda result: result.user)


def _described(name: str, props: Mapping[str, str]) -> Result | None:
    """None for a user without SCRAM credentials."""
    texts = [(mechanism, props.get(mechanism.mechanism_name)) for mechanism in ScramMechanism]
    try:
        infos = [
            Info(mechanism=mechanism.type_code, iterations=parse_credential(text).iterations)
            for mechanism, text in texts
            if text is not None
        ]
    except ValueError as error:
        logger.error("A credential of user %s in /config/users cannot be read: %s", ascii(name), error)
        return _error(name, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR.message)
    return Result(user=name, credential_infos=infos) if infos else None


def _refused(name: str, count: int) -> Result:
    if not name:
        return _error(name, ErrorCode.RESOURCE_NOT_FOUND, NO_NAME)
    if count > 1:
        return _error(name, ErrorCode.DUPLICATE_RESOURCE, TWICE + name)
    return _error(name, ErrorCode.RESOURCE_NOT_FOUND, UNKNOWN + name)


def _error(name: str, code: ErrorCode, message: str) -> Result:
    return Result(user=name, error_code=code, error_message=message)


def _response(results: list[Result]) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(results=results)


def error_response(
    request: DescribeUserScramCredentialsRequest, context: RequestContext, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    """The error at the top, and at each user, whom Kafka does not name; a message only where it says more."""
    message = None if error.message == error.code.message else error.message
    results = [Result(error_code=error.code, error_message=message) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=message, results=results)
