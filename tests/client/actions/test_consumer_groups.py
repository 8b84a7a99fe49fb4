"""`group list|describe|seek|delete|offset-delete` of groups of the new protocol (KIP-848)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer

from kpybroker.client.connect.settings import ENVIRONMENT, Settings
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.client.conftest import Run
from tests.support.programs.command_line import Result, invoke
from tests.support.programs.threaded_broker import threaded_broker

SETTLE_S = 120
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    hour = {f"group_consumer_{name}session_timeout_ms": str(HOUR_MS) for name in ("max_", "")}
    with threaded_broker(tmp_path_factory.mktemp("groups"), **hour) as bootstrap:
        yield bootstrap


@pytest.fixture
def run(address: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv(ENVIRONMENT, address)

    def with_address(*arguments: str, stdin: bytes = b"") -> Result:
        return invoke(monkeypatch, *arguments, stdin=stdin)

    return with_address


@pytest.fixture
def topic(run: Run, name: str) -> str:
    run("topic", "create", name, "-p", "2")
    run("topic", "produce", name, "-f", "json", stdin=b'{"value":"a","partition":0}\n{"value":"b","partition":1}\n')
    return name


@contextmanager
def member(address: str, group: str, subscription: str, protocol: str = "consumer", **more: str) -> Iterator[None]:
    """A live member, polled by a thread until the end."""
    ends = threading.Event()
    keys = {"bootstrap.servers": address, "group.id": group, "group.protocol": protocol, "log_level": 0, **more}
    consumer = Consumer(keys)
    consumer.subscribe([subscription])

    def poll() -> None:
        while not ends.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(SETTLE_S)
        assert not thread.is_alive()


def settled(run: Run, group: str, members: int) -> dict[str, Any]:
    """The group, once it has so many members and all of them have what they are to have."""
    waited = threading.Event()
    for _ in range(SETTLE_S * 5):
        rows = run("group", "describe", group, "--format", "json").json
        if rows and len(rows[0]["members"]) == members and rows[0]["state"] == "Stable":
            return dict(rows[0])
        waited.wait(0.2)
    raise AssertionError(f"the group did not settle: {rows!r}")


def test_a_described_group_has_epochs_subscriptions_and_targets(run: Run, topic: str, address: str) -> None:
    with ExitStack() as members:
        names = {"client.id": "names", "group.instance.id": "one"}
        members.enter_context(member(address, topic, topic, **names))
        settled(run, topic, 1)
        members.enter_context(member(address, topic, f"^{topic}.*", **{"client.id": "regex"}))
        found = settled(run, topic, 2)
        head = [found[key] for key in ("state", "type", "protocol_type", "assignor")]
        assert head == ["Stable", "consumer", "consumer", "uniform"]
        assert found["group_epoch"] == found["assignment_epoch"] > 2
        by_client = {one["client_id"]: one for one in found["members"]}
        assert by_client["names"]["topics"] == [topic]
        assert (by_client["names"]["regex"], by_client["names"]["instance_id"]) == (None, "one")
        assert (by_client["regex"]["topics"], by_client["regex"]["regex"]) == ([], f"(^{topic}.*)")
        for one in found["members"]:
            assert (one["member_epoch"], one["protocol"]) == (found["group_epoch"], "consumer")
            assert one["target"] == one["assignment"]
            assert len(one["target"]) == 1
        shown = run("group", "describe", topic, "-m").text
        assert f"EPOCH         {found['group_epoch']}\n" in shown
        assert f"TARGET-EPOCH  {found['group_epoch']}\n" in shown
        (row,) = [line.split() for line in shown.splitlines() if "/(^" in line]
        assert row[-4:-2] == [str(found["group_epoch"]), f"/(^{topic}.*)/"]


def test_groups_are_listed_by_type_and_members_of_both_protocols_are_shown(run: Run, topic: str, address: str) -> None:
    old, new = f"{topic}-old", f"{topic}-new"
    with member(address, old, topic, "classic"), member(address, new, topic, "classic"):
        settled(run, old, 1)
        settled(run, new, 1)
        with member(address, new, topic):
            found = settled(run, new, 2)
            assert sorted(one["protocol"] for one in found["members"]) == ["classic", "consumer"]
            assert {one["member_epoch"] for one in found["members"]} == {found["group_epoch"]}
            rows = run("group", "list", f"{topic}*", "--format", "json").json
            assert {row["group"]: (row["state"], row["type"]) for row in rows} == {
                old: ("Stable", "classic"),
                new: ("Stable", "consumer"),
            }
            for kind, expected in (("classic", old), ("consumer", new)):
                listed = run("group", "list", f"{topic}*", "--type", kind).table
                assert [row["GROUP"] for row in listed] == [expected]
            (classic,) = run("group", "describe", old, "--format", "json").json
            assert (classic["group_epoch"], classic["assignment_epoch"]) == (None, None)
            assert {classic["members"][0][key] for key in ("member_epoch", "target", "regex")} == {None}
            assert "EPOCH" not in run("group", "describe", old, "-m").text


def test_a_group_on_its_way_has_kafkas_name_for_its_state(run: Run, topic: str, address: str) -> None:
    """librdkafka lists it as Unknown. The first member sends no second heartbeat, so it gives nothing up."""
    with WireCluster(Settings(address, {}, SETTLE_S, "the test")) as cluster:
        broker = cluster.coordinator(topic, GROUP)
        for member_id in ("early", "late"):
            heartbeat = ConsumerGroupHeartbeatRequest(
                group_id=topic,
                member_id=member_id,
                rebalance_timeout_ms=HOUR_MS,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            )
            assert broker.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat).error_code == ErrorCode.NONE
    (row,) = run("group", "list", topic, "--state", "reconciling", "--format", "wide").table
    assert (row["GROUP"], row["STATE"], row["TYPE"], row["MEMBERS"]) == (topic, "Reconciling", "consumer", "2")
    (found,) = run("group", "describe", topic, "--format", "json").json
    assert found["state"] == "Reconciling"
    members = {one["member_id"]: one for one in found["members"]}
    counts = {name: (len(one["assignment"]), len(one["target"])) for name, one in members.items()}
    assert counts == {"early": (2, 1), "late": (0, 1)}
    assert members["early"]["member_epoch"] < members["late"]["member_epoch"] == found["group_epoch"]


def test_members_keep_a_group_and_without_them_it_is_moved_and_deleted(run: Run, topic: str, address: str) -> None:
    with member(address, topic, topic, **{"client.id": "live"}):
        settled(run, topic, 1)
        refused = run("group", "seek", topic, "--to", "start")
        assert refused.code == 1
        assert f"group {topic} has members: live at 127.0.0.1" in refused.err
        deleted = run("group", "delete", topic, "-y")
        assert (deleted.code, "NON_EMPTY_GROUP" in deleted.err) == (1, True)
    moved = run("group", "seek", topic, "--to", "1", "-t", topic, "-y").table
    assert [(row["TO"], row["STATUS"]) for row in moved] == [("1", "moved")] * 2
    (found,) = run("group", "describe", topic, "--format", "json").json
    assert (found["state"], found["type"]) == ("Empty", "consumer")
    assert [row["current_offset"] for row in found["offsets"]] == [1, 1]
    gone = run("group", "offset-delete", topic, "-t", f"{topic}:0", "-y").table
    assert [row["STATUS"] for row in gone] == ["deleted"]
    assert [row["STATUS"] for row in run("group", "delete", topic, "-y").table] == ["deleted"]
    assert run("group", "list", topic).err == "there is no such group\n"
