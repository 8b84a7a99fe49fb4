"""SaslHandshake 0-1 where no login is expected: on a listener without SASL, and after the login.

On a SASL listener the gate responds to it (`broker.security.gate`); there version 0 announces bare tokens, version 1
SaslAuthenticate.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.log_fields import of_request
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.KafkaApis")

LEDGER = Ledger(
    ApiKey.SASL_HANDSHAKE, 0, 1, {0: "the mechanism; bare tokens follow", 1: "tokens follow in SaslAuthenticate"}
)


def handle(broker: Broker, request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    """Always refused: the client has logged in, or need not."""
    connection = context.connection
    if not connection.security_protocol.startswith("SASL_") and broker.first_times.is_first(connection, "no SASL"):
        logger.warning(
            "%s wants to log in on listener %s, which has no SASL: set security.protocol=%s in the client",
            client_name(connection),
            connection.listener_name,
            connection.security_protocol,
            extra=of_request(context),
        )
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def error_response(request: SaslHandshakeRequest, context: RequestContext, error: KafkaError) -> SaslHandshakeResponse:
    """The error without mechanisms."""
    return SaslHandshakeResponse(error_code=error.code)
