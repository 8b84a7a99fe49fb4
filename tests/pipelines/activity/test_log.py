"""The input of the demo: files, folders, formats."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from kpybroker.pipelines.activity.log import open_log, read_lines
from kpybroker.pipelines.errors import PipelineError
from tests.pipelines.activity.test_formats import ACTIVITY, COMMON, DPKG


def put(path: Path, lines: list[str], age_s: int = 0) -> Path:
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    os.utime(path, (1_000_000_000 - age_s, 1_000_000_000 - age_s))
    return path


def test_the_format_of_a_file_is_guessed(tmp_path: Path) -> None:
    file = put(tmp_path / "x.log", [DPKG, "", DPKG, "noise"])
    log = open_log(file, None)
    assert (log.format, log.lines, log.files) == ("dpkg", 3, (file,))
    assert open_log(file, "access").format == "access"


def test_a_folder_gives_the_files_of_one_format_from_old_to_new(tmp_path: Path) -> None:
    newest = put(tmp_path / "dpkg.log", [DPKG] * 3, 0)
    oldest = put(tmp_path / "dpkg.log.2.gz", [DPKG] * 5, 20)
    middle = put(tmp_path / "dpkg.log.1", [DPKG] * 4, 10)
    other = put(tmp_path / "site.log", [COMMON], 5)
    put(tmp_path / "junk", ["junk"])
    (tmp_path / "folder").mkdir()
    log = open_log(tmp_path, None)
    assert (log.format, log.lines, log.files) == ("dpkg", 12, (oldest, middle, newest))
    assert open_log(tmp_path, "access").files == (other,)


def test_lines_are_text_for_any_bytes(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"a\r\n\n\xff b\nlast")
    assert list(read_lines(file)) == ["a", "\ufffd b", "last"]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("missing", "does not exist"),
        ("empty.log", "is empty"),
        ("blank.log", "is empty"),
        ("poem.txt", "in none of the known formats"),
        ("broken.gz", "cannot be read"),
        ("folder", "has no files in it"),
    ],
)
@pytest.mark.parametrize("format_name", [None, "dpkg"])
def test_a_log_that_cannot_be_used_is_reported(tmp_path: Path, name: str, cause: str, format_name: str | None) -> None:
    put(tmp_path / "empty.log", [])
    put(tmp_path / "blank.log", ["", ""])
    put(tmp_path / "poem.txt", ["roses", "are red"])
    (tmp_path / "broken.gz").write_bytes(gzip.compress(ACTIVITY.encode() * 1000)[:40])
    (tmp_path / "folder").mkdir()
    if name == "poem.txt" and format_name is not None:
        assert open_log(tmp_path / name, format_name).lines == 2
        return
    with pytest.raises(PipelineError, match=cause) as raised:
        open_log(tmp_path / name, format_name)
    assert "make demo LOG=" in raised.value.fix
    assert raised.value.exit_code == 2
