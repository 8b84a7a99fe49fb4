"""The methods of client metrics: what is listed, what is waited for, and what is asked of clients."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from kpybroker.control.errors import ControlError
from kpybroker.control.methods import client_metrics
from tests.support.brokers.hosted_cluster import HostedCluster, eventually, hosted_cluster
from tests.support.metrics.pushes import CREATIONS, LATENCY, QUEUE_TIME, gauge, metrics_data, pushed, total


async def receive(
    cluster: HostedCluster, data: bytes, broker: int = 0, client_id: str = "orders", instance: int = 1
) -> None:
    await cluster[broker].received_metrics.receive(pushed(data, client_id, instance))


async def test_what_clients_have_pushed_is_listed_by_broker_the_newest_last(tmp_path: Path) -> None:
    data = metrics_data(gauge(QUEUE_TIME, 1.5), total(CREATIONS, 2, node_id=1), group_id="g")
    async with hosted_cluster(tmp_path, 2) as cluster:
        assert await cluster.call("client_metrics") == []
        await receive(cluster, data)
        await receive(cluster, metrics_data(), broker=1, client_id="other", instance=2)
        first, other = await cluster.call("client_metrics")
        assert (other["client_id"], other["broker"], other["series"]) == ("other", 1, [])
        assert {name: value for name, value in first.items() if name not in ("series", "since_ms", "pushed_ms")} == {
            "instance_id": "AAAAAAAAAAAAAAAAAAAAAQ",
            "client_id": "orders",
            "software_name": "apache-kafka-java",
            "software_version": "4.3.1",
            "address": "10.0.0.1",
            "broker": 0,
            "resource": {"group_id": "g"},
            "pushes": 1,
            "is_terminated": False,
            "left_out": 0,
        }
        assert [(one["name"], one["kind"], one["labels"], one["value"]) for one in first["series"]] == [
            (CREATIONS, "count", {"node_id": "1"}, 2),
            (QUEUE_TIME, "gauge", {}, 1.5),
        ]


async def test_some_of_it_is_listed(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await receive(cluster, metrics_data(gauge(QUEUE_TIME, 1), gauge(LATENCY, 2)))
        await receive(cluster, metrics_data(gauge(QUEUE_TIME, 3)), client_id="other", instance=2)

        async def found(**wanted: Any) -> list[tuple[str, int]]:
            listed = await cluster.call("client_metrics", series=False, **wanted)
            return [(one["client_id"], one["series"]) for one in listed]

        assert await found() == [("orders", 2), ("other", 1)]
        assert await found(client_id="other") == [("other", 1)]
        assert await found(name=LATENCY) == [("orders", 1), ("other", 0)]
        assert await found(instance_id="AAAAAAAAAAAAAAAAAAAAAQ") == [("orders", 2)]


async def test_numbers_that_json_has_not_are_texts(tmp_path: Path) -> None:
    summary = Metric(name="s")
    point = summary.summary.data_points.add(count=1, sum=math.inf)
    point.quantile_values.add(quantile=0.5, value=math.nan)
    async with hosted_cluster(tmp_path, 1) as cluster:
        await receive(cluster, metrics_data(gauge("nan", math.nan), gauge("low", -math.inf), summary))
        (found,) = await cluster.call("client_metrics")
    json.dumps(found, allow_nan=False)
    series = {one["name"]: one for one in found["series"]}
    assert (series["nan"]["value"], series["low"]["value"]) == ("NaN", "-Inf")
    assert (series["s"]["sum"], series["s"]["at"], series["s"]["values"]) == ("+Inf", [0.5], ["NaN"])


async def test_a_client_is_waited_for(tmp_path: Path) -> None:
    found: dict[str, Any] = {}

    async def wait(**wanted: Any) -> None:
        found.update(await cluster.call("wait_client_metrics", timeout_ms=60_000, **wanted))

    async with hosted_cluster(tmp_path, 2) as cluster:
        await receive(cluster, metrics_data(gauge(LATENCY, 2)), client_id="other", instance=2)
        for wanted in ({"name": QUEUE_TIME}, {"pushes": 4}):
            found.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(wait, client_id="orders", **wanted))
                await receive(cluster, metrics_data(), broker=1)
                await trio.testing.wait_all_tasks_blocked()
                assert found == {}
                await receive(cluster, metrics_data(gauge(QUEUE_TIME, 7)), broker=1)
            assert (found["client_id"], found["broker"]) == ("orders", 1)
            assert [one["value"] for one in found["series"]] == [7]


async def test_a_wait_that_ends_says_who_has_pushed(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await receive(cluster, metrics_data(), client_id="other")
        with pytest.raises(ControlError) as caught:
            await cluster.call("wait_client_metrics", client_id="orders", timeout_ms=1)
    assert caught.value.status == 408
    assert "those that have pushed: other (1 pushes)" in caught.value.cause


async def test_a_subscription_is_made_changed_and_removed(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        manager = cluster[0].client_metrics.manager

        async def subscribed(*expected: Any, **wanted: Any) -> None:
            await cluster.call("subscribe_client_metrics", **wanted)
            await eventually(
                lambda: [(one.metrics, one.interval_ms) for one in manager.subscriptions.values()] == [*expected],
                f"{expected} subscribed",
            )

        await subscribed((("org.apache.kafka.",), 1000))
        await subscribed((("*",), 500), metrics=["*"], interval_ms=500, match=["client_id=orders.*"])
        await subscribed(metrics=[])


async def test_a_subscription_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        with pytest.raises(ControlError, match="changing the subscription test"):
            await cluster.call("subscribe_client_metrics", interval_ms=1)


async def test_without_the_packages_a_subscription_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_metrics, "available", lambda: "pip install them")
    async with hosted_cluster(tmp_path, 1) as cluster:
        with pytest.raises(ControlError, match="no client is asked for its metrics") as caught:
            await cluster.call("subscribe_client_metrics")
    assert (caught.value.fix, caught.value.status) == ("pip install them", 409)
