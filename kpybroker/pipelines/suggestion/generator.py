"""Purchases with known tastes: the same seed makes the same lines, with trouble that a pipeline must survive.

Each product belongs to a taste (`tea-07`), and few of them are bought much (Zipf). Each user has a few tastes, and a
basket mostly one of them; the rest is what everyone buys. Some products have a companion that is often bought with
them. So what a user buys next can be guessed better than by popularity, and not well.

A few lines are late, a few are broken, one product is in a third of all baskets, and one user, a robot, has baskets of
more products than a person carries.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

TASTES = ("tea", "garden", "baking", "bicycle", "paint", "fishing", "music", "chess", "camera", "yarn", "dog", "plants")
EVERYONES = "bag-00"
ROBOT, ROBOT_PRODUCTS = "robot", 150
BROKEN = (
    "",
    "{",
    "[]",
    '{"time": "2024-03-05T08:00:00Z", "user": "u", "basket": "b"}',
    '{"time": "soon", "user": "u", "basket": "b", "product": "p"}',
    '{"time": "2024-03-05T08:00:00Z", "user": "u", "basket": "b", "product": "p", "quantity": 0}',
    '{"time": "2024-03-05T08:00:00Z", "user": "", "basket": "b", "product": "p"}',
    '{"time": "+294247-01-10T04:00:54Z", "user": "u", "basket": "b", "product": "p"}',
)
ZIPF = 0.9
OWN_TASTE, COMPANION, FOR_EVERYONE = 0.75, 0.35, 1 / 3


@dataclass(frozen=True, slots=True)
class Workload:
    """`weeks` from `start`, in which each user has a basket about each `days` days. `late` lines are `late_s` late."""

    seed: int
    start: datetime
    weeks: int = 8
    users: int = 300
    products: int = 240
    days: float = 6.0
    broken: float = 0.005
    late: float = 0.01
    late_s: int = 600


@dataclass(frozen=True, slots=True)
class Purchase:
    """One line of a basket."""

    time: datetime
    user: str
    basket: str
    product: str
    quantity: int

    def row(self) -> dict[str, Any]:
        """Its fields as JSON has them."""
        return {**asdict(self), "time": self.time.isoformat(timespec="milliseconds")}


def purchases(plan: Workload) -> list[Purchase]:
    """All of them, ordered by time."""
    dice = random.Random(plan.seed)
    shelves = _shelves(plan)
    everything = [product for shelf in itertools.zip_longest(*shelves.values()) for product in shelf if product]
    out: list[Purchase] = []
    numbers = itertools.count()
    for user in range(plan.users):
        tastes = dice.sample(TASTES, dice.choice((1, 2, 2, 3)))
        day = dice.uniform(0, plan.days)
        while day < plan.weeks * 7:
            products = _basket(dice, shelves[dice.choice(tastes)], everything)
            out += _lines(dice, plan, day, f"user-{user:03d}", f"basket-{next(numbers)}", products)
            day += dice.expovariate(1 / plan.days) + 0.5
    for week in range(plan.weeks):
        products = dice.sample(everything, min(ROBOT_PRODUCTS, len(everything)))
        out += _lines(dice, plan, week * 7 + 1, ROBOT, f"basket-{next(numbers)}", products)
    return sorted(out, key=lambda one: (one.time, one.basket))


def lines(plan: Workload) -> Iterator[str]:
    """What is written, in its order: by time, but for the lines that are late, with broken ones between."""
    dice = random.Random(plan.seed + 1)
    waiting: list[Purchase] = []
    for one in purchases(plan):
        while waiting and waiting[0].time + timedelta(seconds=plan.late_s) <= one.time:
            yield json.dumps(waiting.pop(0).row())
        if dice.random() < plan.late:
            waiting.append(one)
        else:
            yield json.dumps(one.row())
        if dice.random() < plan.broken:
            yield dice.choice(BROKEN)
    yield from (json.dumps(one.row()) for one in waiting)


def _shelves(plan: Workload) -> dict[str, list[str]]:
    """The products of each taste, the most popular first."""
    each = -(-plan.products // len(TASTES))
    return {taste: [f"{taste}-{number:02d}" for number in range(each)] for taste in TASTES}


def _basket(dice: random.Random, shelf: Sequence[str], everything: Sequence[str]) -> list[str]:
    chosen: dict[str, None] = {}
    for _ in range(1 + min(int(dice.expovariate(0.3)), 12)):
        product = _zipf(dice, shelf if dice.random() < OWN_TASTE else everything)
        chosen[product] = None
        taste, number = product.split("-")
        # the companion of an even number is the next one
        if int(number) % 2 == 0 and dice.random() < COMPANION:
            companion = f"{taste}-{int(number) + 1:02d}"
            if companion in shelf:
                chosen[companion] = None
    if dice.random() < FOR_EVERYONE:
        chosen[EVERYONES] = None
    return list(chosen)


def _zipf(dice: random.Random, among: Sequence[str]) -> str:
    weights = [1 / (rank + 1) ** ZIPF for rank in range(len(among))]
    return dice.choices(among, weights)[0]


def _lines(
    dice: random.Random, plan: Workload, day: float, user: str, basket: str, products: Sequence[str]
) -> Iterator[Purchase]:
    """A line each few seconds, so that a basket takes minutes."""
    time = plan.start + timedelta(seconds=round(day * 86_400))
    for product in products:
        yield Purchase(time, user, basket, product, dice.choice((1, 1, 1, 2, 3)))
        time += timedelta(seconds=dice.randrange(1, 20))
