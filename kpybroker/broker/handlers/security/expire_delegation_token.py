"""ExpireDelegationToken 0-2 (KIP-48): move the expiry of a token, or end it now; for its owner and its renewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.security.tokens import ERROR_TIMESTAMP_MS, check_connection
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    0,
    2,
    {0: "a period from now on, or at once", 1: "throttle time after the response", 2: "flexible"},
)


async def handle(
    broker: Broker, request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    """The new expiry."""
    check_connection(context.connection.security_protocol, context.principal)
    if broker.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    expiry_ms = await broker.tokens.expire(context.principal, bytes(request.hmac), request.expiry_time_period_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


def error_response(
    request: ExpireDelegationTokenRequest, context: RequestContext, error: KafkaError
) -> ExpireDelegationTokenResponse:
    """The error, and no expiry."""
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=ERROR_TIMESTAMP_MS)
