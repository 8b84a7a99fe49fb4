"""`kpybroker log merge-state-changes` next to Kafka 3.9.1's StateChangeLogMerger.

Kafka's tool finds a partition only as Kafka wrote it before 1.0, `[topic,0]`. So it is given a log of today with its
partitions rewritten that way, and must print the lines that ours prints for the log as it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import create_topic
from compat_tests.support.services import kpybroker_executable
from compat_tests.support.tools import Tools, run_process

TODAY = re.compile(
    r"(?:topicName='([\w.-]+)', partitionIndex=(\d+)|\b([Pp]artition|Leader|Follower) ([\w.-]+)-(\d+)(?![\w-]))"
)
STAMP = re.compile(r"\d{4}-\d{2}-\d{2} [\d:]{8},\d{3}")

SELECTIONS = (
    (),
    ("--topic", "orders-eu"),
    ("--topic", "orders-eu", "--partitions", "0,2"),
    ("--topic", "missing"),
)


def ours(*arguments: str) -> list[str]:
    command = [str(kpybroker_executable()), "log", "merge-state-changes", *arguments]
    return run_process(command).out.splitlines()


def kafkas(*arguments: str) -> list[str]:
    deprecation, *lines = Tools("3.9.1", "unused").run("state-change-merger", *arguments).out.splitlines()
    assert deprecation.startswith("WARNING: This tool is deprecated")
    return lines


def as_of_old(line: str) -> str:
    """A line of today with its partition in the old form. Lists such as `isr=[1,2]` are hidden: Kafka's tool takes them
    for partitions."""
    line = re.sub(r"\[([\d, ]*)\]", r"(\1)", line)
    return TODAY.sub(
        lambda found: f"[{found[1]},{found[2]}]" if found[1] else f"{found[3]} [{found[4]},{found[5]}]", line
    )


def stamp_of(line: str) -> str:
    """The time of a line; "" for one without."""
    return match[0] if (match := STAMP.search(line)) else ""


def in_order(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The lines of each millisecond, sorted: for them the order of Kafka's tool is not defined."""
    found = []
    for stamp, group in groupby(lines, stamp_of):
        found.append((stamp, sorted(group)))
    return found


@pytest.mark.parametrize(
    "selection",
    [*SELECTIONS, ("--start-time", "2024-01-01 00:00:03,000", "--end-time", "2024-01-01 00:00:05,500")],
    ids=" ".join,
)
def test_logs_in_the_old_form_give_the_same_output(selection: tuple[str, ...], tmp_path: Path) -> None:
    seed = random.Random(26)
    milliseconds = list(range(0, 9000, 3))
    for number in range(3):
        chosen = sorted(seed.sample(milliseconds, 200))
        milliseconds = [one for one in milliseconds if one not in chosen]
        lines = []
        for at in chosen:
            topic, partition = seed.choice(("orders-eu", "t.1", "a_b")), seed.randrange(4)
            about = f"[{topic},{seed.choice(('', ' '))}{partition}]" if seed.random() < 0.9 else "all of them"
            stamp = f"2024-01-01 00:00:{at // 1000:02d},{at % 1000:03d}"
            lines.append(f"[{stamp}] TRACE Broker {number} handled a change of partition {about} (state.change.logger)")
            if seed.random() < 0.1:
                lines.append("java.lang.IllegalStateException: [orders-eu,0] without a time")
        (tmp_path / f"state-change.log.{number}").write_text("\n".join(lines) + "\n")
    logs = ",".join(map(str, sorted(tmp_path.iterdir())))
    expected = kafkas("--logs", logs, *selection)
    assert ours("--logs", logs, *selection) == expected
    assert bool(expected) is ("missing" not in selection)
    assert ours("--logs-regex", f"{tmp_path}/state-change.log.*", *selection) == expected


@pytest.fixture
def cluster(launcher: Launcher) -> Iterator[Cluster]:
    """Started: one broker of Kafka and two of ours."""
    kinds = ("kafka", "kpybroker", "kpybroker")
    made = Cluster(launcher.directory / "state-changes", launcher.zookeeper("state-changes"), kinds)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_logs_of_kafka_and_of_ours_are_merged_as_kafkas_tool_merges_them_rewritten(
    cluster: Cluster, tmp_path: Path
) -> None:
    for broker_id, broker in cluster.brokers.items():
        Tools("3.9.1", broker.bootstrap).run(
            *("configs", "--alter", "--entity-type", "broker-loggers", "--entity-name", str(broker_id)),
            *("--add-config", "state.change.logger=TRACE"),
        )
    bootstrap = cluster.brokers[1].bootstrap
    create_topic(bootstrap, "orders-eu", partitions=3, replicas=3)
    create_topic(bootstrap, "other", partitions=1, replicas=2)
    cluster.brokers[2].stop()
    cluster.brokers[2].start()
    for partition in range(3):
        cluster.wait_for_isr("orders-eu", {1, 2, 3}, partition)  # it has its partitions from the controller
    today, old = tmp_path / "today", tmp_path / "old"
    today.mkdir()
    old.mkdir()
    for broker_id, broker in cluster.brokers.items():
        text = broker.service.output()
        kept = [line for line in text.splitlines() if line.endswith("(state.change.logger)")]
        # Two threads of Kafka may write their lines in another order than that of their times. What a merge then gives
        # depends on which of two files comes first within a millisecond.
        kept.sort(key=stamp_of)
        assert any("orders-eu" in line for line in kept), f"broker {broker_id} logs no state changes:\n{text[-3000:]}"
        (today / f"broker-{broker_id}.log").write_text("\n".join(kept) + "\n")
        (old / f"broker-{broker_id}.log").write_text("\n".join(map(as_of_old, kept)) + "\n")
    for selection in SELECTIONS:
        expected = kafkas("--logs-regex", f"{old}/.*", *selection)
        merged = ours("--logs-regex", f"{today}/.*", *selection)
        assert in_order([as_of_old(line) for line in merged]) == in_order(expected), selection
        assert bool(merged) is ("missing" not in selection)
