"""How figures grow with a size, as small line charts in SVG: one for each row of a benchmark's tables.

The tables have a column for each broker and size, headed `kpybroker, 1,000`, and one for the unit. Both axes are
logarithmic: a line that rises by a step of ten for a step of ten grows in proportion.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from charts import Table, figure

COLUMNS, WIDTH, PANEL_HEIGHT, TOP = 3, 760, 168, 26
EDGE, LEFT, RIGHT, ABOVE, BELOW = 10, 34, 34, 44, 26
KINDS = {"kpybroker": "better", "Kafka 3.9.1": "worse"}
"""The colours of a chart of ratios: the green of kpybroker."""


class Panel(NamedTuple):
    """One chart: a title with its unit, and of each broker (size, value) in order of size."""

    title: str
    lines: dict[str, list[tuple[int, float]]]


class Scale(NamedTuple):
    """A logarithmic axis: from a value to a place in pixels."""

    least: float
    most: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value above 0."""
        if self.most == self.least:
            return (self.start + self.end) / 2
        share = math.log(value / self.least) / math.log(self.most / self.least)
        return self.start + share * (self.end - self.start)


def panel(table: Table, row: str) -> Panel:
    """The chart of one row. Raises ValueError where the table has no such row, or not both brokers."""
    cells = next((cells for cells in table.rows if cells[0] == row), None)
    if cells is None:
        raise ValueError(f"{table.title} has no row {row!r}")
    lines: dict[str, list[tuple[int, float]]] = {}
    for head, cell in zip(table.head, cells, strict=True):
        if (found := re.fullmatch(r"(.+), ([\d,]+)", head)) and cell:
            lines.setdefault(found[1], []).append((int(found[2].replace(",", "")), figure(cell)))
    if lines.keys() != KINDS.keys():
        raise ValueError(f"{table.title}, {row!r} has lines of {sorted(lines)}")
    unit = cells[table.head.index("unit")]
    return Panel(f"{table.title}: {row}" + (f", {unit}" if unit != "1/s" else ""), lines)


def growth_chart(panels: Sequence[Panel]) -> tuple[str, str]:
    """The charts in rows of three below a legend, and the text that stands for them, with each value."""
    height = TOP + PANEL_HEIGHT * math.ceil(len(panels) / COLUMNS)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-size="12">']
    for number, (name, kind) in enumerate(KINDS.items()):
        parts.append(f'<rect x="{EDGE + 110 * number}" y="6" width="12" height="12" class="{kind}"/>')
        parts.append(f'<text x="{EDGE + 17 + 110 * number}" y="16">{name}</text>')
    for number, one in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        parts.append(f'<g transform="translate({column * WIDTH // COLUMNS} {TOP + row * PANEL_HEIGHT})">')
        parts += [*_drawn(one), "</g>"]
    return "\n".join([*parts, "</svg>"]), "; ".join(_in_words(one) for one in panels)


def _drawn(one: Panel) -> list[str]:
    width, bottom = WIDTH // COLUMNS, PANEL_HEIGHT - BELOW
    sizes = [size for size, _ in next(iter(one.lines.values()))]
    values = [value for line in one.lines.values() for _, value in line]
    across = Scale(min(sizes), max(sizes), LEFT, width - RIGHT)
    up = Scale(min(values), max(values), bottom - 24, ABOVE)
    parts = [f'<text x="{EDGE}" y="20" class="title">{escape(one.title)}</text>']
    parts.append(f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{bottom}" y2="{bottom}" class="axis"/>')
    parts += [f'<text x="{across(size):.1f}" y="{bottom + 17}" text-anchor="middle">{size:,}</text>' for size in sizes]
    for name, line in one.lines.items():
        other = next(dict(values) for other, values in one.lines.items() if other != name)
        for (size, value), (after, next_value) in pairwise(line):
            parts.append(
                f'<line x1="{across(size):.1f}" x2="{across(after):.1f}" y1="{up(value):.1f}" '
                f'y2="{up(next_value):.1f}" class="line {KINDS[name]}"/>'
            )
        for size, value in line:
            y = up(value) + (-8 if value >= other[size] else 17)
            text = f"{value:,g}" if value >= 1000 else f"{value:g}"
            parts.append(f'<circle cx="{across(size):.1f}" cy="{up(value):.1f}" r="3" class="{KINDS[name]}"/>')
            parts.append(f'<text x="{across(size):.1f}" y="{y:.1f}" text-anchor="middle">{text}</text>')
    return parts


def _in_words(one: Panel) -> str:
    lines = {name: ", ".join(f"{value:g} at {size:,}" for size, value in line) for name, line in one.lines.items()}
    return f"{one.title}: {'; '.join(f'{name} {values}' for name, values in lines.items())}"
