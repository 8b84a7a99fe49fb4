"""On a terminal no value is ever cut: cells are folded, and a column without room is left out and named."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.show import tables
from kpybroker.client.show.cells import Column
from kpybroker.client.show.tables import GAP, Room, fitting, room, table

NOTE = re.compile(r"left out, for want of room in (\d+) columns: (.*); --format wide shows all\n")
TITLES = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "MEMBER-ID", "HOST")
ROW = {
    "TOPIC": "payments.of.the.shop.in.the.north.by.country.and.currency",
    "PARTITION": 11,
    "CURRENT-OFFSET": 12_345_678_901,
    "LOG-END-OFFSET": 12_345_678_999,
    "LAG": 98,
    "MEMBER-ID": "consumer-readers-1-0e2f6a52-6a2f-4a51-9f1c-2b9a3c1d4e5f",
    "HOST": "/127.0.0.1",
}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "on_terminal", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")


def lines_of(titles: Sequence[str], *, fold: bool = True) -> list[str]:
    return table([ROW], [Column(title, title) for title in titles], fold=fold).splitlines()


@pytest.mark.usefixtures("terminal")
def test_every_value_of_a_wide_row_is_there_whole_or_its_column_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(TITLES)
    assert max(map(len, lines)) <= 80
    found = NOTE.fullmatch(capfd.readouterr().err)
    assert found is not None
    left_out = found[2].split(", ")
    assert left_out == ["HOST"]
    assert lines[0].split() == list(TITLES[:-1])
    starts = [lines[0].index("PARTITION"), lines[0].index("MEMBER-ID")]
    assert "".join(line[: starts[0]].strip() for line in lines[1:]) == ROW["TOPIC"]
    assert "".join(line[starts[1] :].strip() for line in lines[1:]) == ROW["MEMBER-ID"]
    assert lines[1][starts[0] : starts[1]].split() == ["11", "12345678901", "12345678999", "98"]


@pytest.mark.usefixtures("terminal")
def test_what_fits_folded_loses_no_column(capfd: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(("TOPIC", "LAG", "MEMBER-ID"))
    assert len(lines) == 3, "each of both is folded once"
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_wide_has_whole_rows_on_a_terminal_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert str(ROW["MEMBER-ID"]) in lines_of(TITLES, fold=False)[1]
    assert capfd.readouterr().err == ""


def test_a_pipe_gets_whole_rows(capfd: pytest.CaptureFixture[str]) -> None:
    assert [len(lines_of(TITLES)), capfd.readouterr().err] == [2, ""]


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 90)), min_size=1, max_size=9), st.integers(20, 200))
def test_columns_fit_and_none_has_less_than_it_needs(found: list[tuple[int, int]], width: int) -> None:
    rooms = [room("T" * title, ["x" * cell]) for title, cell in found]
    widths = fitting(rooms, width)
    assert sum(widths) + GAP * (len(widths) - 1) <= width
    assert all(one.least <= taken <= max(one.whole, one.least) for one, taken in zip(rooms, widths, strict=False))
    if len(widths) < len(rooms):
        assert sum(one.least + GAP for one in rooms[: len(widths) + 1]) - GAP > width
    elif sum(one.whole + GAP for one in rooms) - GAP <= width:
        assert widths == [one.whole for one in rooms]


def test_the_narrowest_of_long_columns_gets_what_is_left_first() -> None:
    assert fitting([Room(60, 12), Room(5, 5), Room(20, 12)], 61) == [32, 5, 20]
