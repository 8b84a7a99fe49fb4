"""Tables drawn by rich: upper-case titles, aligned columns, no lines; colours on a terminal only.

On a terminal, long cells are folded to its width. In a file or a pipe, and with `wide`, each row is one line, whatever
its length, so that `grep` and `awk` see whole rows. rich obeys NO_COLOR and TERM=dumb.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kpybroker.client.show.cells import Column, Row, shown

SHORT: Final = 20
"""Characters of a cell that is never folded."""
UNLIMITED: Final = 100_000
"""Columns of something that is no terminal."""


def table(rows: Iterable[Row], columns: Sequence[Column], *, fold: bool = True) -> str:
    """The table's lines. A column whose cells are all numbers is aligned to the right.

    With `fold`, long cells are folded to fit a terminal; short ones and titles never are.
    """
    values = [([column.value(row) for column in columns], row) for row in rows]
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        cells = [cells[number] for cells, _ in values]
        is_number = any(_is_number(cell) for cell in cells) and all(cell is None or _is_number(cell) for cell in cells)
        width = max((len(shown(cell)) for cell in cells), default=0)
        drawn.add_column(
            column.title,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=width <= SHORT,
            min_width=len(column.title),
        )
    for cells, row in values:
        drawn.add_row(*(_cell(column, cell, row) for column, cell in zip(columns, cells, strict=True)))
    return rendered(drawn, fold=fold)


def pairs(found: Iterable[tuple[str, Any]]) -> str:
    """Upper-case names and their values, below each other."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, show_header=False)
    drawn.add_column(style="bold")
    drawn.add_column(overflow="fold")
    for name, value in found:
        drawn.add_row(name, Text(shown(value)))
    return rendered(drawn)


def heading(title: str) -> str:
    """A line above a table."""
    return rendered(Text(title, style="bold cyan"))


def rendered(drawn: Table | Text, *, fold: bool = True) -> str:
    """As text, with colours if standard output is a terminal; no line ends with spaces."""
    is_terminal = sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text, width=None if fold and is_terminal else UNLIMITED, force_terminal=is_terminal, highlight=False
    )
    console.print(drawn, soft_wrap=isinstance(drawn, Text))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(column: Column, value: Any, row: Row) -> Text:
    style = column.style if isinstance(column.style, str) else column.style(row)
    return Text(shown(value), style=style)
