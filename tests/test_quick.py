"""What `--quick` leaves out exists, and what starts a process all the same is refused: `tests/quick.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.quick import LEFT_OUT, STARTS_PROCESSES, TAKES_LONG, Quick, is_left_out

TESTS = Path(__file__).parent


def exists(name: str) -> bool:
    file, _, test = name.partition("::")
    if not test:
        return (TESTS / file).exists()
    return re.search(rf"^(async )?def {test}\(", (TESTS / file).read_text(), re.MULTILINE) is not None


def test_what_is_left_out_exists() -> None:
    assert [name for name in sorted(LEFT_OUT) if not exists(name)] == []


def test_each_is_named_once_and_in_order_of_the_alphabet() -> None:
    for names in (STARTS_PROCESSES, TAKES_LONG):
        assert list(names) == sorted(set(names))
    assert len(LEFT_OUT) == len(STARTS_PROCESSES) + len(TAKES_LONG)


def test_folders_files_and_tests_with_all_of_their_parameters() -> None:
    assert is_left_out("console")
    assert is_left_out("cli/test_main.py")
    assert is_left_out("coordination/test_embedded.py::test_kill_9_loses_no_acknowledged_write[a::b]")
    assert not is_left_out("coordination/test_embedded.py::test_kill_9")
    plugin = Quick(TESTS)
    assert plugin.pytest_ignore_collect(TESTS / "console")
    assert not plugin.pytest_ignore_collect(TESTS / "core")
    assert not plugin.pytest_ignore_collect(TESTS.parent / "console")


def test_a_python_that_a_quick_test_starts_is_refused() -> None:
    plugin = Quick(TESTS)
    started = ("subprocess.Popen", (sys.executable, [sys.executable], None, None))
    plugin.on_event(*started)
    plugin.pytest_runtest_logstart("tests/test_a.py::test_b")
    with pytest.raises(RuntimeError, match=r"tests/test_a.py::test_b starts python.*: name it in tests/quick.py"):
        plugin.on_event(*started)
    plugin.on_event("subprocess.Popen", ("openssl", ["openssl"], None, None))
    plugin.pytest_runtest_logfinish()
    plugin.on_event(*started)
