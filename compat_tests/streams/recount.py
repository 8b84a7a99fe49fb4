"""What the Streams application should say, worked out again in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

USERS = tuple(f"user-{n}" for n in range(20))
PAGES = tuple(f"page-{n}" for n in range(5))


class Event(NamedTuple):
    user: str
    time_ms: int
    value: str


def make_events(kind: str, count: int, first_ms: int, span_ms: int, random: Random) -> list[Event]:
    """In no order of time; every value is unique."""
    return [
        Event(random.choice(USERS), first_ms + random.randrange(span_ms), f"{random.choice(PAGES)}/{kind}-{n}")
        for n in range(count)
    ]


def visit(clicks: Sequence[Event], plans: Mapping[str, str]) -> list[Event]:
    """Every click with its user's plan; a click of an unknown user is left out."""
    return [click._replace(value=f"{click.value}/{plans[click.user]}") for click in clicks if click.user in plans]


def join(visits: Sequence[Event], buys: Sequence[Event], together_ms: int) -> list[Event]:
    """Every visit with every buy of the same user at most so far apart; a pair is as old as its younger half."""
    return [
        Event(visit.user, max(visit.time_ms, buy.time_ms), f"{visit.value}+{buy.value}")
        for visit in visits
        for buy in buys
        if visit.user == buy.user and abs(visit.time_ms - buy.time_ms) <= together_ms
    ]


def count(pairs: Sequence[Event], window_ms: int) -> Counter[str]:
    return Counter(f"{pair.value.partition('/')[0]}@{pair.time_ms - pair.time_ms % window_ms}" for pair in pairs)
