"""`kpybroker partition` against a cluster of three brokers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpybroker.client.connect.settings import ENVIRONMENT
from kpybroker.testing import Cluster
from tests.client.conftest import Run
from tests.support.programs.command_line import Result, invoke

SOON_S = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # The last replica in sync that stops has no one to give its leadership to, and tries three times.
    config = {"auto.leader.rebalance.enable": "false", "controlled.shutdown.retry.backoff.ms": "200"}
    with Cluster(3, config=config) as running:
        yield running


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv(ENVIRONMENT, cluster.bootstrap_servers)

    def with_address(*arguments: str, stdin: bytes = b"") -> Result:
        return invoke(monkeypatch, *arguments, stdin=stdin)

    return with_address


def replicas(run: Run, topic: str) -> list[list[int]]:
    (found,) = run("topic", "describe", topic, "--format", "json").json
    return [one["replicas"] for one in found["partitions"]]


def configs(run: Run, kind: str, name: str) -> dict[str, str]:
    rows: list[dict[str, Any]] = run("config", "describe", kind, name, "--format", "json").json
    return {one["key"]: one["value"] for row in rows for one in row["configs"] if "throttled" in one["key"]}


def test_partitions_are_moved_with_a_throttle_that_goes(run: Run, name: str, tmp_path: Path) -> None:
    run("topic", "create", name, "--replica-assignment", "0,0,0,0")
    run("topic", "produce", name, "-p", "0", stdin=b"x" * 5000 + b"\n")
    dry = run("partition", "move", name, "--to", "1,2")
    assert dry.code == 0
    assert "dry run" in dry.err
    assert replicas(run, name) == [[0], [0], [0], [0]]
    words = ("--to", "1,2", "--throttle", "10000000", "--wait", "--execute", "--save", str(tmp_path / "before.json"))
    moved = run("partition", "move", name, *words, "--format", "json")
    assert moved.code == 0, moved
    assert [(row["from"], row["to"], row["status"]) for row in moved.json] == [
        ([0], [1], "moved"), ([0], [2], "moved"), ([0], [1], "moved"), ([0], [2], "moved")
    ]  # fmt: skip
    assert replicas(run, name) == [[1], [2], [1], [2]]
    assert configs(run, "topic", name) == {}
    for broker in "012":
        assert configs(run, "broker", broker) == {}
    assert run("topic", "consume", name, "-e").out == b"x" * 5000 + b"\n"
    back = run("partition", "move", "--plan", str(tmp_path / "before.json"), "--wait", "--execute")
    assert back.code == 0
    assert replicas(run, name) == [[0], [0], [0], [0]]
    assert run("partition", "move", name, "--to", "0", "--execute", "--format", "json").json[0]["status"] == "stays"


def test_the_number_of_replicas_is_changed(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "2", "-r", "1")
    assert run("partition", "move", name, "--replicas", "3", "--wait", "--execute").code == 0
    assert [sorted(found) for found in replicas(run, name)] == [[0, 1, 2], [0, 1, 2]]
    assert run("partition", "move", f"{name}:1", "--replicas", "1", "--wait", "--execute").code == 0
    assert [len(found) for found in replicas(run, name)] == [3, 1]


def test_a_move_is_seen_and_cancelled(run: Run, cluster: Cluster, name: str) -> None:
    run("topic", "create", name, "--replica-assignment", "0,0")
    run("topic", "produce", name, "-p", "0", stdin=b"".join(b"%d" % n * 500 + b"\n" for n in range(200)))
    assert run("partition", "moves").err == "no partition is moving\n"
    plan = json.dumps({"partitions": [{"topic": name, "partition": 0, "replicas": [2, 0]}]}).encode()
    with cluster.faults.disconnect("Fetch", topic=name) as fault:
        started = run("partition", "move", "--plan", "-", "--throttle", "1000", "--execute", stdin=plan)
        assert started.code == 0
        fault.wait(1)
        assert "kpybroker partition moves --end-throttle" in started.err
        (row,) = run("partition", "moves", "--format", "json").json
        assert (row["topic"], row["partition"], row["adding"], row["copied"]) == (name, 0, [2], 0)
        assert row["size"] > 0
        assert "would be cancelled" in run("partition", "cancel", name).text
        cancelled = run("partition", "cancel", f"{name}:0", "--execute")
        assert cancelled.code == 0
        assert "cancelled" in cancelled.text
        assert run("partition", "moves", "--format", "json").json == []
    assert replicas(run, name) == [[0], [0]]
    assert configs(run, "topic", name) == {}


def test_throttles_that_were_left_are_removed(run: Run, name: str) -> None:
    run("topic", "create", name, "--replica-assignment", "0")
    assert run("partition", "move", name, "--to", "1", "--throttle", "10000000", "--execute").code == 0
    deadline = time.monotonic() + SOON_S
    while run("partition", "moves", "--format", "json").json:
        assert time.monotonic() < deadline
    assert configs(run, "topic", name) == {
        "leader.replication.throttled.replicas": "0:0", "follower.replication.throttled.replicas": "0:1"
    }  # fmt: skip
    assert configs(run, "broker", "1") != {}
    assert run("partition", "moves", "--end-throttle").code == 0
    assert configs(run, "topic", name) == {}
    assert configs(run, "broker", "1") == {}


def test_the_first_replica_leads_again(run: Run, cluster: Cluster, name: str) -> None:
    run("topic", "create", name, "--replica-assignment", "1:2,2:1")
    cluster[1].stop()
    cluster[1].start()
    deadline = time.monotonic() + SOON_S
    while True:
        (found,) = run("topic", "describe", name, "--format", "json").json
        if all(len(one["isr"]) == 2 for one in found["partitions"]):
            break
        assert time.monotonic() < deadline
    (row,) = run("partition", "elect", name, "--format", "json").json
    assert (row["partition"], row["leader"], row["status"]) == (0, 2, "would be elected")
    (row,) = run("partition", "elect", name, "--execute", "--format", "json").json
    assert (row["partition"], row["status"]) == (0, "elected")
    deadline = time.monotonic() + SOON_S
    while run("partition", "elect", name, "--format", "json").json:
        assert time.monotonic() < deadline
    assert "no such partition" in run("partition", "elect", name, "--execute").err


def test_without_a_replica_in_sync_another_one_leads(run: Run, cluster: Cluster, name: str) -> None:
    run("topic", "create", name, "--replica-assignment", "1:2")
    cluster[2].stop()
    cluster[1].stop()
    cluster[2].start()
    try:
        refused = run("partition", "elect", name, "--execute")
        assert refused.code == 1, refused
        elected = run("partition", "elect", name, "--unclean", "--execute", "--format", "json")
        assert (elected.code, elected.json[0]["status"]) == (0, "elected"), elected
    finally:
        cluster[1].start()


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("move",), 2, "not clear what goes where"),
        (("move", "T", "--plan", "/no/such"), 2, "cannot be read"),
        (("move", "--plan", "/no/such"), 2, "cannot be read"),
        (("move", "--plan", "-"), 2, "the plan is not JSON"),
        (("move", "T"), 2, "not said where to"),
        (("move", "T", "--to", "x"), 2, "no id of a broker"),
        (("move", "T", "--to", "1,1"), 2, "named twice"),
        (("move", "T", "--to", "77"), 2, "has no broker 77"),
        (("move", "T", "--replicas", "4"), 2, "has 4 replicas, and 3 brokers"),
        (("move", "T", "--to", "1", "--throttle", "0"), 2, "0 is not in the range"),
        (("move", "T", "--to", "1", "--save", "/no/such/dir/f"), 2, "cannot be written"),
        (("move", "T:9", "--to", "1"), 2, "has no partition 9"),
        (("move", "T:x", "--to", "1"), 2, "does not name partitions"),
        (("move", "gone", "--to", "1", "--execute"), 1, "topic gone"),
        (("move", "a b", "--to", "1"), 2, "no topic can have the name"),
        (("cancel", "gone"), 1, "topic gone"),
        (("cancel", "gone", "--execute"), 1, "topic gone"),
        (("elect", "gone"), 1, "topic gone"),
        (("elect", "--unclean", "--execute"), 2, "an unclean election loses records"),
    ],
)
def test_what_cannot_be_done_is_refused(run: Run, name: str, words: tuple[str, ...], code: int, named: str) -> None:
    run("topic", "create", name, "--replica-assignment", "0")
    result = run("partition", *(word.replace("T", name) if word[0] == "T" else word for word in words))
    assert (result.code, result.out) == (code, b""), result
    assert named in result.err
    assert "fix: " in result.err or code == 2
    assert replicas(run, name) == [[0]]
