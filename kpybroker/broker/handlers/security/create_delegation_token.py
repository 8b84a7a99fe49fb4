"""CreateDelegationToken 0-3 (KIP-48): a token for the principal of the connection, or for another one (KIP-373)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.tokens import ERROR_TIMESTAMP_MS, check_connection, check_renewers
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CREATE_DELEGATION_TOKEN,
    0,
    3,
    {0: "renewers, maximum lifetime", 1: "throttle time after the response", 2: "flexible", 3: "an owner (KIP-373)"},
)

REQUESTER_FROM = 3


async def handle(
    broker: Broker, request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Checks in the order of `KafkaApis`: the connection, the owner, the renewers, the configuration."""
    requester, owner = context.principal, _owner(request, context)
    check_connection(context.connection.security_protocol, requester)
    if owner != requester and not context.authorized(Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    renewers = tuple(Principal(one.principal_type, one.principal_name) for one in request.renewers)
    check_renewers(renewers)
    if broker.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token, token_hmac = await broker.tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    response = _response(owner, context)
    response.issue_timestamp_ms = token.issue_timestamp_ms
    response.expiry_timestamp_ms = token.expiry_timestamp_ms
    response.max_timestamp_ms = token.max_timestamp_ms
    response.token_id = token.token_id
    response.hmac = token_hmac
    return response


def _owner(request: CreateDelegationTokenRequest, context: RequestContext) -> Principal:
    if not request.owner_principal_name:
        return context.principal
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def _response(owner: Principal, context: RequestContext) -> CreateDelegationTokenResponse:
    has_requester = context.api_version >= REQUESTER_FROM
    return CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=context.principal.type if has_requester else "",
        token_requester_principal_name=context.principal.name if has_requester else "",
        issue_timestamp_ms=ERROR_TIMESTAMP_MS,
        expiry_timestamp_ms=ERROR_TIMESTAMP_MS,
        max_timestamp_ms=ERROR_TIMESTAMP_MS,
    )


def error_response(
    request: CreateDelegationTokenRequest, context: RequestContext, error: KafkaError
) -> CreateDelegationTokenResponse:
    """The error with the owner and the requester."""
    response = _response(_owner(request, context), context)
    response.error_code = error.code
    return response
