"""Share groups in the commands: `topic consume --share-group`, and `group list|describe|seek|offset-delete|delete`."""

from __future__ import annotations

import pytest

from tests.client.conftest import Run
from tests.support.programs.command_line import Result


@pytest.fixture
def jobs(run: Run, name: str) -> str:
    """A topic with four records on two partitions, and a share group of the same name that begins at the start."""
    run("topic", "create", name, "-p", "2")
    lines = [f'{{"value":"{number}","partition":{number % 2}}}\n' for number in range(4)]
    run("topic", "produce", name, "-f", "json", stdin="".join(lines).encode())
    run("config", "set", "group", name, "share.auto.offset.reset=earliest")
    return name


def consumed(run: Run, jobs: str, *arguments: str, stdin: bytes = b"") -> Result:
    """Records with their delivery counts."""
    return run("topic", "consume", jobs, "--share-group", jobs, "-f", "%v.%D\n", *arguments, stdin=stdin)


def lag(run: Run, jobs: str) -> int | None:
    (row,) = run("group", "describe", jobs, "--format", "json").json
    return None if row["lag"] is None else int(row["lag"])


def test_printed_records_are_accepted(run: Run, jobs: str) -> None:
    result = consumed(run, jobs, "-e")
    assert (result.code, sorted(result.lines)) == (0, ["0.1", "1.1", "2.1", "3.1"])
    assert lag(run, jobs) == 0
    assert consumed(run, jobs, "-e").lines == []


def test_n_acquires_no_more_than_it_prints(run: Run, jobs: str) -> None:
    first = consumed(run, jobs, "-n", "1").lines
    assert len(first) == 1
    rest = consumed(run, jobs, "-e").lines
    assert sorted([*first, *rest]) == ["0.1", "1.1", "2.1", "3.1"], "none was delivered twice"


def test_released_records_are_printed_once_and_delivered_again(run: Run, jobs: str) -> None:
    assert sorted(consumed(run, jobs, "-e", "--ack", "release").lines) == ["0.1", "1.1", "2.1", "3.1"]
    assert sorted(consumed(run, jobs, "-e").lines) == ["0.2", "1.2", "2.2", "3.2"]


def test_rejected_records_are_gone(run: Run, jobs: str) -> None:
    assert len(consumed(run, jobs, "-e", "--ack", "reject").lines) == 4
    assert lag(run, jobs) == 0
    assert consumed(run, jobs, "-e").lines == []


def test_the_user_decides_of_each_record(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "1")
    run("topic", "produce", name, stdin=b"0\n1\n2\n")
    run("config", "set", "group", name, "share.auto.offset.reset=earliest")
    result = consumed(run, name, "--ack", "ask", stdin=b"release\nx\nmaybe\n\n")
    assert result.lines == ["0.1", "0.2", "1.1", "2.1"]
    assert result.err.count("accept, release or reject?") == 4 + 1, "once more after a word that is no choice"
    assert f"{name}-0 at offset 0, delivery 2: " in result.err
    assert "'maybe' is none of" in result.err
    # 0 was rejected, 1 accepted by the empty line, and the input ended at 2
    assert consumed(run, name, "-e").lines == ["2.2"]


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("-g", "other"), "-g and --share-group name different kinds of groups"),
        (("-p", "0"), "-p names partitions"),
        (("-o", "end"), "share.auto.offset.reset"),
    ],
)
def test_options_that_a_share_group_has_no_use_for_are_refused(
    run: Run, name: str, options: tuple[str, ...], cause: str
) -> None:
    result = run("topic", "consume", name, "--share-group", name, *options)
    assert (result.code, cause in result.err) == (2, True)


def test_a_group_of_another_kind_is_refused(run: Run, name: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"0\n")
    run("topic", "consume", name, "-g", name, "-e")
    result = run("topic", "consume", name, "--share-group", name, "-e")
    assert (result.code, "GROUP_ID_NOT_FOUND" in result.err) == (1, True)


def test_list_and_describe_say_what_a_share_group_is(run: Run, jobs: str) -> None:
    consumed(run, jobs, "-e", "--ack", "release")
    (row,) = run("group", "list", jobs, "--lag", "--format", "json").json
    assert row["type"] == "share"
    assert row["state"] == "Empty"
    assert run("group", "list", jobs, "--type", "consumer", "--format", "json").json == []
    (row,) = run("group", "describe", jobs, "--format", "json").json
    assert (row["type"], row["members"], row["assignor"]) == ("share", [], "simple")
    assert [(one["partition"], one["log_end_offset"]) for one in row["offsets"]] == [(0, 2), (1, 2)]
    text = run("group", "describe", jobs, "-m").text
    assert "START-OFFSET" in text
    assert "CURRENT-OFFSET" not in text


def test_seek_moves_a_share_group_also_to_the_start_offset_it_has(run: Run, jobs: str) -> None:
    consumed(run, jobs, "-e")
    shown = run("group", "seek", jobs, "--to", "start", "--format", "json").json
    assert {row["status"] for row in shown} == {"would move"}
    assert lag(run, jobs) == 0, "nothing was changed"
    moved = run("group", "seek", jobs, "--to", "start", "--execute", "--format", "json").json
    assert {(row["to"], row["status"]) for row in moved} == {(0, "moved")}
    assert lag(run, jobs) == 4
    assert len(consumed(run, jobs, "-e").lines) == 4


def test_offsets_and_the_group_are_deleted(run: Run, jobs: str) -> None:
    consumed(run, jobs, "-e")
    refused = run("group", "offset-delete", jobs, "-t", f"{jobs}:0")
    assert (refused.code, "forgets topics" in refused.err) == (2, True)
    assert run("group", "offset-delete", jobs, "-t", jobs, "--format", "json").json[0]["status"] == "would be deleted"
    assert run("group", "offset-delete", jobs, "-t", jobs, "--execute", "--format", "json").json[0]["error"] is None
    (row,) = run("group", "describe", jobs, "--format", "json").json
    assert row["offsets"] == []
    assert run("group", "delete", jobs, "--execute").code == 0
    assert run("group", "list", jobs, "--format", "json").json == []


def test_exported_offsets_are_those_of_consumer_groups_only(run: Run, jobs: str) -> None:
    consumed(run, jobs, "-e")
    result = run("offsets", "export", f"{jobs}*")
    assert (result.code, f"none matches {jobs}*" in result.err) == (1, True)
