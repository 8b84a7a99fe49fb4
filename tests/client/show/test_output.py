"""Rows as tables, JSON and YAML."""

from __future__ import annotations

import json

import pytest
import yaml

from kpybroker.client.show.cells import Column, moment, shown, size
from kpybroker.client.show.output import Output

COLUMNS = (
    Column("NAME", "name"),
    Column("COUNT", "count"),
    Column("IDS", "ids", wide=True),
    Column("OK", lambda row: row["count"] > 1),
)
ROWS = [{"name": "a" * 90, "count": 1, "ids": [1, 2], "more": None}, {"name": "ü", "count": 10, "ids": [], "more": 1}]


def test_a_table_has_upper_case_titles_and_one_line_a_row(capfd: pytest.CaptureFixture[str]) -> None:
    Output("table").rows(ROWS, COLUMNS)
    lines = capfd.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [["NAME", "COUNT", "OK"], ["a" * 90, "1", "no"], ["ü", "10", "yes"]]
    assert lines[1].index("1  no") == lines[2].index("0  yes")


def test_wide_has_more_columns(capfd: pytest.CaptureFixture[str]) -> None:
    Output("wide").rows(ROWS, COLUMNS)
    assert [line.split()[2] for line in capfd.readouterr().out.splitlines()] == ["IDS", "1,2", "-"]


def test_programs_get_rows_whole(capfd: pytest.CaptureFixture[str]) -> None:
    Output("json").rows(ROWS, COLUMNS)
    assert json.loads(capfd.readouterr().out) == ROWS
    Output("yaml").rows(ROWS, COLUMNS)
    assert yaml.safe_load(capfd.readouterr().out) == ROWS
    Output("json").rows([], COLUMNS, empty="nothing")
    assert capfd.readouterr() == ("[]\n", "")


def test_an_empty_table_says_so_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    Output("table").rows([], COLUMNS, empty="nothing")
    assert capfd.readouterr() == ("", "nothing\n")


def test_square_brackets_are_no_markup(capfd: pytest.CaptureFixture[str]) -> None:
    Output("table").rows([{"name": "[red]x[/red]", "count": 1}], COLUMNS[:2])
    assert "[red]x[/red]" in capfd.readouterr().out


def test_sections_are_parted_by_an_empty_line(capfd: pytest.CaptureFixture[str]) -> None:
    output = Output("table")
    output.sections([output.pairs([("A", None), ("B", [1])]), "", output.heading("t") + "x\n"])
    assert capfd.readouterr().out == "A  -\nB  1\n\nt\nx\n"


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), ("", "-"), (True, "yes"), (0, "0"), ((1, 2), "1,2"), ([], "-")]
)
def test_a_cell(value: object, expected: str) -> None:
    assert shown(value) == expected


def test_times_and_sizes_for_people() -> None:
    assert moment(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert (moment(-1), moment(None), moment(10**18)) == (None, None, str(10**18))
    assert (moment(0), moment(-5000)) == ("1970-01-01T00:00:00.000Z", "1969-12-31T23:59:55.000Z")
    assert [size(n) for n in (None, 0, 1023, 1536, 5 << 30, 3 << 50)] == [
        None, "0 B", "1023 B", "1.5 KiB", "5.0 GiB", "3072.0 TiB",
    ]  # fmt: skip
