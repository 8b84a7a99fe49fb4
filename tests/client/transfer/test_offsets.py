"""`offsets export` and `import` against a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.client.conftest import Run


@pytest.fixture
def read(run: Run, name: str) -> str:
    """A topic of two partitions whose six records group `name` has read."""
    run("topic", "create", name, "-p", "2")
    for partition in ("0", "1"):
        assert run("topic", "produce", name, "-p", partition, stdin=b"a\nb\nc\n").code == 0
    assert run("topic", "consume", name, "-g", name, "-n", "6").code == 0
    return name


def committed(run: Run, group: str) -> dict[int, int]:
    (row,) = run("group", "describe", group, "--format", "json").json
    return {one["partition"]: one["current_offset"] for one in row["offsets"]}


def test_json_has_everything_and_csv_what_kafkas_tool_has(run: Run, read: str) -> None:
    found = run("offsets", "export", read)
    rows = [{key: row[key] for key in ("group", "topic", "partition", "offset")} for row in found.json]
    assert rows == [{"group": read, "topic": read, "partition": number, "offset": 3} for number in (0, 1)]
    assert found.err == "exported 2 offsets\n"
    assert run("offsets", "export", read, "--format", "csv").text == f"{read},0,3\n{read},1,3\n"
    assert run("offsets", "export", read, "--format", "csv", "-t", f"{read}:1").text == f"{read},1,3\n"


def test_a_file_moves_a_group_back_and_gives_another_its_offsets(run: Run, read: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    assert run("offsets", "export", read, "--file", str(file)).code == 0
    assert file.read_text() == f"{read},0,3\n{read},1,3\n"
    run("group", "seek", read, "--to", "start", "--execute")
    dry = run("offsets", "import", str(file), "--group", read, "--format", "json")
    assert [(row["from"], row["to"], row["status"]) for row in dry.json] == [(0, 3, "would move")] * 2
    assert committed(run, read) == {0: 0, 1: 0}
    done = run("offsets", "import", str(file), "--group", read, "--execute", "--format", "json")
    assert [row["status"] for row in done.json] == ["moved"] * 2
    assert committed(run, read) == {0: 3, 1: 3}
    run("offsets", "import", str(file), "--group", f"{read}-copy", "--execute")
    assert committed(run, f"{read}-copy") == {0: 3, 1: 3}


def test_metadata_survives(run: Run, read: str) -> None:
    row = {"group": read, "topic": read, "partition": 0, "offset": 2, "metadata": "checked by night"}
    text = json.dumps([row]).encode()
    assert run("offsets", "import", "-", "--execute", stdin=text).code == 0
    (kept,) = (one for one in run("offsets", "export", read).json if one["partition"] == 0)
    assert (kept["offset"], kept["metadata"]) == (2, "checked by night")


def test_several_groups_by_a_pattern(run: Run, read: str) -> None:
    run("topic", "consume", read, "-g", f"{read}-b", "-n", "6")
    lines = run("offsets", "export", f"{read}*", "--format", "csv").lines
    assert lines == [f"{group},{read},{number},3" for group in (read, f"{read}-b") for number in (0, 1)]


def test_an_offset_outside_becomes_the_nearest(run: Run, read: str) -> None:
    found = run("offsets", "import", "-", "--group", read, "--format", "json", stdin=f"{read},0,99\n".encode())
    assert [row["to"] for row in found.json] == [3]


def test_nothing_is_committed_if_one_partition_is_missing(run: Run, read: str) -> None:
    text = f"{read},0,1\n{read},7,1\n".encode()
    found = run("offsets", "import", "-", "--group", read, "--execute", stdin=text)
    assert found.code == 1
    assert f"{read}-7: " in found.err
    assert "nothing was changed" in found.err
    assert committed(run, read) == {0: 3, 1: 3}


def test_an_unknown_group_leaves_the_file_as_it_was(run: Run, read: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text("kept")
    found = run("offsets", "export", read, f"no-{read}", "--file", str(file))
    assert (found.code, file.read_text()) == (1, "kept")
    assert f"group no-{read}: there is no group no-{read}" in found.err
    assert run("offsets", "export", f"no-{read}*").code == 1


@pytest.mark.parametrize(
    ("stdin", "arguments", "cause"),
    [
        (b"t,0,5\n", [], "- does not say of which group the offsets are"),
        (b"a,t,0,5\nb,t,0,5\n", ["--group", "c"], "- has 2 groups, and --group names one"),
        (b"t,0\n", ["--group", "c"], "line 1 is neither"),
        (b"\xff\xfe", ["--group", "c"], "is no text in UTF-8"),
        (b"", ["--group", "c"], "- has no offsets"),
    ],
)
def test_bad_files_are_two_lines(run: Run, stdin: bytes, arguments: list[str], cause: str) -> None:
    found = run("offsets", "import", "-", *arguments, stdin=stdin)
    assert found.code == 2
    assert cause in found.err.splitlines()[0]
    assert found.err.splitlines()[1].startswith("fix: ")


def test_a_file_that_cannot_be_read_or_written(run: Run, read: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "file.json")
    assert run("offsets", "import", missing).code == 2
    found = run("offsets", "export", read, "--file", missing)
    assert (found.code, f"{missing} cannot be written" in found.err) == (2, True)
