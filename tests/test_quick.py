"""What `--quick` leaves out exists, and what starts a process all the same is refused: `tests/quick.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.quick import CLEANER, LEFT_OUT, STARTS_PROCESSES, TAKES_LONG, Quick

TESTS = Path(__file__).parent


def test_what_is_left_out_exists_and_is_named_once() -> None:
    assert [name for name in sorted(LEFT_OUT) if not (TESTS / name).exists()] == []
    for names in (STARTS_PROCESSES, TAKES_LONG):
        assert list(names) == sorted(set(names))
    assert len(LEFT_OUT) == len(STARTS_PROCESSES) + len(TAKES_LONG)


def test_folders_and_files() -> None:
    plugin = Quick(TESTS)
    assert plugin.pytest_ignore_collect(TESTS / "console")
    assert plugin.pytest_ignore_collect(TESTS / "cli" / "test_main.py")
    assert not plugin.pytest_ignore_collect(TESTS / "core")
    assert not plugin.pytest_ignore_collect(TESTS.parent / "console")


def test_a_test_that_starts_a_process_fails_once(tmp_path: Path) -> None:
    plugin = Quick(TESTS)

    def torn_down() -> None:
        steps = plugin.pytest_runtest_teardown()
        next(steps)
        next(steps, None)

    plugin.on_event("subprocess.Popen", ("openssl", ["openssl"], None, None))
    plugin.on_event("subprocess.Popen", (sys.executable, [sys.executable, "-m", CLEANER], None, None))
    plugin.on_event("subprocess.Popen", (tmp_path / "java", ["java"], None, None))
    torn_down()
    plugin.on_event("subprocess.Popen", (sys.executable, [sys.executable, "-c", ""], None, None))
    with pytest.raises(pytest.fail.Exception, match=r"starts python[0-9.]*, and is not marked"):
        torn_down()
    torn_down()
