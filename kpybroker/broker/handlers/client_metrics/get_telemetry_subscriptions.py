"""GetTelemetrySubscriptions 0: which of its metrics a client shall push, and how often (KIP-714).

As in Kafka it needs no right, and is listed only where pushes are received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    0,
    0,
    {0: "subscriptions to client metrics (KIP-714); listed where `kpybroker.client.metrics` says so"},
    absent="patterns of `java.util.regex` that RE2 does not have; a pattern matches no value that has characters "
    "outside ASCII or more than 249 of them",
)

ACCEPTED: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order of Kafka's preference."""


async def handle(
    broker: Broker, request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    """What this client shall push; no metrics if no subscription applies to it."""
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = broker.client_metrics.manager.new_id()
    instance = await broker.client_metrics.get(instance_id, context)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=instance.subscription.interval_ms,
        telemetry_max_bytes=broker.client_metrics.manager.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.subscription.metrics),
    )


def error_response(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext, error: KafkaError
) -> GetTelemetrySubscriptionsResponse:
    """The error at the top of the response."""
    return GetTelemetrySubscriptionsResponse(error_code=error.code)
