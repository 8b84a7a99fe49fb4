"""`kafka-reassign-partitions` moves, lists, cancels and verifies; what was written before is there afterwards.

`kpybroker partition` does the same, and each understands what the other has begun.
"""

from __future__ import annotations

import json
from pathlib import Path

from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.command_line import CommandLine


def plan(path: Path, topic: str, *replicas: list[int]) -> str:
    """The file that the tool takes."""
    partitions = [{"topic": topic, "partition": i, "replicas": ids} for i, ids in enumerate(replicas)]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_replicas_move_with_all_that_is_in_them(cluster: Cluster, name: str, tmp_path: Path) -> None:
    cluster.create(name, "1:2,2:1")
    values = [f"value {n}" for n in range(500)]
    quick.fill(cluster.bootstrap, name, values)
    wanted = plan(tmp_path / "plan.json", name, [3, 2], [1, 3])
    said = cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--execute")
    assert f"Successfully started partition reassignments for {name}-0,{name}-1" in said.out
    cluster.wait_for_isr(name, {3, 2})
    cluster.wait_for_isr(name, {1, 3}, partition=1)
    cluster.wait(
        lambda: cluster.replicas(name) == [3, 2] and cluster.replicas(name, 1) == [1, 3], "the moves have ended"
    )
    verified = cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--verify")
    assert verified.out.count("is completed") == 2
    assert cluster.state(name).leader == 3
    assert [message.value().decode() for message in quick.read(cluster.bootstrap, [(name, 0)], 500)] == values
    assert "No partition reassignments found" in cluster.tools.run("reassign-partitions", "--list").out


def start_slowly(cluster: Cluster, topic: str, wanted: str) -> None:
    """A move that does not end: far more than a throttle of a byte a second lets through."""
    values = [f"{n} {'x' * 10_000}" for n in range(500)]
    quick.fill(cluster.bootstrap, topic, values)
    cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--execute", "--throttle", "1")


def test_a_move_is_listed_verified_and_cancelled(cluster: Cluster, name: str, tmp_path: Path) -> None:
    cluster.create(name, "1:2")
    wanted = plan(tmp_path / "plan.json", name, [1, 3])
    start_slowly(cluster, name, wanted)
    listed = cluster.tools.run("reassign-partitions", "--list").out
    assert f"{name}-0: replicas: 1,3,2. adding: 3. removing: 2." in listed
    still = cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--verify")
    assert f"Reassignment of partition {name}-0 is still in progress" in still.out
    cancelled = cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--cancel")
    assert f"Successfully cancelled partition reassignment for: {name}-0" in cancelled.out
    assert cluster.replicas(name) == [1, 2]
    assert cluster.state(name).isr == {1, 2}
    assert "No partition reassignments found" in cluster.tools.run("reassign-partitions", "--list").out


def test_a_move_goes_on_under_the_next_controller(cluster: Cluster, name: str, tmp_path: Path) -> None:
    controller = cluster.controller()
    assert controller is not None
    source, target = (i for i in cluster.brokers if i != controller)
    cluster.create(name, f"{source}")
    wanted = plan(tmp_path / "plan.json", name, [target])
    start_slowly(cluster, name, wanted)
    cluster.brokers[controller].kill()
    cluster.wait(lambda: cluster.controller() in (source, target), "another controller")
    listed = cluster.tools.run("reassign-partitions", "--list").out
    assert f"{name}-0: replicas: {target},{source}. adding: {target}. removing: {source}." in listed
    faster = ("--additional", "--throttle", "100000000")
    cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--execute", *faster)
    cluster.wait(lambda: cluster.replicas(name) == [target], "the move has ended")
    cluster.wait_for_leader(name, target)


def test_the_command_line_moves_with_a_throttle_and_kafkas_tool_verifies(
    cluster: Cluster, name: str, tmp_path: Path
) -> None:
    cluster.create(name, "1:2,2:1")
    values = [f"value {n}" for n in range(500)]
    quick.fill(cluster.bootstrap, name, values)
    cli = CommandLine(cluster.bootstrap)
    wanted = plan(tmp_path / "plan.json", name, [3, 2], [1, 3])
    before = tmp_path / "before.json"
    words = ("--plan", wanted, "--save", str(before), "--throttle", "100000000", "--wait", "--execute")
    rows = cli.json("partition", "move", *words)
    assert [(row["from"], row["to"], row["status"]) for row in rows] == [
        ([1, 2], [3, 2], "moved"), ([2, 1], [1, 3], "moved")
    ]  # fmt: skip
    verified = cluster.tools.run("reassign-partitions", "--reassignment-json-file", wanted, "--verify")
    assert verified.out.count("is completed") == 2
    throttled = cluster.tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", name).out
    assert "throttled" not in throttled
    assert [message.value().decode() for message in quick.read(cluster.bootstrap, [(name, 0)], 500)] == values
    back = cluster.tools.run("reassign-partitions", "--reassignment-json-file", str(before), "--execute")
    assert "Successfully started partition reassignments" in back.out
    cluster.wait(lambda: cli.json("partition", "moves") == [], "the way back")
    assert (cluster.replicas(name), cluster.replicas(name, 1)) == ([1, 2], [2, 1])


def test_the_command_line_shows_and_cancels_what_kafkas_tool_has_begun(
    cluster: Cluster, name: str, tmp_path: Path
) -> None:
    cluster.create(name, "1:2")
    start_slowly(cluster, name, plan(tmp_path / "plan.json", name, [1, 3]))
    cli = CommandLine(cluster.bootstrap)
    (row,) = cli.json("partition", "moves")
    assert (row["topic"], row["adding"], row["removing"]) == (name, [3], [2])
    assert row["size"] > 5_000_000 > row["copied"]
    (cancelled,) = cli.json("partition", "cancel", name, "--execute")
    assert cancelled["status"] == "cancelled"
    assert "No partition reassignments found" in cluster.tools.run("reassign-partitions", "--list").out
    throttled = cluster.tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", name).out
    assert "throttled" not in throttled
    assert cluster.replicas(name) == [1, 2]


def test_the_command_line_elects_the_first_replica(cluster: Cluster, name: str) -> None:
    cluster.create(name, "1:2")
    cluster.brokers[1].stop()
    cluster.wait_for_leader(name, 2)
    cluster.brokers[1].start()
    cluster.wait_for_isr(name, {1, 2})
    cli = CommandLine(cluster.bootstrap)
    (row,) = cli.json("partition", "elect", name, "--execute")
    assert row["status"] == "elected"
    cluster.wait_for_leader(name, 1)
    assert cli.json("partition", "elect", name) == []
