"""Streams groups in the commands: `group list|describe|seek|offset-delete|delete`, of a member that the test plays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from tests.client.conftest import Run
from tests.support.requests.streams_application import SETTLE_S, UNASSIGNED, Application
from tests.support.requests.streams_group_requests import counting, topology


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
