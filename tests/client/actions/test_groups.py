"""`group list|describe|seek|delete|offset-delete` against a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kpybroker.client.actions.seek import read_offsets, seek_row, shifted
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.offsets import Bounds
from tests.client.conftest import Run

START_MS = 1_700_000_000_000


@pytest.fixture
def read_topic(run: Run, name: str) -> str:
    """A topic of two partitions with ten records each, one a second; group `name` has read all of them."""
    run("topic", "create", name, "-p", "2", "--config", "retention.ms=-1")  # the records are years old
    stdin = "".join(
        f'{{"value":"{n}","partition":{p},"timestamp":{START_MS + n * 1000}}}\n' for p in (0, 1) for n in range(10)
    )
    run("topic", "produce", name, "-f", "json", stdin=stdin.encode())
    assert len(run("topic", "consume", name, "-g", name, "-e").lines) == 20
    return name


@contextmanager
def member(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """A live member of the group that has its partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": "live", "log_level": 0})
    consumer.subscribe([topic])
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        yield
    finally:
        consumer.close()


def offsets(run: Run, group: str) -> list[int | None]:
    return [row["current_offset"] for row in run("group", "describe", group, "--format", "json").json[0]["offsets"]]


def test_lag_is_listed_and_described(run: Run, read_topic: str) -> None:
    run("topic", "produce", read_topic, "-p", "1", stdin=b"more\n")
    assert {"GROUP": read_topic, "STATE": "Empty", "TYPE": "classic", "LAG": "1", "UNREAD": "0"} in run(
        "group", "list", "--lag"
    ).table
    text = run("group", "describe", read_topic).text
    assert "LAG          1" in text
    assert "UNREAD" not in text
    assert f"{read_topic}          1              10              11    1" in text
    only = run("group", "describe", read_topic, "--only-lag").lines
    assert [line.split()[1] for line in only if line.startswith(read_topic)] == ["1"]
    assert run("group", "list", "--state", "stable", f"{read_topic}*").err == "there is no such group\n"


def test_partitions_that_were_never_read_are_counted_next_to_the_lag(run: Run, name: str, bootstrap: str) -> None:
    """As in Kafka's tool they have no lag: no one knows where their reader would begin. An empty one does not count."""
    run("topic", "create", name, "-p", "4")
    records = "".join(f'{{"value":"{n}","partition":{p}}}\n' for p in (0, 1, 2) for n in range(3))
    run("topic", "produce", name, "-f", "json", stdin=records.encode())
    run("group", "seek", name, "-t", f"{name}:0", "--to", "1", "--execute")
    (row,) = run("group", "describe", name, "--format", "json").json
    assert (row["lag"], row["unread_partitions"]) == (2, 2)
    assert [one["partition"] for one in row["offsets"]] == [0]
    assert "LAG          2\nUNREAD       2\n" in run("group", "describe", name).text
    assert {"GROUP": name, "STATE": "Empty", "TYPE": "classic", "LAG": "2", "UNREAD": "2"} in run(
        "group", "list", "--lag"
    ).table
    (listed,) = run("group", "list", "--lag", name, "--format", "json").json
    assert (listed["lag"], listed["unread_partitions"]) == (2, 2)


def test_what_members_have_and_have_not_committed_counts_as_unread(run: Run, name: str, bootstrap: str) -> None:
    run("topic", "create", name, "-p", "2")
    run("topic", "produce", name, "-p", "1", stdin=b"one\n")
    with member(bootstrap, name, name):
        (row,) = run("group", "describe", name, "--format", "json").json
        assert (row["lag"], row["unread_partitions"]) == (0, 1)
        assert [(one["partition"], one["lag"]) for one in row["offsets"]] == [(0, None), (1, None)]
        assert {"GROUP": name, "STATE": "Stable", "TYPE": "classic", "LAG": "0", "UNREAD": "1"} in run(
            "group", "list", "--lag"
        ).table


def test_members_are_shown_and_keep_a_group_from_being_moved(run: Run, read_topic: str, bootstrap: str) -> None:
    with member(bootstrap, read_topic, read_topic):
        (row,) = run("group", "describe", read_topic, "--format", "json").json
        assert (row["state"], row["assignor"], len(row["members"])) == ("Stable", "range", 1)
        assert {one["client_id"] for one in row["offsets"]} == {"live"}
        assert f"{read_topic}:0,{read_topic}:1" in run("group", "describe", read_topic, "-m").text
        refused = run("group", "seek", read_topic, "--to", "start")
        assert (refused.code, refused.out) == (1, b"")
        assert f"group {read_topic} has members: live at 127.0.0.1" in refused.err
        deleted = run("group", "delete", read_topic, "-y")
        assert deleted.code == 1
        assert "NON_EMPTY_GROUP" in deleted.err
        assert run("group", "delete", read_topic).code == 1
        lost = run("group", "offset-delete", read_topic, "-t", read_topic, "-y")
        assert lost.code == 1
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in lost.err


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("start", [0, 0]),
        ("end", [10, 10]),
        ("4", [4, 4]),
        ("-3", [7, 7]),
        ("+5", [10, 10]),
        (f"@{START_MS + 2500}", [3, 3]),
        ("@2100-01-01", [10, 10]),
        ("400", [10, 10]),
    ],
)
def test_a_group_is_moved_after_it_was_shown(run: Run, read_topic: str, to: str, expected: list[int]) -> None:
    dry = run("group", "seek", read_topic, "--to", to, "--format", "json")
    assert [(row["from"], row["to"]) for row in dry.json] == [(10, offset) for offset in expected]
    assert "dry run" in dry.err
    assert offsets(run, read_topic) == [10, 10]
    done = run("group", "seek", read_topic, "--to", to, "--execute", "--format", "json").json
    assert {row["status"] for row in done} <= {"moved", "stays", "would move"} - {"would move"}
    assert offsets(run, read_topic) == expected


def test_only_some_partitions_also_such_that_were_never_read(run: Run, read_topic: str, name: str) -> None:
    run("group", "seek", name, "--to", "3", "-t", f"{name}:1", "-y")
    assert offsets(run, name) == [10, 3]
    run("topic", "create", f"{name}-other")
    run("group", "seek", name, "--to", "start", "--topics-partitions", f"{name}-other:0", "-y")
    assert offsets(run, name) == [10, 3, 0]
    wrong = run("group", "seek", name, "--to", "start", "-t", f"{name}:7")
    assert (wrong.code, "has no partition 7" in wrong.err) == (2, True)


def test_to_the_offsets_of_a_group_or_a_file(run: Run, read_topic: str, name: str, tmp_path: Path) -> None:
    run("group", "seek", name, "--to", "6", "-y")
    copy = run("group", "seek", f"{name}-copy", "--to-group", name, "-y", "--format", "json").json
    assert [(row["from"], row["to"]) for row in copy] == [(None, 6), (None, 6)]
    file = tmp_path / "offsets"
    file.write_text(f"# topic partition offset\n{name} 0 2\n{name},1,3\n")
    assert run("group", "seek", f"{name}-copy", "--to-file", str(file), "-y").code == 0
    assert offsets(run, f"{name}-copy") == [2, 3]
    file.write_text("x y z\n")
    with pytest.raises(CommandError, match="is not TOPIC PARTITION OFFSET"):
        read_offsets(str(file))


@pytest.mark.parametrize("words", [(), ("--to", "start", "--to-group", "g"), ("--to", "soon"), ("--to-file", "/none")])
def test_where_to_is_said_once(run: Run, words: tuple[str, ...]) -> None:
    result = run("group", "seek", "g", *words)
    assert result.code == 2
    assert "fix: " in result.err


def test_a_group_that_is_not_there(run: Run, name: str) -> None:
    for words in (("describe", name), ("seek", name, "--to", "start"), ("delete", name), ("delete", name, "-y")):
        result = run("group", *words)
        assert result.code == 1, words
        assert "fix: kpybroker group list shows the groups" in result.err


def test_offsets_and_groups_are_deleted_after_they_were_shown(run: Run, read_topic: str, name: str) -> None:
    dry = run("group", "offset-delete", name, "-t", f"{name}:0", "--format", "json").json
    assert [(row["partition"], row["offset"], row["status"]) for row in dry] == [(0, 10, "would be deleted")]
    assert offsets(run, name) == [10, 10]
    assert run("group", "offset-delete", name, "-t", f"{name}:0", "-y").code == 0
    assert offsets(run, name) == [10]
    assert run("group", "offset-delete", name, "-t", "other", "-y").code == 1
    assert "would be deleted" in run("group", "delete", name).text
    assert run("group", "delete", name, "-y").lines[1] == f"{name}  deleted"
    assert name not in run("group", "list").text


def test_a_shift_leaves_a_partition_without_an_offset_alone() -> None:
    assert seek_row(("t", 0), None, Bounds(0, 10), shifted(-1)) is None
    row = seek_row(("t", 0), 5, Bounds(3, 10), shifted(-4))
    assert row is not None
    assert (row["from"], row["to"], row["lag"]) == (5, 3, 7)
