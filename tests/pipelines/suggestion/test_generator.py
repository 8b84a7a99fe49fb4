"""The purchases of the demo and of the tests, without Spark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime

from kpybroker.pipelines.suggestion.generator import (
    BROKEN,
    EVERYONES,
    ROBOT,
    ROBOT_PRODUCTS,
    Workload,
    lines,
    purchases,
)

PLAN = Workload(seed=1, start=datetime(2024, 2, 29, tzinfo=UTC), weeks=4, users=60)


def test_a_seed_makes_the_same_lines_and_another_one_others() -> None:
    assert list(lines(PLAN)) == list(lines(PLAN))
    assert list(lines(PLAN)) != list(lines(Workload(seed=2, start=PLAN.start, weeks=4, users=60)))


def test_every_trouble_is_in_the_lines() -> None:
    given = list(lines(PLAN))
    assert set(given) & set(BROKEN)
    rows = [json.loads(line) for line in given if line not in BROKEN]
    assert sorted(map(str, rows)) == sorted(str(one.row()) for one in purchases(PLAN)), "late lines are written too"
    times = [row["time"] for row in rows]
    assert times != sorted(times), "none is late"
    baskets = defaultdict(set)
    for row in rows:
        baskets[row["user"], row["basket"]].add(row["product"])
    sizes = {len(products) for (user, _), products in baskets.items() if user == ROBOT}
    assert sizes == {ROBOT_PRODUCTS}
    with_everyones = sum(EVERYONES in products for products in baskets.values())
    assert 0.25 < with_everyones / len(baskets) < 0.5


def test_users_have_tastes_and_few_products_are_bought_much() -> None:
    of_user: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    for one in purchases(PLAN):
        if one.user != ROBOT and one.product != EVERYONES:
            of_user[one.user][one.product.split("-")[0]] += 1
            counts[one.product] += 1
    shares = [sum(count for _, count in tastes.most_common(3)) / tastes.total() for tastes in of_user.values()]
    assert 0.7 < sum(shares) / len(shares) < 0.98, "a taste is to be guessed, and not the whole of it"
    tenth = len(counts) // 10
    assert sum(count for _, count in counts.most_common(tenth)) > counts.total() / 4
