"""Suggestions by co-purchases in plain Python, which shares no code with the pipeline."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple


class Line(NamedTuple):
    """A purchase, with its time in milliseconds."""

    ms: int
    user: str
    basket: str
    product: str


class Basket(NamedTuple):
    first_ms: int
    last_ms: int
    products: frozenset[str]


Listed = list[tuple[str, int, float]]
"""Product, baskets in common, score."""


def understood(text: str) -> Line | None:
    """The purchase of a line; None for what belongs to the dead letters."""
    try:
        row = json.loads(text)
        time = datetime.fromisoformat(row["time"])
        user, basket, product = row["user"], row.get("basket", row.get("order")), row["product"]
    except (ValueError, TypeError, KeyError):
        return None
    if not (user and basket and product) or row.get("quantity", 1) <= 0:
        return None
    return Line(round(time.timestamp() * 1000), user, basket, product)


@dataclass(slots=True)
class Recount:
    """Takes in batches in the order of the stream. `late` counts the lines that no basket has got."""

    window_ms: int
    slide_ms: int
    lateness_ms: int
    gap_ms: int
    basket_max: int
    top: int
    least: int
    shrink: float
    late: int = 0
    left_out: int = 0
    watermark: int = 0
    found: list[dict[tuple[str, int], tuple[int, Listed]]] = field(default_factory=list)
    """For each batch: product and end of window -> baskets of the product, and its suggestions."""
    _open: dict[tuple[str, str], list[Basket]] = field(default_factory=lambda: defaultdict(list))
    _windows: dict[int, list[frozenset[str]]] = field(default_factory=lambda: defaultdict(list))

    def batch(self, lines: Iterable[Line], heartbeat_ms: int | None = None) -> None:
        newest = [heartbeat_ms] if heartbeat_ms is not None else []
        for line in lines:
            newest.append(line.ms)
            if line.ms + self.gap_ms <= self.watermark:
                self.late += 1
            else:
                self._add(line)
        self.watermark = max([self.watermark, *(ms - self.lateness_ms for ms in newest)])
        self._close_baskets(self.watermark)
        ends = sorted(end for end in self._windows if end <= self.watermark)
        self._rank(ends)

    def whole(self, lines: Iterable[Line]) -> None:
        """All at once: nothing is late, and windows that go on after the last basket's step are not finished."""
        for line in lines:
            self._add(line)
        last = max(basket.last_ms for baskets in self._open.values() for basket in baskets) + self.gap_ms
        self._close_baskets(last)
        limit = -(-last // self.slide_ms) * self.slide_ms
        self._rank(sorted(end for end in self._windows if end <= limit))

    def _add(self, line: Line) -> None:
        joined = Basket(line.ms, line.ms, frozenset({line.product}))
        apart = []
        for one in self._open[line.user, line.basket]:
            if one.first_ms - self.gap_ms <= line.ms <= one.last_ms + self.gap_ms:
                products = joined.products | one.products
                joined = Basket(min(joined.first_ms, one.first_ms), max(joined.last_ms, one.last_ms), products)
            else:
                apart.append(one)
        self._open[line.user, line.basket] = [*apart, joined]

    def _close_baskets(self, until_ms: int) -> None:
        for key, baskets in self._open.items():
            for one in baskets:
                end = one.last_ms + self.gap_ms
                if end > until_ms:
                    continue
                if len(one.products) > self.basket_max:
                    self.left_out += 1
                    continue
                first_end = -(-end // self.slide_ms) * self.slide_ms
                for number in range(self.window_ms // self.slide_ms):
                    self._windows[first_end + number * self.slide_ms].append(one.products)
            self._open[key] = [one for one in baskets if one.last_ms + self.gap_ms > until_ms]

    def _rank(self, ends: list[int]) -> None:
        newest: dict[str, tuple[int, int, Listed]] = {}
        for end in ends:
            baskets = self._windows.pop(end)
            for product, (count, listed) in self._of_window(baskets).items():
                newest[product] = (end, count, listed)
        self.found.append({(product, end): (count, listed) for product, (end, count, listed) in newest.items()})

    def _of_window(self, baskets: list[frozenset[str]]) -> dict[str, tuple[int, Listed]]:
        alone = Counter(product for one in baskets for product in one)
        both = Counter(pair for one in baskets for pair in itertools.permutations(one, 2))
        lists: dict[str, Listed] = defaultdict(list)
        for (a, b), count in both.items():
            if count >= self.least:
                score = count / math.sqrt(alone[a] * alone[b]) * count / (count + self.shrink)
                lists[a].append((b, count, round(score, 6)))
        return {
            product: (alone[product], sorted(listed, key=lambda one: (-one[2], one[0]))[: self.top])
            for product, listed in lists.items()
        }


def last_of_each(found: Iterable[dict[tuple[str, int], Any]]) -> dict[str, Any]:
    """What is left of a compacted topic."""
    return {product: (end, *value) for batch in found for (product, end), value in batch.items()}
