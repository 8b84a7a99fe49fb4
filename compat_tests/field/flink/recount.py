"""What the job should write, worked out again in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

WINDOW_MS, SPAN_MS = 5_000, 20_000
"""Windows of event time; how much of it a round takes, in which its clicks are in no order."""


class Click(NamedTuple):
    user: str
    name: str
    time_ms: int

    @property
    def value(self) -> str:
        return f"{self.user}/{self.name}"


def make_clicks(users: Iterable[str], count: int, first: int, begin_ms: int, random: Random) -> list[Click]:
    """Those of one round; names are unique, the first is number `first`."""
    users = list(users)
    return [
        Click(random.choice(users), f"click-{first + n}", begin_ms + random.randrange(SPAN_MS)) for n in range(count)
    ]


def numbered(clicks: Iterable[Click]) -> dict[str, list[str]]:
    """By user, in their order."""
    found: dict[str, list[str]] = defaultdict(list)
    for click in clicks:
        found[click.user].append(f"{click.name}@{len(found[click.user]) + 1}")
    return dict(found)


def windows(clicks: Iterable[Click]) -> Counter[tuple[str, str]]:
    """User and START@COUNT: each once."""
    counts = Counter((click.user, click.time_ms - click.time_ms % WINDOW_MS) for click in clicks)
    return Counter((user, f"{start}@{count}") for (user, start), count in counts.items())
