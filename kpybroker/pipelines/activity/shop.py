"""A made-up day of a shop's web server, for a demo without a log of one's own: access lines in the common format.

The same seed makes the same lines. Most visitors leave early, and there are more in the evening than at night.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

DAY: Final = datetime(2024, 3, 5, tzinfo=UTC)
FUNNEL: Final = "/,/product/*,/cart,/checkout,/paid"
GOES_ON: Final = (0.7, 0.45, 0.6, 0.75)
"""How many of those at a step of the funnel come to the next one."""
BY_HOUR: Final = (3, 2, 1, 1, 1, 2, 4, 7, 9, 10, 10, 11, 13, 11, 10, 10, 11, 13, 16, 19, 21, 18, 12, 6)
VISITORS: Final = 1500
PRODUCTS, VIEWS_MAX, PAUSE_S_MAX = 40, 6, 90


def lines(seed: int = 7, visitors: int = VISITORS) -> list[str]:
    """The lines in the order of their times."""
    chance = random.Random(seed)
    found = [event for number in range(visitors) for event in _visit(chance, number)]
    return [line for _, line in sorted(found)]


def _visit(chance: random.Random, number: int) -> Iterator[tuple[datetime, str]]:
    (hour,) = chance.choices(range(24), BY_HOUR)
    time = DAY + timedelta(hours=hour, seconds=chance.randrange(3600))
    for page in _pages(chance):
        if time >= DAY + timedelta(days=1):
            return
        size = chance.randrange(800, 40_000)
        visitor = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        yield time, f'{visitor} - - [{time:%d/%b/%Y:%H:%M:%S +0000}] "GET {page} HTTP/1.1" 200 {size}'
        time += timedelta(seconds=chance.randrange(2, PAUSE_S_MAX))


def _pages(chance: random.Random) -> Iterator[str]:
    yield "/"
    for step, share in zip(("product", "/cart", "/checkout", "/paid"), GOES_ON, strict=True):
        if chance.random() >= share:
            return
        if step != "product":
            yield step
            continue
        for _ in range(chance.randint(1, VIEWS_MAX)):
            yield f"/product/{int(chance.paretovariate(1.2)) % PRODUCTS}"


def write(place: Path) -> Path:
    """A file with them in a directory."""
    file = place / "shop.log"
    file.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
    return file
