"""DescribeDelegationToken 0-3 (KIP-48): tokens with their HMACs, for those whom they concern or who may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.tokens import Token, check_connection, may_describe
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Described = DescribeDelegationTokenResponse.DescribedDelegationToken
Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer

LEDGER = Ledger(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    0,
    3,
    {
        0: "the tokens of some owners, or all",
        1: "throttle time after the response",
        2: "flexible",
        3: "the requester (KIP-373)",
    },
)

REQUESTER_FROM = 3


def handle(
    broker: Broker, request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """From this broker's cache; none at all for an empty list of owners."""
    principal = context.principal
    check_connection(context.connection.security_protocol, principal)
    if broker.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = [Principal(owner.principal_type, owner.principal_name) for owner in request.owners]

    def is_authorized(token: Token) -> bool:
        return context.authorized(
            Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
        ) or context.authorized(Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))

    found = broker.tokens.tokens(lambda token: may_describe(token, principal, owners, is_authorized))
    return DescribeDelegationTokenResponse(tokens=[_described(*one, context) for one in found])


def _described(token: Token, token_hmac: bytes, context: RequestContext) -> Described:
    has_requester = context.api_version >= REQUESTER_FROM
    return Described(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type if has_requester else "",
        token_requester_principal_name=token.requester.name if has_requester else "",
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiry_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac,
        renewers=[Renewer(principal_type=one.type, principal_name=one.name) for one in token.renewers],
    )


def error_response(
    request: DescribeDelegationTokenRequest, context: RequestContext, error: KafkaError
) -> DescribeDelegationTokenResponse:
    """The error, and no tokens."""
    return DescribeDelegationTokenResponse(error_code=error.code)
