"""A client that asks for its subscriptions and pushes, a receiver that records, and subscriptions in short form."""

from __future__ import annotations

from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.client_metrics.receiver import InvalidMetrics, Pushed
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kpybroker.wire.messages.push_telemetry import PushTelemetryRequest
from tests.support.brokers.running_broker import ask
from tests.support.requests.config_requests import DELETE, SET, change

CLIENT_METRICS = 16
NOT_OTLP = b"not otlp"


class Recorder:
    """A `Receiver` that keeps what it gets, and takes all but NOT_OTLP for metrics."""

    def __init__(self) -> None:
        self.pushed: list[Pushed] = []

    async def receive(self, pushed: Pushed) -> None:
        if pushed.metrics == NOT_OTLP:
            raise InvalidMetrics("it has no fields")
        self.pushed.append(pushed)


async def subscribe(broker: Broker, name: str, **props: str | None) -> None:
    """Set keys of a subscription, `_` for `.`; None unsets one."""
    ops = [(key.replace("_", "."), DELETE if value is None else SET, value) for key, value in props.items()]
    assert await change(broker, (CLIENT_METRICS, name, ops)) == [(ErrorCode.NONE, None)]


class PushingClient:
    """One client instance on one connection. `instance_id` and `subscription_id` are those of its last response."""

    def __init__(self, broker: Broker, client_id: str = "app", connection_id: str = "c-1") -> None:
        self._broker, self._client_id = broker, client_id
        self.connection = PlainConnectionInfo(connection_id=connection_id, client=("10.0.0.7", 40_001))
        self.connection.client_software_name = "librdkafka"
        self.connection.client_software_version = "2.16.0"
        self.instance_id = bytes(16)
        self.subscription_id = 0

    async def _ask(self, request: Any) -> Any:
        return await ask(self._broker, request, 0, self._client_id, self.connection)

    async def get(self) -> GetTelemetrySubscriptionsResponse:
        response: GetTelemetrySubscriptionsResponse = await self._ask(
            GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)
        )
        if response.error_code == ErrorCode.NONE:
            self.instance_id, self.subscription_id = response.client_instance_id, response.subscription_id
        return response

    async def push(self, metrics: bytes = b"metrics", **fields: Any) -> ErrorCode:
        request = PushTelemetryRequest(
            **{
                "client_instance_id": self.instance_id,
                "subscription_id": self.subscription_id,
                "metrics": metrics,
                **fields,
            }
        )
        response = await self._ask(request)
        return ErrorCode(response.error_code)
