"""`kafka-streams-groups` of Kafka 4.3.1 on a group with an instance, and on the same group when that has gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.streams.groups import GROUP, streams_broker
from compat_tests.streams.lab import CHANGELOG, LINES, PARTITIONS, REPARTITION, TASKS, Lab
from compat_tests.support import quick
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

pytestmark = pytest.mark.wide


@pytest.fixture
def lab(own_broker: StartBroker, tmp_path: Path) -> Iterator[Lab]:
    broker = streams_broker(own_broker, offsets_topic_num_partitions="4", transaction_state_log_num_partitions="4")
    lab = Lab(broker, tmp_path)
    yield lab
    lab.end()


class Tool:
    """The command, and its tables by rows and words, without the head."""

    def __init__(self, lab: Lab) -> None:
        self._tools = Tools("4.x", lab.broker.bootstrap)

    def text(self, *arguments: str) -> str:
        result = self._tools.run("streams-groups", *arguments, check=False)
        return f"{result.out}\n{result.err}"

    def table(self, *arguments: str) -> list[list[str]]:
        lines = self._tools.run("streams-groups", *arguments).lines
        return [line.split() for line in lines if line.strip() and not line.startswith(("GROUP", "Note:"))]

    def offsets(self) -> dict[tuple[str, str], int]:
        """The lag of each partition."""
        rows = self.table("--describe", "--group", GROUP, "--offsets")
        return {(topic, partition): int(lag) for _, topic, partition, lag in rows}


def topics_of(lab: Lab) -> set[str]:
    return set(quick.admin_client(lab.broker.bootstrap).list_topics(timeout=quick.DEADLINE_S).topics)


def committed(lab: Lab) -> list[int]:
    """The offsets of the topic that is read; below 0 where there is none."""
    return quick.committed(lab.broker.bootstrap, GROUP, [("lines", number) for number in range(PARTITIONS)])


def test_a_group_that_works_is_listed_and_described(lab: Lab) -> None:
    lab.start()
    lab.write()
    lab.has_counted()
    lab.is_shared(1)
    tool = Tool(lab)
    assert tool.table("--list") == [[GROUP]]
    assert tool.table("--list", "--state") == [[GROUP, "Stable"]]
    assert tool.table("--list", "--state", "Stable,NotReady") == [[GROUP, "Stable"]]
    assert tool.table("--list", "--state", "Empty") == []
    eventually(lambda: set(tool.offsets().values()) == {0}, "all is committed")
    assert {topic for topic, _ in tool.offsets()} == {"lines", REPARTITION}
    ((group, *_, state, members),) = tool.table("--describe", "--group", GROUP, "--state")
    assert (group, state, members) == (GROUP, "Stable", "1")
    described = tool.text("--describe", "--group", GROUP, "--state", "--verbose")
    assert all(word in described for word in ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "Stable"))
    assert "LEADER-EPOCH" in tool.text("--describe", "--group", GROUP, "--verbose")
    for more in ((), ("--verbose",)):
        rows = tool.text("--describe", "--group", GROUP, "--members", *more)
        assert "ACTIVE" in rows, rows
        assert all(f"{number}: [0,1,2]" in rows or f"{number}:[0,1,2]" in rows for number in range(2)), (TASKS, rows)
    assert "is not EMPTY" in tool.text("--delete", "--group", GROUP)
    assert "ssignments can only be reset if the group" in tool.text(
        "--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-earliest", "--execute"
    )


def test_an_empty_group_is_reset_and_deleted(lab: Lab) -> None:
    instance = lab.start()
    lab.write()
    lab.has_counted()
    lab.is_shared(1)
    instance.close()
    lab.is_empty()
    tool = Tool(lab)
    reset = ("--reset-offsets", "--group", GROUP, "--input-topic", "lines", "--to-earliest")
    rows = tool.table(*reset, "--dry-run")
    assert sorted(row[:3] for row in rows) == [[GROUP, "lines", str(number)] for number in range(PARTITIONS)]
    assert {row[3] for row in rows} == {"0"}
    assert sum(committed(lab)) == LINES, "nothing was moved"
    tool.table(*reset, "--delete-all-internal-topics", "--execute")
    assert committed(lab) == [0] * PARTITIONS
    eventually(lambda: not topics_of(lab) & {REPARTITION, CHANGELOG}, "internal topics are gone")
    deleted = tool.text("--delete-offsets", "--group", GROUP, "--input-topic", "lines")
    assert "Successful" in deleted, deleted
    assert max(committed(lab)) < 0
    tool.text("--delete", "--group", GROUP)
    assert tool.table("--list") == []
    assert "not found" in tool.text("--describe", "--group", GROUP)


def test_offsets_are_moved_in_each_way(lab: Lab, tmp_path: Path) -> None:
    """An empty group: to and by offsets, by time, by a file that the tool wrote, and of all groups at once."""
    instance = lab.start()
    lab.write()
    lab.has_counted()
    lab.is_shared(1)
    instance.close()
    lab.is_empty()
    tool, ends = Tool(lab), committed(lab)
    assert sum(ends) == LINES
    reset = ("--reset-offsets", "--group", GROUP, "--input-topic", "lines")
    ways = {
        ("--to-offset", "2"): [2] * PARTITIONS,
        ("--shift-by", "-1"): [1] * PARTITIONS,
        ("--to-current",): [1] * PARTITIONS,
        ("--to-datetime", "2020-01-01T00:00:00.000"): [0] * PARTITIONS,
        ("--to-latest",): ends,
        ("--by-duration", "P1D"): [0] * PARTITIONS,
        ("--shift-by", "1000"): ends,
    }
    for way, expected in ways.items():
        tool.table(*reset, *way, "--execute")
        assert committed(lab) == expected, way
    exported = tmp_path / "offsets.csv"
    rows = tool.text(*reset, "--to-earliest", "--export", "--dry-run").strip().splitlines()
    exported.write_text("".join(f"{row}\n" for row in rows if row.count(",") == 2))
    assert len(exported.read_text().splitlines()) == PARTITIONS, rows
    assert committed(lab) == ends, "nothing was moved"
    tool.table("--reset-offsets", "--group", GROUP, "--from-file", str(exported), "--execute")
    assert committed(lab) == [0] * PARTITIONS
    tool.table("--reset-offsets", "--all-groups", "--all-input-topics", "--to-latest", "--execute")
    assert committed(lab) == ends
    assert tool.table("--describe", "--all-groups", "--offsets") == [], "of a group with members the tool shows them"
    described = tool.text("--describe", "--all-groups", "--state")
    assert f"Streams group '{GROUP}' has no active members." in described
    assert ["Empty", "0"] in [line.split()[-2:] for line in described.splitlines()]
    deleted = tool.text("--delete-offsets", "--group", GROUP, "--all-input-topics")
    assert "Successful" in deleted, deleted
    assert max(committed(lab)) < 0
    tool.text("--delete", "--all-groups")
    assert tool.table("--list") == []
