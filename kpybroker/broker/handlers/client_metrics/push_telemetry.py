"""PushTelemetry 0: metrics that a client measured (KIP-714).

As in Kafka it needs no right, and is listed only where pushes are received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.PUSH_TELEMETRY,
    0,
    0,
    {0: "metrics of clients in OTLP (KIP-714); listed where `kpybroker.client.metrics` says so"},
)


async def handle(broker: Broker, request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    """Take the metrics, once an interval."""
    await broker.client_metrics.push(request, context)
    return PushTelemetryResponse()


def error_response(request: PushTelemetryRequest, context: RequestContext, error: KafkaError) -> PushTelemetryResponse:
    """The error at the top of the response."""
    return PushTelemetryResponse(error_code=error.code)
