"""How good suggestions are: do they contain what users bought next, and more of it than the most popular products do?

The last basket of each user is held out, by time. Each method sees all other lines and ranks products that a user has
not bought yet; what counts is which of the new products of the held-out basket are among the first ten.

- popularity: the products in most baskets, the same for everyone; what a method must beat.
- co-purchases: the scores of `suggestions` over all that the user has bought, added up.
- als: `user_suggestions`.

A user without another basket, or without a new product in the last one, says nothing and is not counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

FIRST = 10
Row = Mapping[str, Any]
Ranked = Mapping[str, Sequence[str]]
"""User -> products, the best first."""


@dataclass(frozen=True, slots=True)
class Split:
    """`train` is to learn from, `history` what each user has in it, `wanted` what is new in each user's last basket."""

    train: Sequence[Row]
    held: frozenset[tuple[str, str]]
    """User and basket of what is held out."""
    history: Mapping[str, frozenset[str]]
    wanted: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Quality:
    """Of one method over `users`: `hits` had at least one wanted product among the first ten.

    `recall` is the part of a user's wanted products found there, `reciprocal_rank` one over the rank of the first of
    them, or 0; both are averages over the users.
    """

    method: str
    users: int
    hits: int
    recall: float
    reciprocal_rank: float

    @property
    def hit_rate(self) -> float:
        """From 0 to 1."""
        return self.hits / self.users if self.users else 0.0


def split(rows: Iterable[Row]) -> Split:
    """Hold out the last basket of each user. Rows have `time` (ISO 8601), `user`, `basket`, `product`."""
    of_user: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    given = list(rows)
    for row in given:
        of_user[row["user"]][row["basket"]].append(row)
    held: set[tuple[str, str]] = set()
    history: dict[str, frozenset[str]] = {}
    wanted: dict[str, frozenset[str]] = {}
    for user, baskets in of_user.items():
        if len(baskets) < 2:
            continue
        last = max(baskets, key=lambda basket: (max(_time(row) for row in baskets[basket]), basket))
        held.add((user, last))
        history[user] = frozenset(row["product"] for one, lines in baskets.items() if one != last for row in lines)
        new = frozenset(row["product"] for row in baskets[last]) - history[user]
        if new:
            wanted[user] = new
    train = [row for row in given if (row["user"], row["basket"]) not in held]
    return Split(train, frozenset(held), history, wanted)


def _time(row: Row) -> datetime:
    return datetime.fromisoformat(row["time"])


def by_popularity(found: Split) -> Ranked:
    """The products in most baskets, without those that the user has."""
    baskets = {(row["user"], row["basket"], row["product"]) for row in found.train}
    counts = Counter(product for _, _, product in baskets)
    order = sorted(counts, key=lambda product: (-counts[product], product))
    return {user: _first(order, found.history[user]) for user in found.wanted}


def by_co_purchases(found: Split, suggestions: Mapping[str, Sequence[Row]]) -> Ranked:
    """`suggestions` of each product are rows with `product` and `score`."""
    out: dict[str, Sequence[str]] = {}
    for user in found.wanted:
        scores: dict[str, float] = defaultdict(float)
        for product in sorted(found.history[user]):
            for one in suggestions.get(product, ()):
                scores[one["product"]] += one["score"]
        out[user] = _first(sorted(scores, key=lambda product: (-scores[product], product)), found.history[user])
    return out


def by_als(found: Split, suggestions: Mapping[str, Sequence[Row]]) -> Ranked:
    """`suggestions` of each user, the best first."""
    return {
        user: _first([one["product"] for one in suggestions.get(user, ())], found.history[user])
        for user in found.wanted
    }


def _first(order: Iterable[str], without: frozenset[str]) -> Sequence[str]:
    return [product for product in order if product not in without][:FIRST]


def measure(method: str, found: Split, ranked: Ranked) -> Quality:
    """Compare the first ten with what was wanted. A user for whom a method has nothing counts as a miss."""
    hits, recall, reciprocal = 0, 0.0, 0.0
    for user, wanted in found.wanted.items():
        places = [rank for rank, product in enumerate(ranked.get(user, ())[:FIRST], 1) if product in wanted]
        hits += bool(places)
        recall += len(places) / len(wanted)
        reciprocal += 1 / places[0] if places else 0.0
    users = len(found.wanted)
    return Quality(method, users, hits, recall / users if users else 0.0, reciprocal / users if users else 0.0)
