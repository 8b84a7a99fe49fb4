"""`kpybroker log` from outside: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kpybroker.storage.disk.local_files import local_files
from tests.support.storage.log_dir import END_OFFSET, make_log_dir


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    done = subprocess.run(
        [sys.executable, "-m", "kpybroker", "log", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_log_dir(local_files(), str(tmp_path / "data"))
    return tmp_path / "data"


def test_dump_in_columns(root: Path) -> None:
    code, out, _ = run("dump", root / "topic-0", "--records", "--offset", "38", "--max-batches", "3")
    assert code == 0
    lines = out.splitlines()
    assert sum("value 3" in line for line in lines) == 2
    assert any(line.split()[:4] == ["position", "first", "last", "count"] for line in lines)
    assert sum(line.endswith(" txn") for line in lines) == 1


def test_dump_as_json(root: Path) -> None:
    code, out, _ = run("dump", root, "-o", "json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["baseOffset"] for row in rows if row["type"] == "batch"] == list(range(END_OFFSET))
    assert {"offsetIndex", "timeIndex", "abortedTxn", "producer", "leaderEpoch", "checkpoint"} <= {
        row["type"] for row in rows
    }


def test_verify_a_sound_log(root: Path) -> None:
    code, out, err = run("verify", root)
    assert (code, err) == (0, "")
    (line,) = out.splitlines()
    assert line.endswith("0 errors, 0 notes")
    assert "1 partition," in line


def test_verify_names_file_position_and_offset_and_exits_1(root: Path) -> None:
    log = sorted((root / "topic-0").glob("*.log"))[1]
    data = bytearray(log.read_bytes())
    data[70] ^= 4
    log.write_bytes(data)
    code, out, _ = run("verify", root)
    assert code == 1
    error = out.splitlines()[0]
    assert error.startswith(f"ERROR {log} position 0 offset {int(log.stem)}: [crc] stored crc")
    code, out, _ = run("verify", root, "-o", "json")
    assert code == 1
    *findings, summary = (json.loads(line) for line in out.splitlines())
    assert findings[0] | {"message": ""} == {
        "type": "finding",
        "severity": "error",
        "check": "crc",
        "file": str(log),
        "position": 0,
        "offset": int(log.stem),
        "message": "",
    }
    assert (summary["type"], summary["errors"], summary["partitions"]) == ("summary", len(findings), 1)
    assert run("dump", log)[0] == 1


@pytest.mark.parametrize("command", ["dump", "verify"])
def test_what_is_no_log_is_two_lines_and_exit_code_2(command: str, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("nothing of a log")
    for path in (text, tmp_path, tmp_path / "missing"):
        code, out, err = run(command, path)
        assert (code, out) == (2, "")
        cause, fix = err.splitlines()
        assert cause.startswith(f"kpybroker: {path}")
        assert fix.startswith("fix: ")


def test_a_reader_that_goes_away_ends_it_quietly(root: Path) -> None:
    shell = f"{sys.executable} -m kpybroker log dump {root} --records -o json | head -1"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=60)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_the_command_line_does_not_import_it_until_it_runs() -> None:
    code = "import sys, kpybroker.cli.main; sys.exit(any(name.startswith('kpybroker.storage') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
