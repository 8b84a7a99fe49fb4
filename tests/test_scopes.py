"""Which tests are one worker's, and in which order they begin: `tests/scopes.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scopes
from tests.scopes import in_order, scope_of

FILES = [
    "compat_tests/clients/folder/test_a.py",
    "compat_tests/storage/test_log_files.py",
    "compat_tests/tools/test_z.py",
]
SPARK = ["compat_tests/spark/test_log_files.py", "compat_tests/spark/pipelines/test_ledger.py"]
OTHERS = ["compat_tests/clients/test_restart.py", "tests/test_one.py", "tests/test_two.py"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(scopes, "TABLE", tmp_path / "times.txt")
    scopes.TABLE.write_text("")
    scopes.seconds_by_scope.cache_clear()
    yield scopes.TABLE
    scopes.seconds_by_scope.cache_clear()


def test_a_scope_is_a_file_or_what_shares_a_broker() -> None:
    assert scope_of("tests/core/test_rate.py::test_a::test_b[x::y]") == "tests/core/test_rate.py"
    assert {scope_of(f"{file}::test") for file in FILES} == {scopes.CLIENTS}
    assert {scope_of(f"{file}::test") for file in SPARK} == {scopes.SPARK}
    assert {scope_of(f"{file}::test") for file in scopes.FILES_OF_SITE} == {scopes.SITE}
    assert all(scopes.TABLE.parents[1].joinpath(file).exists() for file in scopes.FILES_OF_SITE)
    assert scope_of("compat_tests/clients/test_restart.py::test") == "compat_tests/clients/test_restart.py"
    assert scope_of("compat_tests/security/test_acls.py::test") == "compat_tests/security/test_acls.py"


def test_the_longest_scope_begins_first(table: Path) -> None:
    times = (50, SPARK[1]), (9, SPARK[0]), (30, FILES[0]), (31, FILES[2]), (60, OTHERS[2]), (3, "tests/test_gone.py")
    table.write_text("".join(f"{seconds} {file}\n" for seconds, file in times))
    assert (
        in_order(FILES + SPARK + OTHERS)
        == [
            *(FILES[0], FILES[2], FILES[1]),  # 61 s together
            OTHERS[2],
            *(SPARK[1], SPARK[0]),
            *OTHERS[:2],
        ]
    )


def test_a_scope_stays_in_one_piece_without_a_time(table: Path) -> None:
    mixed = [FILES[1], OTHERS[0], SPARK[0], FILES[0], SPARK[1], OTHERS[1]]
    assert in_order(mixed) == [FILES[0], FILES[1], OTHERS[0], SPARK[1], SPARK[0], OTHERS[1]]


def test_tests_of_a_file_keep_their_order(table: Path) -> None:
    ids = [f"tests/test_{file}.py::test_{name}" for file in "ab" for name in "zyx"]
    table.write_text("4 tests/test_b.py\n")
    assert in_order(ids) == ids[3:] + ids[:3]


def test_the_table_has_what_takes_seconds(table: Path) -> None:
    costs = (
        "4.00 7.61 tests/test_b.py",
        "2.00 9.40 (collection)",
        "1.00 90.2 tests/test_a.py",
        "9.00 2.90 tests/c.py",
    )
    scopes.write_table("".join(f"{line}\n" for line in costs))
    assert table.read_text() == "90 tests/test_a.py\n8 tests/test_b.py\n"


def test_the_table_of_the_repository_can_be_read() -> None:
    assert all(seconds >= scopes.TABLE_S_MIN for seconds in scopes.seconds_by_scope().values())
