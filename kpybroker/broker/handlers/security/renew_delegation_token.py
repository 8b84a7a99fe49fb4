"""RenewDelegationToken 0-2 (KIP-48): move the expiry of a token forward; for its owner and its renewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.security.tokens import ERROR_TIMESTAMP_MS, check_connection
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.RENEW_DELEGATION_TOKEN,
    0,
    2,
    {0: "a period from now on", 1: "throttle time after the response", 2: "flexible"},
)


async def handle(
    broker: Broker, request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse:
    """The new expiry."""
    check_connection(context.connection.security_protocol, context.principal)
    if broker.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    expiry_ms = await broker.tokens.renew(context.principal, bytes(request.hmac), request.renew_period_ms)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


def error_response(
    request: RenewDelegationTokenRequest, context: RequestContext, error: KafkaError
) -> RenewDelegationTokenResponse:
    """The error, and no expiry."""
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=ERROR_TIMESTAMP_MS)
