"""Bar charts as SVG text, from the data files that the benchmarks write. Standard library only.

A data file (`docs/speed/data/<command>.json`) has `conditions`, one sentence, and `tables` of text cells. A cell that
holds a figure begins with it: `57.1 (56.7 to 57.3)`, `1,245`, `1.15 **missed**`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parents[1] / "speed" / "data"
WIDTH, LABEL_WIDTH, ROW_HEIGHT, BAR_HEIGHT = 760, 330, 24, 14
BETTER, WORSE = "#2a7f62", "#c2703d"


class Table(NamedTuple):
    """One table of a benchmark: text cells."""

    title: str
    head: list[str]
    rows: list[list[str]]


def load(command: str, table: int) -> Table:
    """A table of the data file that `make <command>` wrote last."""
    found = json.loads((DATA / f"{command}.json").read_text(encoding="utf-8"))["tables"][table]
    return Table(found["title"], found["head"], found["rows"])


def conditions(command: str) -> str:
    """The sentence that says when and how it was measured."""
    text: str = json.loads((DATA / f"{command}.json").read_text(encoding="utf-8"))["conditions"]
    return text


def figure(cell: str) -> float:
    """The number that a cell begins with. Raises ValueError for a cell without one."""
    match = re.match(r"[\d,]+(\.\d+)?", cell)
    if match is None:
        raise ValueError(f"{cell!r} does not begin with a number")
    return float(match.group().replace(",", ""))


def ratio_chart(rows: Sequence[tuple[str, float]], *, most: float, less_is_better: bool = False) -> str:
    """A bar a row around the line at 1, which is Kafka's value; bars longer than `most` are cut there."""
    scale = (WIDTH - LABEL_WIDTH - 60) / most
    height = ROW_HEIGHT * len(rows) + 34
    kafka = LABEL_WIDTH + scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" role="img" '
        'style="max-width:760px" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
    ]
    for number, (label, value) in enumerate(rows):
        top = 22 + number * ROW_HEIGHT
        length = min(value, most) * scale
        colour = BETTER if (value <= 1) == less_is_better or value == 1 else WORSE
        parts += [
            f'<text x="{LABEL_WIDTH - 8}" y="{top + 12}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LABEL_WIDTH}" y="{top + 2}" width="{length:.1f}" height="{BAR_HEIGHT}" fill="{colour}"/>',
            f'<text x="{LABEL_WIDTH + length + 5:.1f}" y="{top + 13}">{value:.2f}</text>',
        ]
    parts += [
        f'<line x1="{kafka:.1f}" x2="{kafka:.1f}" y1="18" y2="{height - 8}" stroke="currentColor" '
        'stroke-dasharray="3 3"/>',
        f'<text x="{kafka:.1f}" y="12" text-anchor="middle">Kafka 3.9.1 = 1</text>',
        "</svg>",
    ]
    return "\n".join(parts)
