"""The methods of the request log: which requests are listed, and waiting for some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.control.errors import ControlError
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from tests.support.brokers.hosted_cluster import HostedCluster, hosted_cluster
from tests.support.brokers.running_broker import ask


async def send(cluster: HostedCluster, broker: int = 0, client_id: str = "one") -> None:
    await ask(cluster[broker], HeartbeatRequest(group_id="g"), 4, client_id=client_id)
    await ask(cluster[broker], ListGroupsRequest(), 4, client_id=client_id)


async def listed(cluster: HostedCluster, **arguments: Any) -> list[tuple[str, str, int]]:
    clients = {"client_id": ["one", "two"]} | arguments
    found = await cluster.call("requests", **clients)
    return [(one["api"], one["client_id"], one["broker"]) for one in found]


async def test_requests_can_be_selected(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 2) as cluster:
        await send(cluster, 0, "one")
        await send(cluster, 1, "two")
        heartbeats = [("Heartbeat", "one", 0), ("Heartbeat", "two", 1)]
        groups = [("ListGroups", "one", 0), ("ListGroups", "two", 1)]
        everything = [heartbeats[0], groups[0], heartbeats[1], groups[1]]
        assert await listed(cluster) == everything
        assert await listed(cluster, api="Heartbeat") == heartbeats
        assert await listed(cluster, api=[16, "Heartbeat"]) == everything
        assert await listed(cluster, client_id="t*") == everything[2:]
        assert await listed(cluster, broker=0) == everything[:2]
        assert await listed(cluster, limit=1) == everything[3:]
        first = (await cluster.call("requests", client_id="one"))[0]
        assert await listed(cluster, since=first["id"]) == everything[1:]
        assert first["request"]["group_id"] == "g"
        assert "request" not in (await cluster.call("requests", bodies=False))[-1]


async def test_requests_can_be_forgotten(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await send(cluster)
        before = (await cluster.call("requests"))[-1]["id"]
        await cluster.call("clear_requests")
        assert await cluster.call("requests") == []
        await send(cluster)
        assert (await cluster.call("requests"))[0]["id"] > before


async def test_requests_can_be_waited_for(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster, trio.open_nursery() as nursery:
        await send(cluster)
        assert await cluster.call("wait_requests", api="Heartbeat", client_id="one") == {"count": 1, "dropped": 0}

        async def later() -> None:
            for _ in range(3):
                await send(cluster)

        nursery.start_soon(later)
        assert (await cluster.call("wait_requests", api="Heartbeat", count=3))["count"] >= 3


async def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        cases: list[tuple[dict[str, Any], str, int]] = [
            ({"api": "Heartbeet"}, "`api` is 'Heartbeet', which is not an API", 400),
            ({"timeout_ms": 0, "api": "JoinGroup"}, "0 such requests have arrived within 0 ms, not 1", 408),
            ({"timeout_ms": -1}, "wait_requests: `timeout_ms` is -1", 400),
        ]
        for arguments, cause, status in cases:
            with pytest.raises(ControlError) as raised:
                await cluster.call("wait_requests", **arguments)
            assert (raised.value.cause, raised.value.status) == (cause, status)
        with pytest.raises(ControlError, match="`limit` is 0"):
            await cluster.call("requests", limit=0)
