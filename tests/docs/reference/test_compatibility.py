"""The table of clients on the page of APIs and clients: each file of tests has a row, and a run records what it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests import compatibility
from compat_tests.compatibility import Cell, clients, kept, recorded, suites

RUN = """<testsuites><testsuite timestamp="2026-11-29T22:00:00.1+00:00">
<testcase classname="compat_tests.console.test_pages" name="a"/>
<testcase classname="compat_tests.console.test_pages" name="b"><skipped/></testcase>
<testcase classname="compat_tests.console.test_look" name="c"><failure/></testcase>
</testsuite></testsuites>"""


def test_each_file_of_tests_has_a_row() -> None:
    written = compatibility.DOCUMENT.read_text()
    rows = [
        line.split("`")[1] for line in written.partition(compatibility.CLIENTS_HEADING)[2].splitlines() if "| `" in line
    ]
    assert rows == suites()
    assert "console.administration.test_tasks" in rows


def test_a_run_records_its_suites_and_leaves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "compat-kpybroker.xml"
    file.write_text(RUN)
    before = {
        ("console.test_pages", "kpybroker"): Cell("21 of 21", "2026-11-25"),
        ("tree.test_znodes", "kpybroker"): Cell("3 of 3", "2026-11-25"),
        ("tree.test_znodes", "kafka"): Cell("3 of 3", "2026-11-25"),
    }
    found = kept(clients({**kept(clients(before)), **recorded([file])}))
    assert found == {
        **before,
        ("console.test_pages", "kpybroker"): Cell("1 of 2", "2026-11-29"),
        ("console.test_look", "kpybroker"): Cell("0 of 1", "2026-11-29"),
    }


def test_a_suite_that_is_gone_has_no_row() -> None:
    assert "no.such" not in clients({("no.such", "kafka"): Cell("1 of 1", "2026-11-25")})


def test_a_document_without_a_new_file_is_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["compatibility", "--check"])
    assert compatibility.main() == 0
    known = suites()
    monkeypatch.setattr(compatibility, "suites", lambda: [*known, "zoo.test_new"])
    assert compatibility.main() == 1
    assert "stale" in capsys.readouterr().err
