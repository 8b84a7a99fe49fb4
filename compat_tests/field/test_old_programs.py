"""A program of the 0.8 era (`OldApis.java`): the Scala producer and SimpleConsumer, compiled against each release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.deps import jars_dir
from compat_tests.field.era import Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.tools import JARS, run_process

SOURCE = Path(__file__).with_name("OldApis.java")
COUNT = 200
PARTITIONS = 2

Run = Callable[..., list[str]]


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where the classes for a release are; each is compiled once."""
    made: dict[str, Path] = {}

    def compiled(version: str) -> Path:
        if version not in made:
            target = tmp_path_factory.mktemp(f"classes-{version}")
            jars = f"{jars_dir(JARS[version])}/*"
            run_process(["javac", "-nowarn", "-cp", jars, "-d", str(target), str(SOURCE)])
            made[version] = target
        return made[version]

    return compiled


@pytest.fixture
def run(era: Era, classes: Callable[[str], Path]) -> Run:
    """Runs the program to its end, and returns the lines that it prints."""
    class_path = f"{classes(era.version)}:{jars_dir(JARS[era.version])}/*"

    def program(*arguments: str) -> list[str]:
        return run_process(["java", "-Xmx128m", "-cp", class_path, "OldApis", *arguments]).lines

    return program


@pytest.mark.on_dev
@pytest.mark.parametrize("codec", ["none", pytest.param("gzip", marks=pytest.mark.wide)])
def test_what_the_scala_producer_sends_simple_consumer_reads(cluster: Cluster, run: Run, name: str, codec: str) -> None:
    """Records with keys, placed by the program's partitioner; read by offsets, and by a consumer of today."""
    cluster.create(name, "1:2,2:1")
    assert run("produce", cluster.bootstrap, name, "sync", codec, str(COUNT)) == [f"sent {COUNT}"]
    expected = []
    for partition in range(PARTITIONS):
        keys = range(partition, COUNT, PARTITIONS)
        expected += [f"partition {partition} from 0 to {len(keys)}"]
        expected += [f"{partition} {offset} {key} value {key}" for offset, key in enumerate(keys)]
        expected += [f"partition {partition} took several requests"]
    # where it first asks, the broker need not lead
    assert run("consume", cluster.brokers[2].bootstrap, name) == expected
    for partition in range(PARTITIONS):
        read = quick.read(cluster.bootstrap, [(name, partition)], COUNT // PARTITIONS)
        found = [(message.key().decode(), message.value().decode()) for message in read]
        assert found == [(f"{key}", f"value {key}") for key in range(partition, COUNT, PARTITIONS)]


@pytest.mark.wide
def test_the_asynchronous_producer(cluster: Cluster, run: Run, name: str) -> None:
    """Its own thread sends; closed in order, it has sent all of it."""
    cluster.create(name, "1:2,2:1")
    run("produce", cluster.bootstrap, name, "async", "snappy", str(COUNT))
    read = quick.read(cluster.bootstrap, [(name, partition) for partition in range(PARTITIONS)], COUNT)
    assert sorted(int(message.key()) for message in read) == list(range(COUNT))


@pytest.mark.wide
@pytest.mark.on_dev
def test_a_program_commits_by_both_versions(cluster: Cluster, run: Run, name: str) -> None:
    """OffsetCommit 0 writes to ZooKeeper, and OffsetCommit 1 to the brokers' topic; neither sees the other's."""
    cluster.create(name, "1:2")
    quick.fill(cluster.bootstrap, name, ["one"])
    quick.committed(cluster.bootstrap, name, [(name, 0)])  # the coordinator exists
    coordinator = coordinator_of(cluster, name)
    assert run("commit", coordinator, name, name, "7") == [
        "before, version 0: offset -1, metadata '', error 3",
        "committed with version 0: error 0",
        "after, version 0: offset 7, metadata '', error 0",
        "before, version 1: offset -1, metadata '', error 0",
        "committed with version 1: error 0",
        "after, version 1: offset 8, metadata 'by version 1', error 0",
    ]
    assert cluster.tree.get(f"/consumers/{name}/offsets/{name}/0")[0] == b"7"
    assert quick.committed(cluster.bootstrap, name, [(name, 0)]) == [8]


def coordinator_of(cluster: Cluster, group: str) -> str:
    """HOST:PORT of the group's coordinator."""
    admin = quick.admin_client(cluster.bootstrap)
    described = admin.describe_consumer_groups([group])[group].result(timeout=quick.DEADLINE_S)
    return f"{described.coordinator.host}:{described.coordinator.port}"


@pytest.mark.wide
def test_what_does_not_exist_has_an_error_of_its_own(cluster: Cluster, run: Run, name: str) -> None:
    """OFFSET_OUT_OF_RANGE (1) and UNKNOWN_TOPIC_OR_PARTITION (3), for Fetch and ListOffsets 0."""
    cluster.create(name, "1:2")
    quick.fill(cluster.bootstrap, name, ["one"])
    assert run("errors", cluster.bootstrap.split(",")[0], name, f"no-{name}") == [
        "an offset that is not there: 1",
        "a partition that is not there: 3",
        "a topic that is not there: 3",
        "its end: 3",
    ]
