"""Tables drawn by rich: upper-case titles, aligned columns, no lines; colours on a terminal only.

On a terminal, long cells are folded to its width, and where even that leaves too little room, columns are left out
from the right, which a note says. No value is ever cut. In a file or a pipe, and with `wide`, each row is one line,
whatever its length, so that `grep` and `awk` see whole rows. rich obeys NO_COLOR and TERM=dumb.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kpybroker.client.connect.errors import note
from kpybroker.client.show.cells import Column, Row, shown

SHORT: Final = 20
"""Characters of a cell that is never folded."""
FOLDED_MIN: Final = 12
"""A column is folded to no fewer."""
GAP: Final = 2
"""Between columns."""
HEIGHT: Final = 25
UNLIMITED: Final = 100_000
"""Columns of something that is no terminal."""


class Room(NamedTuple):
    """What a column takes: all of its cells on one line, and at least."""

    whole: int
    least: int


def table(rows: Iterable[Row], columns: Sequence[Column], *, fold: bool = True) -> str:
    """The table's lines. A column whose cells are all numbers is aligned to the right.

    With `fold`, long cells are folded to fit a terminal; short ones and titles never are. Columns that do not fit
    all the same are left out, which is noted on standard error.
    """
    values = [([column.value(row) for column in columns], row) for row in rows]
    rooms = [room(column.title, [cells[number] for cells, _ in values]) for number, column in enumerate(columns)]
    width = Console().width if fold and on_terminal() else UNLIMITED
    widths = fitting(rooms, width)
    drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, header_style="bold")
    for number, taken in enumerate(widths):
        cells = [cells[number] for cells, _ in values]
        is_number = any(_is_number(cell) for cell in cells) and all(cell is None or _is_number(cell) for cell in cells)
        drawn.add_column(columns[number].title, justify="right" if is_number else "left", overflow="fold", width=taken)
    for cells, row in values:
        drawn.add_row(*(_cell(column, cell, row) for column, cell, _ in zip(columns, cells, widths, strict=False)))
    if left_out := [column.title for column in columns[len(widths) :]]:
        note(f"left out, for want of room in {width} columns: {', '.join(left_out)}; --format wide shows all")
    return rendered(drawn, fold=fold)


def room(title: str, cells: Sequence[Any]) -> Room:
    """What a column of these cells takes."""
    longest = max((cell_len(shown(cell)) for cell in cells), default=0)
    least = longest if longest <= SHORT else FOLDED_MIN
    return Room(max(longest, cell_len(title)), max(least, cell_len(title)))


def fitting(rooms: Sequence[Room], width: int) -> list[int]:
    """The widths of the first columns, as many as fit; those that need more get what is left, the narrowest first."""
    kept = len(rooms)
    while kept > 1 and sum(one.least for one in rooms[:kept]) + GAP * (kept - 1) > width:
        kept -= 1
    widths = [min(one.least, width) for one in rooms[:kept]]
    left = width - sum(widths) - GAP * (kept - 1)
    while left > 0 and (short := [number for number in range(kept) if widths[number] < rooms[number].whole]):
        widths[min(short, key=widths.__getitem__)] += 1
        left -= 1
    return widths


def pairs(found: Iterable[tuple[str, Any]]) -> str:
    """Upper-case names and their values, below each other."""
    drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, show_header=False)
    drawn.add_column(style="bold")
    drawn.add_column(overflow="fold")
    for name, value in found:
        drawn.add_row(name, Text(shown(value)))
    return rendered(drawn)


def heading(title: str) -> str:
    """A line above a table."""
    return rendered(Text(title, style="bold cyan"))


def on_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def rendered(drawn: Table | Text, *, fold: bool = True) -> str:
    """As text, with colours if standard output is a terminal; no line ends with spaces."""
    is_terminal = on_terminal()
    text = io.StringIO()
    width = Console().width if fold and is_terminal else UNLIMITED
    # Without a height, rich takes 80 columns wherever TERM is dumb.
    console = Console(file=text, width=width, height=HEIGHT, force_terminal=is_terminal, highlight=False)
    console.print(drawn, soft_wrap=isinstance(drawn, Text))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(column: Column, value: Any, row: Row) -> Text:
    style = column.style if isinstance(column.style, str) else column.style(row)
    return Text(shown(value), style=style)
