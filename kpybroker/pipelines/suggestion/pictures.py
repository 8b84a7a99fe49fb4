"""Pictures of the demo: how often each method was right, and which of the most bought products go together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.demo.pictures import Panel, legend
from kpybroker.pipelines.suggestion.quality import FIRST, Quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 16
COLORS = {"popularity": "#b0b7bf", "co-purchases": "#2f6f9f", "als": "#d98c2b"}


def hit_rates(qualities: Sequence[Quality]) -> Panel:
    """A group of bars for each measure, a bar for each method."""

    def panel(axes: Axes) -> None:
        width = 0.8 / len(qualities)
        names = (f"hit rate@{FIRST}", f"recall@{FIRST}", f"MRR@{FIRST}")
        for number, one in enumerate(qualities):
            values = (one.hit_rate, one.recall, one.reciprocal_rank)
            places = [group + (number - (len(qualities) - 1) / 2) * width for group in range(len(names))]
            bars = axes.bar(places, values, width, label=one.method, color=COLORS.get(one.method))
            axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=2, fontsize=8)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylim(0, 1)
        axes.set_title(f"New products of the last baskets of {qualities[0].users} users")
        legend(axes)

    return panel


def heat_map(rows: Sequence[Mapping[str, Any]]) -> Panel:
    """The cosine of the baskets of each two of the products in most baskets."""
    baskets: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        baskets[row["user"], row["basket"]].add(row["product"])
    alone = Counter(product for products in baskets.values() for product in products)
    shown = sorted(sorted(alone, key=lambda product: (-alone[product], product))[:SHOWN])
    both = Counter((a, b) for products in baskets.values() for a in shown for b in shown if {a, b} <= products)
    cells = [[math.nan if a == b else both[a, b] / math.sqrt(alone[a] * alone[b]) for b in shown] for a in shown]

    def panel(axes: Axes) -> None:
        image = axes.imshow(cells, cmap="Blues", aspect="auto")
        axes.set_xticks(range(len(shown)), shown, rotation=60, ha="right", fontsize=7)
        axes.set_yticks(range(len(shown)), shown, fontsize=7)
        axes.set_title("Bought together (cosine), the products in most baskets")
        assert axes.figure is not None
        axes.figure.colorbar(image, ax=axes)

    return panel
