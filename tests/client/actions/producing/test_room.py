"""Topics and partitions that the target lacks: made with `--create`, and named without."""

from __future__ import annotations

import pytest

from kpybroker.client.actions.partitions import topics
from kpybroker.client.actions.producing.room import Room, TargetTopic, in_target
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.settings import Connection, load
from tests.client.conftest import Run


@pytest.fixture
def cluster(bootstrap: str) -> Cluster:
    return Cluster(load(Connection(bootstrap)))


def wanted(cluster: Cluster, source: str, target: str, partitions: int) -> list[TargetTopic]:
    (found,) = topics(cluster, [source], Failures())
    return [TargetTopic(found, target, partitions)]


def test_a_topic_is_made_as_the_source_is(run: Run, cluster: Cluster, bootstrap: str, name: str) -> None:
    """What belongs to the brokers of a cluster is left to the target."""
    settings = ("--config", "retention.ms=777", "--config", "min.insync.replicas=1")
    run("topic", "create", name, "-p", "3", *settings)
    room = Room(cluster, bootstrap, creates=True)
    room.prepare(cluster, wanted(cluster, name, f"{name}-copy", 3), by_key=False)
    (found,) = run("topic", "describe", f"{name}-copy", "--format", "json").json
    assert len(found["partitions"]) == 3
    assert {one["key"]: one["value"] for one in found["configs"]} == {"retention.ms": "777"}


def test_partitions_are_added_once(run: Run, cluster: Cluster, bootstrap: str, name: str) -> None:
    run("topic", "create", name, "-p", "2")
    room = Room(cluster, bootstrap, creates=True)
    room.prepare(cluster, wanted(cluster, name, name, 2), by_key=False)
    assert not room.require(name, 2)
    assert room.require(name, 4)
    assert not room.require(name, 4)
    (found,) = run("topic", "describe", name, "--format", "json").json
    assert len(found["partitions"]) == 4


def test_what_is_missing_is_named(
    run: Run, cluster: Cluster, bootstrap: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("topic", "create", name, "-p", "2")
    room = Room(cluster, bootstrap, creates=False)
    with pytest.raises(SystemExit) as ended:
        room.prepare(cluster, wanted(cluster, name, f"{name}-copy", 2), by_key=False)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert f"topic {name}-copy: it does not exist in {bootstrap}" in said
    assert f"kpybroker topic create {name}-copy -p 2 -b {bootstrap}" in said
    with pytest.raises(CommandError, match=f"topic {name} has 2 partitions in {bootstrap}, and 3 are needed"):
        room.require(name, 3)
    room.prepare(cluster, wanted(cluster, name, name, 3), by_key=True)


def test_partitions_that_someone_else_added_are_found(run: Run, cluster: Cluster, bootstrap: str, name: str) -> None:
    run("topic", "create", name, "-p", "1")
    room = Room(cluster, bootstrap, creates=False)
    room.prepare(cluster, wanted(cluster, name, name, 1), by_key=False)
    run("topic", "alter", name, "-p", "2")
    assert room.require(name, 2)


def test_the_targets_errors_name_its_options() -> None:
    with pytest.raises(CommandError) as found, in_target("there:9092"):
        raise CommandError("it is down", "name another: -b HOST:PORT, or see --command-config", 1)
    assert found.value.cause == "target there:9092: it is down"
    assert found.value.fix == "name another: --to HOST:PORT, or see --to-config"
