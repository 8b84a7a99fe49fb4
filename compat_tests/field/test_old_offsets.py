"""The tools of 0.8 and 0.10 for a group's offsets: they read and write `/consumers/<group>/offsets`, and brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.field.era import Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.old_groups import Group

COUNT = 20


@pytest.fixture
def topic(cluster: Cluster, name: str) -> str:
    """Two partitions on two brokers, with COUNT records each."""
    cluster.create(name, "1:2,2:1")
    for partition in (0, 1):
        quick.fill(cluster.bootstrap, name, [f"{partition}:{n}" for n in range(COUNT)], partition)
    return name


@pytest.fixture
def settings(cluster: Cluster, name: str, tmp_path: Path) -> Path:
    """Of a consumer of group `name`, as a file."""
    file = tmp_path / "consumer.properties"
    file.write_text(
        f"group.id={name}\nzookeeper.connect={cluster.zookeeper}\nauto.commit.interval.ms=200\n"
        "consumer.timeout.ms=90000\n"
    )
    return file


def read_by_group(era: Era, topic: str, settings: Path, count: int, *, is_first: bool = False) -> list[str]:
    """What the console consumer of old prints of so many records; it leaves the group in order.

    Without `--from-beginning` it begins at the end, whatever its settings say; with it, it refuses a group that has
    offsets.
    """
    start = ("--from-beginning",) if is_first else ()
    limits = ("--max-messages", str(count), "--consumer.config", str(settings), *start)
    return era.run("ConsoleConsumer", "--topic", topic, *limits).lines


@pytest.mark.on_dev
def test_the_checker_shows_what_a_group_has_read(cluster: Cluster, era: Era, topic: str, settings: Path) -> None:
    """ConsumerOffsetChecker: offsets from the tree, ends of the logs from the brokers' ListOffsets 0."""
    assert len(read_by_group(era, topic, settings, 2 * COUNT, is_first=True)) == 2 * COUNT
    quick.fill(cluster.bootstrap, topic, ["one more"], partition=1)
    rows = [line.split() for line in era.run("ConsumerOffsetChecker", "--group", topic, "--topic", topic).lines]
    assert rows[0] == ["Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner"]
    assert rows[1:] == [[topic, topic, "0", "20", "20", "0", "none"], [topic, topic, "1", "20", "21", "1", "none"]]


@pytest.mark.wide
@pytest.mark.on_dev
def test_offsets_are_exported_and_imported(
    cluster: Cluster, era: Era, topic: str, settings: Path, tmp_path: Path
) -> None:
    """ExportZkOffsets writes a line for each partition, ImportZkOffsets reads them back."""
    read_by_group(era, topic, settings, 2 * COUNT, is_first=True)
    file = tmp_path / "offsets"
    era.run("ExportZkOffsets", "--group", topic, "--output-file", str(file))
    path = f"/consumers/{topic}/offsets/{topic}"
    assert sorted(file.read_text().split()) == [f"{path}/0:{COUNT}", f"{path}/1:{COUNT}"]
    file.write_text(f"{path}/0:7\n{path}/1:9\n")
    era.run("ImportZkOffsets", "--input-file", str(file))
    group = Group(cluster, topic, topic)
    assert group.offsets == {0: 7, 1: 9}
    rest = read_by_group(era, topic, settings, 2 * COUNT - 16)
    assert sorted(rest) == sorted([*(f"0:{n}" for n in range(7, COUNT)), *(f"1:{n}" for n in range(9, COUNT))])


@pytest.mark.wide
@pytest.mark.on_dev
def test_a_group_is_moved_to_the_ends(cluster: Cluster, era: Era, topic: str, settings: Path) -> None:
    """UpdateOffsetsInZK asks each leader for its first and last offset."""
    group = Group(cluster, topic, topic)
    for where, offset in (("latest", COUNT), ("earliest", 0)):
        said = era.run("UpdateOffsetsInZK", where, str(settings), topic).lines
        assert sorted(said[:2]) == [f"updating partition {n} with new offset: {offset}" for n in (0, 1)]
        assert said[2] == "updated the offset for 2 partitions"
        assert group.offsets == {0: offset, 1: offset}


@pytest.mark.wide
@pytest.mark.parametrize(("time", "expected"), [("-1", COUNT), ("-2", 0)])
def test_the_ends_of_a_log(era: Era, topic: str, time: str, expected: int) -> None:
    """GetOffsetShell: ListOffsets 0, also for one partition."""
    lines = era.run("GetOffsetShell", "--topic", topic, "--time", time).lines
    assert sorted(lines) == [f"{topic}:0:{expected}", f"{topic}:1:{expected}"]
    one = era.run("GetOffsetShell", "--topic", topic, "--time", time, "--partitions", "1").lines
    assert one == [f"{topic}:1:{expected}"]


@pytest.mark.wide
def test_the_segments_that_list_offsets_0_returns(cluster: Cluster, era: Era, name: str) -> None:
    """GetOffsetShell with `--offsets N`: the first offsets of the newest N segments, and the end."""
    cluster.create(name, "1:2", "--config", "segment.bytes=1000")
    for n in range(12):
        quick.fill(cluster.bootstrap, name, [f"{n:03}" + "x" * 400])
    (line,) = era.run("GetOffsetShell", "--topic", name, "--time", "-1", "--offsets", "4").lines
    assert line == f"{name}:0:12,10,8,6"


@pytest.mark.wide
def test_the_checker_without_a_group(era: Era, topic: str) -> None:
    """A group that is unknown: the tool finds no node, says so, and ends with exit code 0."""
    result = era.run("ConsumerOffsetChecker", "--group", f"no-{topic}", "--topic", topic, check=False)
    assert f"NoNode for /consumers/no-{topic}/offsets" in result.out + result.err


@pytest.mark.wide
@pytest.mark.on_dev
def test_groups_of_both_kinds_are_shown(cluster: Cluster, topic: str, settings: Path) -> None:
    """ConsumerGroupCommand of 0.10: a group in ZooKeeper, to its end, and one of today's, in the brokers."""
    era = Era("0.10.2.2", cluster)
    read_by_group(era, topic, settings, 2 * COUNT, is_first=True)
    quick.fill(cluster.bootstrap, topic, ["one more"], partition=1)
    tree, group = ("--zookeeper", cluster.zookeeper), ("--group", topic)
    assert topic in era.run("ConsumerGroupCommand", *tree, "--list").lines
    shown = era.run("ConsumerGroupCommand", *tree, "--describe", *group).out
    assert rows_of(shown, topic) == [["0", "20", "20", "0"], ["1", "20", "21", "1"]]
    era.run("ConsumerGroupCommand", *tree, "--delete", *group)
    assert cluster.tree.exists(f"/consumers/{topic}") is None

    today = ("--topic", topic, *group, "--from-beginning", "--max-messages", str(2 * COUNT + 1))
    assert len(cluster.tools.run("console-consumer", *today).lines) == 2 * COUNT + 1
    brokers = ("--bootstrap-server", cluster.bootstrap)
    assert topic in era.run("ConsumerGroupCommand", *brokers, "--list").lines
    shown = era.run("ConsumerGroupCommand", *brokers, "--describe", *group).out
    assert rows_of(shown, topic) == [["0", "20", "20", "0"], ["1", "21", "21", "0"]]


def rows_of(shown: str, topic: str) -> list[list[str]]:
    """Partition, offset, end and lag of each row, by partition."""
    rows = [line.split() for line in shown.splitlines() if line.startswith(f"{topic} ")]
    return sorted(row[1:5] for row in rows)
