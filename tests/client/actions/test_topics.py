"""`topic list|describe|create|alter|delete|trim` against a broker."""

from __future__ import annotations

import pytest
import yaml

from kpybroker.client.actions.topic_changes import parse_assignment
from kpybroker.client.connect.errors import CommandError
from tests.client.conftest import Run


def test_a_topic_from_its_creation_to_its_end(run: Run, name: str) -> None:
    made = run("topic", "create", name, "-p", "3", "-c", "retention.ms=1000")
    assert (made.code, made.lines) == (0, ["TOPIC       STATUS", f"{name}  created"])
    assert {"NAME": name, "PARTITIONS": "3", "REPLICAS": "1"} in run("topic", "list").table
    altered = run("topic", "alter", name, "-p", "5", "-s", "retention.ms=2000", "-d", "max.message.bytes")
    assert (altered.code, altered.lines[1]) == (0, f"{name}  altered")
    (row,) = run("topic", "describe", name, "--format", "json").json
    assert len(row["partitions"]) == 5
    assert row["configs"] == [
        {"key": "retention.ms", "value": "2000", "source": "topic", "sensitive": False, "read_only": False}
    ]
    assert len(row["id"]) == 22
    assert "retention.ms  2000   topic" in run("topic", "describe", name).text
    dry = run("topic", "delete", name)
    assert (dry.code, dry.lines[1]) == (0, f"{name}  would be deleted")
    assert "dry run" in dry.err
    assert name in run("topic", "list").text
    assert run("topic", "delete", name, "--execute").lines[1] == f"{name}  deleted"
    assert name not in run("topic", "list").text


def test_one_failure_does_not_keep_the_others_from_being_done(run: Run, name: str) -> None:
    run("topic", "create", name)
    result = run("topic", "create", name, f"{name}-2", "--format", "json")
    assert result.code == 1
    assert [(row["topic"], row["status"]) for row in result.json] == [(name, "failed"), (f"{name}-2", "created")]
    assert "TOPIC_ALREADY_EXISTS" in result.json[0]["error"]["cause"]
    assert f"kpybroker: topic {name}: " in result.err
    assert "fix: choose another name, or add --if-not-exists" in result.err
    assert run("topic", "create", name, "--if-not-exists").lines[1] == f"{name}  exists"


def test_patterns_list_describe_and_delete(run: Run, name: str) -> None:
    run("topic", "create", f"{name}-a", f"{name}-b")
    assert [row["name"] for row in run("topic", "list", f"{name}*", "--format", "json").json] == [
        f"{name}-a",
        f"{name}-b",
    ]
    assert len(run("topic", "describe", f"{name}-?", "--format", "json").json) == 2
    deleted = run("topic", "delete", f"{name}-*", "-y", "--format", "json").json
    assert [row["status"] for row in deleted] == ["deleted", "deleted"]
    nothing = run("topic", "list", f"{name}*")
    assert (nothing.out, nothing.err) == (b"", "there is no such topic\n")


def test_a_topic_that_is_not_there_is_named_with_a_fix(run: Run, name: str) -> None:
    for words in (("describe", name), ("delete", name, "-y"), ("trim", name, "--to", "end")):
        result = run("topic", *words)
        assert result.code == 1
        assert f"kpybroker: topic {name}: " in result.err
        assert "fix: kpybroker topic list" in result.err


def test_internal_topics_are_listed_when_asked_for(run: Run, name: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"x\n")
    run("topic", "consume", name, "-e", "-g", name)
    assert "__consumer_offsets" not in run("topic", "list").text
    assert "__consumer_offsets" in run("topic", "list", "--internal").text
    rows = {row["name"]: row for row in yaml.safe_load(run("topic", "list", "-i", "--format", "yaml").out)}
    assert rows["__consumer_offsets"]["internal"] is True
    assert rows[name]["records"] == 1


def test_a_dry_run_of_a_creation_is_checked_by_the_broker(run: Run, name: str) -> None:
    assert "would be created" in run("topic", "create", name, "--dry-run").text
    refused = run("topic", "create", name, "-d", "-c", "nope=1")
    assert refused.code == 1
    assert "INVALID_CONFIG" in refused.err
    assert name not in run("topic", "list").text


def test_trim_shows_first_and_then_deletes(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "2")
    run("topic", "produce", name, "-p", "0", stdin=b"a\nb\nc\n")
    dry = run("topic", "trim", name, "--to", "-1", "--format", "json").json
    assert [(row["from"], row["to"], row["records"], row["status"]) for row in dry] == [
        (0, 2, 2, "would be trimmed"),
        (0, 0, 0, "nothing to trim"),
    ]
    assert run("topic", "consume", name, "-e").out == b"a\nb\nc\n"
    assert run("topic", "trim", name, "--to", "-1", "-p", "0", "-y", "--format", "json").json[0]["status"] == "trimmed"
    assert run("topic", "consume", name, "-e").out == b"c\n"
    assert run("topic", "trim", name, "--to", "end", "-p", "7").code == 2
    assert run("topic", "trim", name, "--to", "soon").code == 2


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("create", "t", "-c", "novalue"), "has no key and value"),
        (("create", "t", "--replica-assignment", "0", "-p", "1"), "how many partitions"),
        (("create", "t", "--replica-assignment", "a"), "assigns no replicas"),
        (("alter", "t"), "there is nothing to change"),
        (("alter", "t", "-s", "novalue"), "has no key and value"),
        (("alter", "t", "-s", "a=1", "-d", "a"), "a is changed twice"),
    ],
)
def test_bad_options_are_refused_before_anything_is_asked(run: Run, words: tuple[str, ...], named: str) -> None:
    result = run("topic", *words, "-b", "127.0.0.1:1")
    assert result.code == 2
    assert named in result.err
    assert "fix: " in result.err


def test_an_assignment_has_the_brokers_of_each_partition(run: Run, name: str) -> None:
    assert parse_assignment("0:1,1:2") == [[0, 1], [1, 2]]
    with pytest.raises(CommandError):
        parse_assignment("")
    run("topic", "create", name, "--replica-assignment", "0,0")
    assert [p["replicas"] for p in run("topic", "describe", name, "--format", "json").json[0]["partitions"]] == [
        [0],
        [0],
    ]


def test_lists_are_changed_by_one_element(run: Run, name: str) -> None:
    run("topic", "create", name, "-c", "cleanup.policy=delete")
    run("topic", "alter", name, "--append", "cleanup.policy=compact")
    assert run("config", "get", "topic", name, "cleanup.policy").text == "delete,compact\n"
    run("topic", "alter", name, "--subtract", "cleanup.policy=delete")
    assert run("config", "get", "topic", name, "cleanup.policy").text == "compact\n"
