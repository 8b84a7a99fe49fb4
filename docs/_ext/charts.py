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
WIDTH, LABEL_WIDTH, VALUE_WIDTH, ROW_HEIGHT, BAR_HEIGHT, TOP = 760, 312, 56, 24, 14, 34
WIDTH_MIN = 640
"""At which letters of 12 are still 10 px."""


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


def ratio_chart(
    rows: Sequence[tuple[str, float]], *, title: str, most: float, less_is_better: bool = False
) -> tuple[str, str]:
    """A bar a row from 0, with a line at 1, which is Kafka's value, and the text that stands for it, with each value.

    Values are in a column of their own, so that none is on the line. Bars longer than `most` end there.
    """
    scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / most
    bottom = TOP + ROW_HEIGHT * len(rows)
    kafka = LABEL_WIDTH + scale
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 40}" font-size="12">', *_legend()]
    for number in range(int(most * 2) + 1):
        x = LABEL_WIDTH + number / 2 * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" class="axis"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{number / 2:g}</text>')
    parts.append(f'<line x1="{LABEL_WIDTH}" x2="{WIDTH - VALUE_WIDTH}" y1="{bottom}" y2="{bottom}" class="axis"/>')
    parts.append(f'<text x="{LABEL_WIDTH}" y="{bottom + 34}" class="title">{escape(title)}</text>')
    for number, (label, value) in enumerate(rows):
        top = TOP + number * ROW_HEIGHT
        kind = "better" if (value <= 1) == less_is_better or value == 1 else "worse"
        cut = " \N{RIGHTWARDS ARROW}" if value > most else ""
        parts += [
            f'<text x="{LABEL_WIDTH - 8}" y="{top + 15}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LABEL_WIDTH}" y="{top + 4}" width="{min(value, most) * scale:.1f}" height="{BAR_HEIGHT}" '
            f'class="{kind}"/>',
            f'<text x="{WIDTH - 4}" y="{top + 15}" text-anchor="end" class="value">{value:.2f}{cut}</text>',
        ]
    parts.append(
        f'<line x1="{kafka:.1f}" x2="{kafka:.1f}" y1="{TOP - 4}" y2="{bottom}" class="axis" stroke-dasharray="3 3"/>'
    )
    return "\n".join([*parts, "</svg>"]), f"{title}. " + "; ".join(f"{label}: {value:.2f}" for label, value in rows)


def _legend() -> list[str]:
    """What the colours and the line are, above the bars."""
    x, parts = LABEL_WIDTH, []
    for kind, text in (("better", "kpybroker is better"), ("worse", "Kafka is better")):
        parts.append(f'<rect x="{x}" y="6" width="12" height="12" class="{kind}"/>')
        parts.append(f'<text x="{x + 17}" y="16">{text}</text>')
        x += 150
    parts.append(f'<line x1="{x + 6}" x2="{x + 6}" y1="4" y2="20" class="axis" stroke-dasharray="3 3"/>')
    return [*parts, f'<text x="{x + 17}" y="16">Kafka 3.9.1 = 1</text>']
