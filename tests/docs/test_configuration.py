"""The generated configuration page."""

from __future__ import annotations

from kpybroker.cli.exit_codes import EXIT_CODES
from kpybroker.config.dynamic import FIXED_AT_START
from tests.docs.configuration import PLACE, page


def test_the_page_is_up_to_date() -> None:
    assert PLACE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.configuration"


def test_the_page_names_every_exit_code() -> None:
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in page()


def test_the_page_says_that_a_key_fixed_at_start_does_not_change() -> None:
    rows = {
        line.split("|")[1].strip(): line.split("|")[4].strip() for line in page().split("\n") if line.startswith("| `")
    }
    assert {rows[f"`{name}`"] for name in FIXED_AT_START} == {"no"}
    assert rows["`num.replica.fetchers`"] == "cluster-wide"


def test_no_line_outside_the_tables_is_too_long() -> None:
    assert [line for line in page().split("\n") if len(line) > 120 and not line.startswith("|")] == []
