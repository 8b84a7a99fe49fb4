"""`replay` against a broker: what arrives, where, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.client.conftest import Run

START_MS = 1_795_000_000_000


@pytest.fixture
def source(run: Run, name: str) -> str:
    """A topic of two partitions with five records each, one a second, with keys and headers."""
    run("topic", "create", name, "-p", "2")
    lines = [
        {
            "key": f"k{number}",
            "value": f"{partition}:{number}",
            "partition": partition,
            "timestamp": START_MS + number * 1000,
            "headers": [{"key": "n", "value": str(number)}],
        }
        for partition in (0, 1)
        for number in range(5)
    ]
    done = run("topic", "produce", name, "-f", "json", stdin="".join(json.dumps(one) + "\n" for one in lines).encode())
    assert done.code == 0, done.err
    return name


@pytest.fixture
def target(run: Run, source: str) -> str:
    run("topic", "create", f"{source}-copy", "-p", "2")
    return f"{source}-copy"


def records(run: Run, topic: str) -> list[dict[str, Any]]:
    """What the topic holds, without what only its place says."""
    lines = run("topic", "consume", topic, "-e", "-f", "json").lines
    found = [json.loads(line) for line in lines]
    for one in found:
        for key in ("topic", "offset", "leader_epoch"):
            one.pop(key, None)
    return sorted(found, key=lambda one: (one["partition"], one["timestamp"]))


def test_records_arrive_as_they_were(run: Run, source: str, target: str) -> None:
    done = run("replay", source, target)
    assert (done.code, done.err) == (0, "copied 10 records of 2 partitions\n")
    assert records(run, target) == records(run, source)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-o", "3"), ["0:3", "0:4", "1:3", "1:4"]),
        (("-o", "1:3", "-p", "1"), ["1:1", "1:2"]),
        (("-o", f"@{START_MS + 3500}"), ["0:4", "1:4"]),
        (("-o", "-1"), ["0:4", "1:4"]),
        (("-o", "end"), []),
        (("-p", "0", "-n", "2"), ["0:0", "0:1"]),
    ],
)
def test_a_part_of_the_topic(run: Run, source: str, target: str, options: tuple[str, ...], expected: list[str]) -> None:
    assert run("replay", source, target, *options).code == 0
    assert [one["value"] for one in records(run, target)] == expected


def test_a_topic_into_itself_ends(run: Run, source: str) -> None:
    assert run("replay", source, source).err == "copied 10 records of 2 partitions\n"
    assert len(records(run, source)) == 20


def test_fewer_partitions_need_by_key(run: Run, source: str) -> None:
    small = f"{source}-small"
    run("topic", "create", small, "-p", "1")
    refused = run("replay", source, small)
    assert refused.code == 1
    assert f"topic {small} has 1 partition in " in refused.err
    assert records(run, small) == []
    assert run("replay", source, small, "--by-key").code == 0
    assert len(records(run, small)) == 10


def test_a_record_that_is_refused_stops_it(run: Run, source: str) -> None:
    """Without a key, a compacted topic refuses a record."""
    run("topic", "produce", source, "-p", "1", stdin=b"no key\n")
    compacted = f"{source}-compacted"
    run("topic", "create", compacted, "-p", "2", "--config", "cleanup.policy=compact")
    refused = run("replay", source, compacted, "-p", "1", "-o", "5")
    assert refused.code == 1
    assert f"the record of {source}-1 at offset 5 was not copied" in refused.err
    assert "copied 0 records" in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("missing-topic", "missing-copy"), 1, "topic missing-topic: "),
        (("a", "b", "-o", "never"), 2, "'never' is no offset"),
        (("a", "b", "-p", "x"), 2, "'x' does not name partitions"),
    ],
)
def test_what_cannot_be_done_is_said(run: Run, arguments: tuple[str, ...], code: int, cause: str) -> None:
    found = run("replay", *arguments)
    assert found.code == code
    assert cause in found.err
    assert "fix: " in found.err
