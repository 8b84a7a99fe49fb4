"""SaslAuthenticate 0-2 where no login is in progress: on a listener without SASL, and after the login.

During a login the gate of the listener responds to it (`broker.security.gate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SASL_AUTHENTICATE,
    0,
    2,
    {0: "a token each way, an error message", 1: "session lifetime (KIP-368)", 2: "flexible"},
)

TOO_LATE = "SaslAuthenticate request received after successful authentication"


def handle(broker: Broker, request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    """Always refused, whatever the token is."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=TOO_LATE)


def error_response(
    request: SaslAuthenticateRequest, context: RequestContext, error: KafkaError
) -> SaslAuthenticateResponse:
    """The error and its message."""
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
