"""Client metrics of one broker: when the APIs are listed, how subscriptions arrive, and when instances end."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.client_metrics import service
from kpybroker.config.keys.own import CLIENT_METRICS_OFF, CLIENT_METRICS_ON, CLIENT_METRICS_SUBSCRIBED
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.coordination.tree import create_recursive
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.brokers.hosted import until
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.requests.client_metrics_requests import PushingClient, Recorder, subscribe

APIS = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
MINUTE_MS = 60_000


async def listed(broker: Broker) -> bool:
    request = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.0")
    found = APIS & {one.api_key for one in (await ask(broker, request, 3)).api_keys}
    assert found in (set(), APIS)
    return bool(found)


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [
        (CLIENT_METRICS_OFF, False, False),
        (CLIENT_METRICS_SUBSCRIBED, False, True),
        (CLIENT_METRICS_ON, True, True),
    ],
)
async def test_the_apis_are_listed_as_the_setting_says(tmp_path: Path, mode: str, before: bool, after: bool) -> None:
    async with running_broker(tmp_path, kpybroker_client_metrics=mode) as broker:
        broker.client_metrics.receiver = None
        assert not await listed(broker)
        broker.client_metrics.receiver = Recorder()
        assert await listed(broker) is before
        await subscribe(broker, "s", metrics="m.")
        assert await listed(broker) is after
        await subscribe(broker, "s", metrics=None)
        assert await listed(broker) is before


@pytest.mark.parametrize("keys", [{"kpybroker_kafka_version": "3.9"}, {"features": {}}], ids=["release", "features"])
async def test_a_broker_in_the_place_of_kafka_3_9_lists_nothing(tmp_path: Path, keys: dict[str, Any]) -> None:
    async with running_broker(tmp_path, kpybroker_client_metrics=CLIENT_METRICS_ON, **keys) as broker:
        broker.client_metrics.receiver = Recorder()
        assert not await listed(broker)


async def test_without_the_packages_nothing_is_listed_and_the_log_says_once_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "available", lambda: "install them")
    async with running_broker(tmp_path, kpybroker_client_metrics=CLIENT_METRICS_ON) as broker:
        await subscribe(broker, "s", metrics="m.")
        for _ in range(2):
            assert not await listed(broker)
        client = PushingClient(broker)
        await client.get()
        assert await client.push() == ErrorCode.NONE
        assert broker.received_metrics.clients() == []
    lines = [record.getMessage() for record in caplog.records if "install them" in record.getMessage()]
    assert lines == ["[KafkaServer id=0] No client is asked for its metrics: install them"]


async def names(broker: Broker) -> list[str]:
    response = await ask(broker, ListConfigResourcesRequest(), 0)
    return sorted(one.resource_name for one in response.config_resources)


async def test_a_subscription_of_another_broker_or_tool_counts(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        broker.client_metrics.receiver = Recorder()
        client = PushingClient(broker)
        assert (await client.get()).requested_metrics == []
        await write(broker, "a/b", {"metrics": "m."})
        with trio.fail_after(30):
            while await names(broker) != ["a/b"]:
                await trio.lowlevel.checkpoint()
        response = await client.get()  # a change of subscriptions is no reason to be throttled
        assert response.requested_metrics == ["m."]
        assert await client.push() == ErrorCode.NONE


async def write(broker: Broker, name: str, props: dict[str, str]) -> None:
    entity = znodes.client_metrics_entity(name)
    path = znodes.config_path(znodes.CONFIG_CLIENT_METRICS, entity)
    await create_recursive(broker.tree, path, znodes.encode_config(props))
    notification = znodes.encode_config_change(f"{znodes.CONFIG_CLIENT_METRICS}/{entity}")
    await broker.tree.create(znodes.config_change_path(), notification, sequential=True)


async def test_what_is_no_subscription_is_reported_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        await subscribe(broker, "good", metrics="m.")
        with caplog.at_level(logging.ERROR):
            await write(broker, "bad", {"match": "client_id=("})
            await until(lambda: "bad" in caplog.text)
        assert "The client metrics subscription bad is not used: Illegal client matching pattern" in caplog.text
        assert (await PushingClient(broker).get()).requested_metrics == ["m."]


async def test_subscriptions_are_kept_over_a_restart(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"keeps": True, "kpybroker_client_metrics": CLIENT_METRICS_SUBSCRIBED}
    async with running_broker(tmp_path, **keys) as broker:
        await subscribe(broker, "s", metrics="m.")
        await subscribe(broker, "gone", metrics="n.")
        await subscribe(broker, "gone", metrics=None)
        before = await PushingClient(broker).get()
        assert await broker.configs.entities(znodes.CONFIG_CLIENT_METRICS) == ["s"]
    async with running_broker(tmp_path, **keys) as broker:
        broker.client_metrics.receiver = Recorder()
        assert await listed(broker)
        client = PushingClient(broker)
        client.instance_id, client.subscription_id = before.client_instance_id, before.subscription_id
        assert await client.push() == ErrorCode.NONE  # any broker knows what this client was asked for


async def test_nothing_is_imported_or_spawned_before_it_is_used(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        assert not broker.client_metrics.is_used
        broker.client_metrics.disconnected("c-1")
        assert await names(broker) == []
        assert not broker.client_metrics.is_used


async def test_instances_end_with_their_connections_and_with_time(tmp_path: Path) -> None:
    clock = MovableClock()
    async with running_broker(tmp_path, clock=clock) as broker:
        manager = broker.client_metrics.manager
        first, second = PushingClient(broker, connection_id="c-1"), PushingClient(broker, connection_id="c-2")
        await first.get()
        await second.get()
        broker.client_metrics.disconnected("c-1")
        assert list(manager.instances) == [second.instance_id]
        await clock.advance(14 * MINUTE_MS, trio.testing.wait_all_tasks_blocked)
        assert list(manager.instances) == [second.instance_id]
        await clock.advance(2 * MINUTE_MS, trio.testing.wait_all_tasks_blocked)
        await until(partial(_is_empty, manager.instances))
        assert broker.budget.total == 0


def _is_empty(instances: Any) -> bool:
    return not instances


async def test_the_end_of_a_connection_ends_its_instance(tmp_path: Path) -> None:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=b"a" * 16)
    header = encode_request_header(RequestHeader(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 1, "c"))
    body = header + encode(request, 0)
    async with running_broker(tmp_path) as broker:
        stream = await broker.transport.connect("127.0.0.1", 9092, timeout_s=60)
        await stream.send_parts([len(body).to_bytes(4, "big") + body])
        instances = broker.client_metrics.manager.instances
        await until(lambda: list(instances) == [b"a" * 16])
        stream.close()
        await until(partial(_is_empty, instances))
