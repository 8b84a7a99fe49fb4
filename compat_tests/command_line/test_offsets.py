"""`kpybroker offsets export` and `import` next to `kafka-consumer-groups.sh`: each reads the other's files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher, MakeTopic
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.members import Member
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

COUNT = 20


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


@pytest.fixture
def read_topic(broker: Broker, topic: MakeTopic, name: str) -> str:
    """A topic of two partitions with COUNT records each; group `name` stands at 7 and 13."""
    made = topic(partitions=2)
    for partition in (0, 1):
        quick.fill(broker.bootstrap, made, [f"{n}" for n in range(COUNT)], partition)
    stand(CommandLine(broker.bootstrap), name, made, 7, 13)
    return made


def stand(cli: CommandLine, group: str, topic: str, *offsets: int) -> None:
    text = "".join(f"{topic},{number},{offset}\n" for number, offset in enumerate(offsets))
    cli.run("offsets", "import", "-", "--group", group, "--execute", stdin=text)


def committed(broker: Broker, group: str, topic: str) -> list[int]:
    return quick.committed(broker.bootstrap, group, [(topic, 0), (topic, 1)])


def test_kafkas_tool_reads_what_export_writes(
    cli: CommandLine, broker: Broker, tools: Tools, read_topic: str, name: str, tmp_path: Path
) -> None:
    """One group, and several in one file; a group that read nothing of it gets the same offsets."""
    other = f"{name}-other"
    stand(cli, other, read_topic, 2, 3)
    one, both = tmp_path / "one.csv", tmp_path / "both.csv"
    assert cli.run("offsets", "export", name, "--file", str(one)).err == "exported 2 offsets\n"
    assert cli.run("offsets", "export", name, other, "--file", str(both)).err == "exported 4 offsets\n"
    copy = f"{name}-copy"
    tools.run("consumer-groups", "--reset-offsets", "--group", copy, "--from-file", str(one), "--execute")
    assert committed(broker, copy, read_topic) == [7, 13]
    for group in (name, other):
        stand(cli, group, read_topic, 0, 0)
    groups = ("--group", name, "--group", other)
    tools.run("consumer-groups", "--reset-offsets", *groups, "--from-file", str(both), "--execute")
    assert (committed(broker, name, read_topic), committed(broker, other, read_topic)) == ([7, 13], [2, 3])


def test_import_reads_what_kafkas_tool_exports(
    cli: CommandLine, broker: Broker, tools: Tools, read_topic: str, name: str, tmp_path: Path
) -> None:
    other = f"{name}-other"
    stand(cli, other, read_topic, 2, 3)
    plan = ("consumer-groups", "--reset-offsets", "--to-current", "--topic", read_topic, "--export", "--dry-run")
    one, both = tmp_path / "one.csv", tmp_path / "both.csv"
    one.write_text(tools.run(*plan, "--group", name).out)
    both.write_text(tools.run(*plan, "--group", name, "--group", other).out)
    cli.run("offsets", "import", str(one), "--group", f"{name}-copy", "--execute")
    assert committed(broker, f"{name}-copy", read_topic) == [7, 13]
    for group in (name, other):
        stand(cli, group, read_topic, 0, 0)
    dry = cli.json("offsets", "import", str(both))
    assert {(row["group"], row["partition"], row["from"], row["to"]) for row in dry} == {
        (name, 0, 0, 7),
        (name, 1, 0, 13),
        (other, 0, 0, 2),
        (other, 1, 0, 3),
    }
    assert committed(broker, name, read_topic) == [0, 0]
    cli.run("offsets", "import", str(both), "--execute")
    assert (committed(broker, name, read_topic), committed(broker, other, read_topic)) == ([7, 13], [2, 3])


def test_both_files_are_the_same(cli: CommandLine, tools: Tools, read_topic: str, name: str) -> None:
    plan = ("--reset-offsets", "--to-current", "--topic", read_topic, "--export", "--dry-run")
    theirs = tools.run("consumer-groups", *plan, "--group", name).lines
    ours = cli.run("offsets", "export", name, "--format", "csv").lines
    assert sorted(line.replace('"', "") for line in theirs) == ours == [f"{read_topic},0,7", f"{read_topic},1,13"]


def test_a_group_with_members_is_refused_by_both(
    broker: Broker, tools: Tools, read_topic: str, name: str, join: Callable[..., Member], tmp_path: Path
) -> None:
    """Its own commits would win. The error names the members; of a file with two groups neither is changed."""
    cli, live = CommandLine(broker.bootstrap), f"{name}-live"
    member = join("confluent", group=live, topics=[read_topic], settings={"client.id": "reader"})
    eventually(lambda: len(member.assignment) == 2, "both partitions")
    file = tmp_path / "offsets.csv"
    rows = [f"{group},{read_topic},{number},1" for group in (name, live) for number in (0, 1)]
    file.write_text("\n".join(rows) + "\n")
    refused = cli.run("offsets", "import", str(file), "--execute", code=1)
    assert refused.err.splitlines()[0] == f"kpybroker: group {live} has members: reader at 127.0.0.1"
    assert refused.err.splitlines()[1].startswith("fix: stop the members of the group first")
    assert committed(broker, name, read_topic) == [7, 13]
    file.write_text("".join(f"{read_topic},{number},1\n" for number in (0, 1)))
    reset = ("--reset-offsets", "--group", live, "--from-file", str(file), "--execute")
    theirs = tools.run("consumer-groups", *reset, check=False)
    assert "inactive" in theirs.out + theirs.err
    assert committed(broker, live, read_topic) != [1, 1]
    exported = json.loads(cli.run("offsets", "export", name, "--format", "json").out)
    assert [row["offset"] for row in exported] == [7, 13]


@pytest.mark.wide
def test_a_cluster_that_never_had_a_group(launcher: Launcher, name: str) -> None:
    """Kafka makes the topic of groups when it is first asked for a coordinator, and refuses until it is there."""
    kafka = Broker("kafka", launcher.directory / name, launcher.zookeeper(name), {})
    try:
        kafka.start()
        quick.create_topic(kafka.bootstrap, name, 2)
        quick.fill(kafka.bootstrap, name, ["a", "b", "c"])
        stand(CommandLine(kafka.bootstrap), name, name, 2, 0)
        assert committed(kafka, name, name) == [2, 0]
    finally:
        kafka.service.kill()
