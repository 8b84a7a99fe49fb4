"""The high-level consumer of 0.8 and 0.10, whose group lives in ZooKeeper, in five processes of which one is killed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.field.era import VERSIONS, Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.old_groups import Group, OldConsumer
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

PARTITIONS = 10
MEMBERS = 5
COUNT = 40
REBALANCE_S = 180.0
STORAGE = {"tree": "", "both": "offsets.storage=kafka\ndual.commit.enabled=true\n"}
"""Where the group commits: the tree alone, or the tree and the brokers."""

Start = Callable[..., OldConsumer]


@pytest.fixture
def start(cluster: Cluster, name: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a member of group `name` that reads topic `name`."""
    started: list[OldConsumer] = []

    def begin(version: str, more: str) -> OldConsumer:
        started.append(OldConsumer(Tools(version, cluster.zookeeper), tmp_path, name, name, len(started), more))
        return started[-1]

    yield begin
    for member in started:
        member.kill()


def fill(cluster: Cluster, topic: str, tag: str) -> set[str]:
    """COUNT records into each partition; all of them."""
    values = {number: [f"{tag} {number}:{n}" for n in range(COUNT)] for number in range(PARTITIONS)}
    for number, lines in values.items():
        quick.fill(cluster.bootstrap, topic, lines, number)
    return {value for lines in values.values() for value in lines}


def shares(group: Group) -> list[int]:
    """How many partitions each owner has."""
    owners = list(group.owners.values())
    return sorted(owners.count(owner) for owner in set(owners))


def verify_owners(era: Era, group: Group, name: str) -> None:
    """VerifyConsumerRebalance, with all partitions owned.

    That of 0.8.2.2 compares things of different types, a partition's number with the name of its owner's node, and the
    owner's name with members: it reports two errors for each partition, and a failure, on any group.
    """
    result = era.run("VerifyConsumerRebalance", "--group", name)
    errors = [line for line in result.err.splitlines() if " ERROR " in line]
    if era.version != "0.8.2.2":
        assert (result.lines, errors) == (["Rebalance operation successful !"], [])
        return
    assert result.lines == ["Rebalance operation failed !"]
    text = "\n".join(errors)
    assert sorted(map(int, re.findall(r"No owner for partition \[\S+,(\d+)\]", text))) == list(range(PARTITIONS))
    owners = re.findall(r"Owner (\S+) for partition \[\S+,(\d+)\] is not a valid member", text)
    assert {int(number): owner for owner, number in owners} == group.owners
    assert len(errors) == 2 * PARTITIONS


@pytest.mark.wide
@pytest.mark.on_dev
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("version", VERSIONS)
def test_five_processes_share_a_topic_and_one_is_killed(
    cluster: Cluster, start: Start, version: str, storage: str, name: str
) -> None:
    """Two partitions each; after the kill, and the end of its session, the four others have all ten. Nothing is lost:
    what the dead one had read and not committed is read again by another."""
    cluster.create(name, ",".join(["1:2", "2:1"] * (PARTITIONS // 2)))
    group, era = Group(cluster, name, name), Era(version, cluster)
    written = fill(cluster, name, "first")
    members = [start(version, STORAGE[storage])]
    eventually(lambda: len(group.owners) == PARTITIONS, "the first has all of it", REBALANCE_S)
    members += [start(version, STORAGE[storage]) for _ in range(MEMBERS - 1)]
    eventually(lambda: shares(group) == [2] * MEMBERS, "each has two partitions", REBALANCE_S)
    assert len(group.members) == MEMBERS
    verify_owners(era, group, name)
    written |= fill(cluster, name, "second")
    eventually(lambda: {line for one in members for line in one.read} == written, "all is read", REBALANCE_S)
    assert all(one.read for one in members)

    members[2].kill()
    eventually(lambda: shares(group) == [2, 2, 3, 3], "four share ten partitions", REBALANCE_S)
    assert len(group.members) == MEMBERS - 1
    written |= fill(cluster, name, "third")
    eventually(lambda: {line for one in members for line in one.read} == written, "nothing is lost", REBALANCE_S)
    verify_owners(era, group, name)
    ends = dict.fromkeys(range(PARTITIONS), 3 * COUNT)
    eventually(lambda: group.offsets == ends, "the tree has the offsets")
    rows = [line.split() for line in era.run("ConsumerOffsetChecker", "--group", name, "--topic", name).lines[1:]]
    assert [row[2:6] for row in rows] == [[f"{n}", "120", "120", "0"] for n in range(PARTITIONS)]
    assert {row[6] for row in rows} == {f"{owner}" for owner in group.owners.values()}
    if storage == "both":
        places = [(name, number) for number in range(PARTITIONS)]
        assert quick.committed(cluster.bootstrap, name, places) == list(ends.values())
