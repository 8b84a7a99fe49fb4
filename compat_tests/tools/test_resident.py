"""Kafka's tools in the JVM that stays, next to the same in a process of its own: the same outputs and exit code.

So each tool starts once as a user starts it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import uuid4

import pytest

from compat_tests.support.quick import fill
from compat_tests.support.resident import Resident
from compat_tests.support.services import Broker
from compat_tests.support.tools import MAIN_CLASSES, VERSIONS, Result, Tools, resident, run_process

RECORDS = 3
ENDLESS_S = 5.0
"""For a tool that does not end."""
DEADLINE_S = 60.0
NOT_IN = {
    "4.x": {"acls-zookeeper", "dump-log", "state-change-merger"},  # removed, or of another class
    "3.9.1": {"console-share-consumer", "groups", "streams-groups"},  # not there yet
}
ENDLESS = {"replica-verification"}
EACH = [(version, tool) for version in VERSIONS for tool in sorted(set(MAIN_CLASSES) - NOT_IN[version] - ENDLESS)]
OF_MAKE_TEST = {"configs", "console-producer", "consumer-groups", "dump-log", "topics", "verifiable-consumer"}
"""Of each kind one: what asks, what reads standard input, what prints options, and what has threads of its own."""
JAVAC = "com.sun.tools.javac.Main"
"""Not one of Kafka's: it ends by System.exit."""


def arguments(tool: str, bootstrap: str, topic: str, directory: Path) -> list[str]:
    """Of a short run that changes nothing that the next one sees; where there is none, to print the options."""
    offsets = directory / "offsets.json"
    offsets.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 0}]}))
    topic_of_one = ["--topic", topic, "--partition", "0"]
    count, records = ["--max-messages", str(RECORDS)], ["--num-records", str(RECORDS)]
    earliest = ["--reset-policy", "earliest"]
    load = ["--record-size", "9", "--throughput", "-1"]
    producer = ["--producer-props", f"bootstrap.servers={bootstrap}"]
    return {
        "acls": ["--list"],
        "topics": ["--describe", "--topic", topic],
        "configs": ["--describe", "--entity-type", "topics", "--entity-name", topic, "--all"],
        "consumer-groups": ["--describe", "--group", "none"],
        "groups": ["--list"],
        "get-offsets": ["--topic", topic],
        "delete-records": ["--offset-json-file", str(offsets)],
        "leader-election": ["--election-type", "preferred", *topic_of_one],
        "reassign-partitions": ["--list"],
        "log-dirs": ["--describe", "--topic-list", topic],
        "delegation-tokens": ["--describe"],
        "console-producer": ["--topic", f"{topic}-written"],
        "console-consumer": ["--from-beginning", "--topic", topic, *count],
        "console-share-consumer": ["--help"],
        "verifiable-producer": ["--topic", f"{topic}-written", *count],
        "verifiable-consumer": ["--topic", topic, "--group-id", f"group-{uuid4().hex[:8]}", *earliest, *count],
        "producer-perf-test": ["--topic", f"{topic}-written", *records, *load, *producer],
        "consumer-perf-test": ["--topic", topic, "--messages", str(RECORDS)],
        "broker-api-versions": [],
        "cluster": ["cluster-id"],
        "dump-log": ["--help"],
        "transactions": ["list"],
        "message-copier": ["--help"],
        "features": ["describe"],
        "e2e-latency": [bootstrap, topic, "2", "all", "9"],
        "streams-application-reset": ["--application-id", "none", "--dry-run"],
        "client-compatibility-test": ["--help"],
    }.get(tool, ["--help"])


def without_numbers(result: Result) -> tuple[int, list[str], list[str]]:
    """What does not change from run to run; dates, sizes, durations, and ids with digits do.

    Nor are there the frames of stacks, which end in another main, and what log4j says once a JVM.
    """
    out, err = (
        [
            re.sub(r"[-+]?\d[\d.,:]*(E-\d+)?", "N", re.sub(r"group-\w+", "group", line))
            for line in text.splitlines()
            if not line.startswith("\tat ") and "main ERROR Reconfiguration failed" not in line
        ]
        for text in (result.out, result.err)
    )
    return result.code, out, err


@pytest.mark.parametrize(
    ("version", "tool"),
    [
        pytest.param(*each, id="-".join(each), marks=[] if each[1] in OF_MAKE_TEST else pytest.mark.wide)
        for each in EACH
    ],
)
def test_a_tool_says_what_it_says_in_a_process_of_its_own(
    broker: Broker, made: str, tmp_path: Path, version: str, tool: str
) -> None:
    tools = Tools(version, broker.bootstrap)
    fill(broker.bootstrap, made, ["one", "two", "three"])

    def words() -> list[str]:
        return arguments(tool, tools.bootstrap, made, tmp_path)

    alone = run_process(tools.command(tool, *words()), "line\n", check=False, deadline_s=DEADLINE_S)
    within = tools.run(tool, *words(), stdin="line\n", check=False, deadline_s=DEADLINE_S)
    assert without_numbers(within) == without_numbers(alone)
    assert alone.out + alone.err or tool in ("console-producer", "features")


def test_nothing_of_a_tool_is_left_for_the_next(broker: Broker, tools: Tools, made: str) -> None:
    """Neither what it has counted and read, nor the number that its client is called by."""
    fill(broker.bootstrap, made, ["one", "two", "three"])
    for _ in range(2):
        read = tools.run("console-consumer", "--topic", made, "--from-beginning", "--max-messages", str(RECORDS))
        assert read.lines == ["one", "two", "three"]
        assert f"Processed a total of {RECORDS} messages" in read.err
    unread = tools.run("topics", "--delete", "--topic", made, stdin="never read\n")
    assert unread.out == ""
    tools.run("console-producer", "--topic", f"{made}-2", stdin="read\n")
    read = tools.run("console-consumer", "--topic", f"{made}-2", "--from-beginning", "--max-messages", "1")
    assert read.lines == ["read"]


def test_a_tool_that_does_not_end_is_ended(broker: Broker, tools: Tools, made: str) -> None:
    fill(broker.bootstrap, made, ["one"])
    with pytest.raises(AssertionError, match=rf"no end within {ENDLESS_S} s"):
        tools.run("console-consumer", "--topic", made, "--from-beginning", deadline_s=ENDLESS_S)
    assert made in tools.run("topics", "--list").lines


def test_a_jvm_that_a_tool_ends_is_started_again(tools: Tools) -> None:
    """With the exit code of that tool, and what it has written until then."""
    tools.run("topics", "--list")
    jvm: Resident = resident(tools.version)
    ended = jvm.run(JAVAC, ["--nothing"], b"", 60)
    assert ended is not None
    assert (ended.code, ended.is_late) == (2, False)
    assert b"--nothing" in ended.out + ended.err
    assert tools.run("topics", "--list").code == 0
