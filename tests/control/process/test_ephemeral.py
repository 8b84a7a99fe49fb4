"""The directory of an ephemeral broker goes with it, and no other directory ever does."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpybroker.control.process.ephemeral import MARKER, ephemeral_directory, remove, remove_stale
from tests.cli.test_main import SECONDS_MAX, finish, ready

EPHEMERAL = ("dev", "--port", "0", "--ephemeral")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary directory, for this process."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_behind(parent: Path, name: str = "kpybroker-abc") -> Path:
    """The directory of a broker that was killed."""
    directory = parent / name
    (directory / "t-0").mkdir(parents=True)
    for file in (MARKER, ".lock", "t-0/00000000000000000000.log"):
        (directory / file).write_text("")
    return directory


def test_it_is_there_for_the_length_of_the_block(temporary: Path) -> None:
    with ephemeral_directory() as directory:
        (Path(directory) / "t-0").mkdir()
        (Path(directory) / "t-0" / "file").write_text("")
        assert Path(directory).parent == temporary
    assert list(temporary.iterdir()) == []


def test_what_killed_brokers_left_is_removed_by_the_next_start(
    temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = left_behind(temporary)
    half_removed = temporary / "kpybroker-half"
    half_removed.mkdir()
    (half_removed / MARKER).write_text("")
    caplog.set_level(logging.INFO)
    with ephemeral_directory() as fresh:
        assert {path.name for path in temporary.iterdir()} == {Path(fresh).name}
    assert f"Removed {directory}, which an ephemeral broker left when it was killed" in caplog.messages


def test_a_start_leaves_those_that_are_in_use(temporary: Path) -> None:
    with ephemeral_directory() as first, ephemeral_directory() as second:
        assert {path.name for path in temporary.iterdir()} == {Path(first).name, Path(second).name}


@pytest.mark.parametrize("place", ["", "data", "data/broker-1"])
def test_a_start_leaves_a_directory_whose_log_directory_is_locked(temporary: Path, place: str) -> None:
    directory = left_behind(temporary)
    (directory / place).mkdir(parents=True, exist_ok=True)
    holder = (
        "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.lockf(lock, fcntl.LOCK_EX); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(directory / place / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        remove_stale(str(temporary))
        assert directory.exists()
        process.communicate(timeout=SECONDS_MAX)
    remove_stale(str(temporary))
    assert not directory.exists()


def without_marker(parent: Path) -> Path:
    directory = left_behind(parent)
    (directory / MARKER).unlink()
    return directory


def of_another_name(parent: Path) -> Path:
    return left_behind(parent, "data")


def behind_a_link(parent: Path) -> Path:
    directory = left_behind(parent / "elsewhere", "data")
    (parent / "kpybroker-link").symlink_to(directory)
    return directory


def of_another_user(parent: Path) -> Path:
    directory = left_behind(parent)
    os.chown(directory, 12345, 12345)
    return directory


@pytest.mark.parametrize("make", [without_marker, of_another_name, behind_a_link, of_another_user])
def test_no_other_directory_is_removed(temporary: Path, make: Callable[[Path], Path]) -> None:
    if make is of_another_user and os.geteuid() != 0:
        pytest.skip("only root gives a directory to another user")
    directory = make(temporary)
    with ephemeral_directory():
        pass
    assert (directory / "t-0" / "00000000000000000000.log").exists()


def test_a_marker_is_locked_before_another_start_can_see_it(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that looks for what killed brokers left may come at any moment of this one."""
    for name in ("open", "rename"):
        before = getattr(os, name)

        def then_look(*arguments: Any, before: Callable[..., Any] = before, **keys: Any) -> Any:
            monkeypatch.undo()
            result = before(*arguments, **keys)
            remove_stale(str(temporary))
            return result

        monkeypatch.setattr(os, name, then_look)
        with ephemeral_directory(str(temporary / "kpybroker-named")) as directory:
            assert (Path(directory) / MARKER).exists()


def test_files_that_appear_during_the_removal_are_removed_too(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = left_behind(temporary)
    late = iter(["checkpoint"])
    rmtree = shutil.rmtree

    def remove_and_create(path: str, ignore_errors: bool) -> None:
        rmtree(path, ignore_errors)
        for name in late:
            (directory / name).write_text("")

    monkeypatch.setattr(shutil, "rmtree", remove_and_create)
    remove(str(directory))
    assert not directory.exists()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_two_signals_leave_nothing(tmp_path: Path, first: signal.Signals) -> None:
    with ready(*EPHEMERAL, TMPDIR=str(tmp_path)) as (process, _, _):
        assert len(list(tmp_path.iterdir())) == 1
        # Pending together, they are handled one after the other: the second one ends the process.
        for number in (first, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        process.communicate(timeout=SECONDS_MAX)
    assert process.returncode in (0, 130, 143)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_broker_leaves_it_until_the_next_start(tmp_path: Path) -> None:
    with ready(*EPHEMERAL, "--brokers", "2", TMPDIR=str(tmp_path)) as (process, _, _):
        process.kill()
        process.communicate(timeout=SECONDS_MAX)
    assert len(list(tmp_path.iterdir())) == 1
    with ready(*EPHEMERAL, TMPDIR=str(tmp_path)) as (process, _, _):
        assert len(list(tmp_path.iterdir())) == 1
        with ready(*EPHEMERAL, TMPDIR=str(tmp_path)) as (other, _, _):
            assert len(list(tmp_path.iterdir())) == 2
            other.terminate()
            other.communicate(timeout=SECONDS_MAX)
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_for_it_is_an_error_with_its_fix(tmp_path: Path) -> None:
    code, _, err = finish(*EPHEMERAL, "--ephemeral-dir", str(tmp_path))
    assert code == 3
    assert "there is no directory for --ephemeral" in err
    assert tmp_path.exists()


def test_a_broker_that_ends_with_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        with ready(*EPHEMERAL, "--exit-with", str(parent.pid), TMPDIR=str(tmp_path)) as (process, _, _):
            parent.kill()
            parent.wait()
            process.communicate(timeout=SECONDS_MAX)
    finally:
        parent.kill()
        parent.communicate()
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    code, _, _ = finish(*EPHEMERAL, "--host", "192.0.2.1", TMPDIR=str(tmp_path))
    assert code == 5
    assert list(tmp_path.iterdir()) == []


def test_the_directory_may_have_a_name_that_is_new(temporary: Path) -> None:
    name = temporary / "kpybroker-mine"
    with ephemeral_directory(str(name)) as directory:
        assert directory == str(name)
        assert (name / MARKER).exists()
        remove_stale(str(temporary))
        assert name.exists()
    assert not name.exists()
    name.mkdir()
    with pytest.raises(FileExistsError), ephemeral_directory(str(name)):
        pass
