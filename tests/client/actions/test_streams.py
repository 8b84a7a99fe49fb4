"""Streams groups in the commands: `group list|describe|seek|offset-delete|delete`, of a member that the test plays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Heartbeat
from tests.client.conftest import Run
from tests.support.requests.streams_group_requests import counting, topology

SETTLE_S = 60.0
UNASSIGNED: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


class Application:
    """One member of a streams group of the name of its topic."""

    def __init__(self, cluster: WireCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self.epoch = 0

    def beat(self, epoch: int | None = None, **fields: Any) -> Any:
        request = Heartbeat(
            group_id=self._name,
            member_id="one",
            member_epoch=self.epoch if epoch is None else epoch,
            **fields,
        )
        response = self._cluster.coordinator(self._name, GROUP).request(ApiKey.STREAMS_GROUP_HEARTBEAT, request)
        assert response.error_code == 0, response
        self.epoch = response.member_epoch
        return response

    def join(self, sent: Heartbeat.Topology) -> None:
        """Until it has tasks, and no one has to wait for topics."""
        self.beat(0, rebalance_timeout_ms=60_000, process_id="p", topology=sent, **UNASSIGNED)
        end = time.monotonic() + SETTLE_S
        while response := self.beat().status:
            assert time.monotonic() < end, response

    def commit(self, offset: int) -> None:
        part = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=self._name, partitions=[part])
        request = OffsetCommitRequest(
            group_id=self._name, member_id="one", generation_id_or_member_epoch=self.epoch, topics=[topic]
        )
        response = self._cluster.coordinator(self._name, GROUP).request(ApiKey.OFFSET_COMMIT, request)
        assert response.topics[0].partitions[0].error_code == 0


@pytest.fixture
def application(run: Run, bootstrap: str, name: str) -> Iterator[Application]:
    """Of a topic with two partitions and three records."""
    run("topic", "create", name, "-p", "2")
    run("topic", "produce", name, "-p", "0", stdin=b"0\n1\n2\n")
    with WireCluster(Settings(bootstrap, {}, SETTLE_S, "the test")) as cluster:
        yield Application(cluster, name)


def test_list_and_describe_say_what_a_streams_group_is(run: Run, application: Application, name: str) -> None:
    application.join(counting(name))
    application.commit(1)
    (row,) = run("group", "list", name, "--lag", "--format", "json").json
    assert (row["type"], row["state"], row["lag"]) == ("streams", "Stable", 2)
    assert run("group", "list", name, "--type", "consumer", "--format", "json").json == []
    (row,) = run("group", "describe", name, "--format", "json").json
    assert (row["type"], row["assignor"], row["topology_epoch"]) == ("streams", "sticky", 0)
    (member,) = row["members"]
    assert (member["process_id"], member["member_id"]) == ("p", "one")
    assert member["tasks"] == member["target_tasks"]
    assert sorted(member["tasks"]["active"]) == ["0_0", "0_1", "1_0", "1_1"]
    assert [one["subtopology"] for one in row["subtopologies"]] == ["0", "1"]
    offsets = {(one["topic"], one["partition"]): one for one in row["offsets"]}
    assert offsets[name, 0]["current_offset"] == 1
    assert {one["member_id"] for one in offsets.values()} == {"one"}
    text = run("group", "describe", name, "-m").text
    assert "TOPOLOGY-EPOCH" in text
    assert "1_1" in text


def test_a_group_without_its_topics_is_not_ready(run: Run, application: Application, name: str) -> None:
    application.beat(0, rebalance_timeout_ms=60_000, process_id="p", topology=topology(f"{name}-none"), **UNASSIGNED)
    (row,) = run("group", "list", name, "--state", "NotReady", "--format", "json").json
    assert row["state"] == "NotReady"
    (row,) = run("group", "describe", name, "--format", "json").json
    assert row["members"][0]["tasks"]["active"] == []


def test_it_is_moved_and_deleted_once_it_is_empty(run: Run, application: Application, name: str) -> None:
    application.join(topology(name))
    application.commit(3)
    refused = run("group", "seek", name, "--to", "start", "--execute")
    assert (refused.code, "has members" in refused.err) == (1, True)
    assert run("group", "delete", name, "--execute").code == 1
    application.beat(-1)
    moved = run("group", "seek", name, "--to", "start", "--execute", "--format", "json").json
    assert [(row["partition"], row["to"], row["status"]) for row in moved] == [(0, 0, "moved")]
    deleted = run("group", "offset-delete", name, "-t", name, "--execute", "--format", "json").json
    assert [row["status"] for row in deleted] == ["deleted"]
    assert run("group", "delete", name, "--execute").code == 0
    assert run("group", "list", name, "--format", "json").json == []
