"""GetTelemetrySubscriptions: what a client is asked to push."""

from __future__ import annotations

from pathlib import Path

from kpybroker.broker.handlers.client_metrics import get_telemetry_subscriptions
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import GROUP_VERSION, VersionRange
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from tests.support.brokers.configured_broker import call
from tests.support.brokers.control_broker import Denying
from tests.support.brokers.running_broker import running_broker
from tests.support.requests.client_metrics_requests import PushingClient, subscribe

FEATURES = {GROUP_VERSION: VersionRange(0, 1)}


async def test_a_client_gets_an_id_and_what_matches_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features=FEATURES, telemetry_max_bytes="2000") as broker:
        await subscribe(broker, "all", metrics="m.", interval_ms="5000")
        await subscribe(broker, "other", metrics="n.", match="client_id=other")
        response = await PushingClient(broker).get()
        assert response.error_code == ErrorCode.NONE
        assert response.client_instance_id not in (bytes(16), (1).to_bytes(16))
        assert (response.requested_metrics, response.push_interval_ms) == (["m."], 5000)
        assert response.accepted_compression_types == [4, 3, 1, 2]
        assert (response.telemetry_max_bytes, response.delta_temporality) == (2000, True)
        both = await PushingClient(broker, "other", "c-2").get()
        assert sorted(both.requested_metrics) == ["m.", "n."]


async def test_a_client_without_subscriptions_is_asked_for_nothing(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features=FEATURES) as broker:
        response = await PushingClient(broker).get()
        assert (response.error_code, response.requested_metrics, response.push_interval_ms) == (0, [], 300_000)


async def test_a_client_that_asks_too_soon_is_throttled(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features=FEATURES) as broker:
        client = PushingClient(broker)
        await client.get()
        response = await client.get()
        assert response.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert (response.client_instance_id, response.requested_metrics) == (bytes(16), [])


async def test_it_needs_no_right(tmp_path: Path) -> None:
    every = {(operation, kind, None) for operation in Operation for kind in ResourceType}
    async with running_broker(tmp_path, features=FEATURES) as broker:
        request = GetTelemetrySubscriptionsRequest()
        response = await call(broker, get_telemetry_subscriptions, request, 0, authorizer=Denying(every))
        assert response.error_code == ErrorCode.NONE
