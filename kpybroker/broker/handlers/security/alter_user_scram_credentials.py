"""AlterUserScramCredentials 0 (KIP-554): set and delete users' SCRAM credentials; at the controller only.

The client salts and hashes the password, so no password arrives here. All alterations of a user succeed, or none does;
users are independent of each other. Checks, their order and their texts are those of Kafka's `ZkAdminManager`.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.clients import shown
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.tree_failures import error_of
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.scram import (
    BY_TYPE,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    credential_of,
    format_credential,
)
from kpybroker.core.tree import TreeError
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.ZkAdminManager")

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion

LEDGER = Ledger(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, {0: "upsertions and deletions, at the controller"})

NO_NAME = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
UNKNOWN_MECHANISM = KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
TWICE = KafkaError(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NOT_THERE = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


class _Changes(NamedTuple):
    """Of one user."""

    deletions: list[Deletion]
    upsertions: list[Upsertion]

    @property
    def mechanisms(self) -> list[int]:
        return [one.mechanism for one in self.deletions] + [one.mechanism for one in self.upsertions]


async def handle(
    broker: Broker, request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Apply the changes of each user, one user after the other."""
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    by_user: dict[str, _Changes] = defaultdict(lambda: _Changes([], []))
    budget = YieldBudget()
    for deletion in request.deletions:
        await budget.spend()
        by_user[deletion.name].deletions.append(deletion)
    for upsertion in request.upsertions:
        await budget.spend()
        by_user[upsertion.name].upsertions.append(upsertion)
    results = []
    for name, changes in by_user.items():
        await budget.spend()
        error = _refusal(name, changes) or await _try(broker, name, changes)
        results.append(_result(name, error))
    return AlterUserScramCredentialsResponse(results=results)


def _refusal(name: str, changes: _Changes) -> KafkaError | None:
    """What is wrong with the changes themselves. The last wrong one decides, those of upsertions before others."""
    if not name:
        return NO_NAME
    upsertions = [error for error in map(_upsertion_error, changes.upsertions) if error is not None]
    if upsertions:
        return upsertions[-1]
    if any(deletion.mechanism not in BY_TYPE for deletion in changes.deletions):
        return UNKNOWN_MECHANISM
    return TWICE if max(Counter(changes.mechanisms).values()) > 1 else None


def _upsertion_error(upsertion: Upsertion) -> KafkaError | None:
    if upsertion.mechanism not in BY_TYPE:
        return UNKNOWN_MECHANISM
    if upsertion.iterations > MAX_ITERATIONS:
        return TOO_MANY
    return TOO_FEW if upsertion.iterations < MIN_ITERATIONS else None


async def _try(broker: Broker, name: str, changes: _Changes) -> KafkaError | None:
    """What is not written of one user does not hide what was written of others."""
    try:
        return await _apply(broker, name, changes)
    except TreeError as failure:
        logger.error("Credentials of %s could not be changed: %r", shown(name), failure)
        return error_of(failure)


async def _apply(broker: Broker, name: str, changes: _Changes) -> KafkaError | None:
    entity = znodes.sanitize(name)
    props = await broker.configs.read(znodes.CONFIG_USERS, entity)
    for deletion in changes.deletions:
        if props.pop(BY_TYPE[deletion.mechanism].mechanism_name, None) is None:
            return NOT_THERE
    await broker.configs.write(znodes.CONFIG_USERS, entity, props | dict(_written(changes.upsertions)))
    return None


def _written(upsertions: list[Upsertion]) -> Iterator[tuple[str, str]]:
    for one in upsertions:
        mechanism = BY_TYPE[one.mechanism]
        credential = credential_of(mechanism, bytes(one.salt), bytes(one.salted_password), one.iterations)
        yield mechanism.mechanism_name, format_credential(credential)


def _result(name: str, error: KafkaError | None) -> Result:
    if error is None:
        return Result(user=name)
    message = None if error.message == error.code.message else error.message
    return Result(user=name, error_code=error.code, error_message=message)


def error_response(
    request: AlterUserScramCredentialsRequest, context: RequestContext, error: KafkaError
) -> AlterUserScramCredentialsResponse:
    """The error at each user."""
    names = dict.fromkeys([one.name for one in request.deletions] + [one.name for one in request.upsertions])
    return AlterUserScramCredentialsResponse(results=[_result(name, error) for name in names])
