"""What is held out, and what a method is worth, on a few purchases by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.pipelines.suggestion.quality import by_als, by_co_purchases, by_popularity, measure, split


def line(day: int, user: str, basket: str, product: str) -> dict[str, Any]:
    return {"time": f"2024-03-{day:02d}T08:00:00+00:00", "user": user, "basket": basket, "product": product}


ROWS = [
    line(3, "ann", "2", "c"),  # the last basket, though it is the first line
    line(3, "ann", "2", "d"),
    line(3, "ann", "2", "a"),
    line(1, "ann", "1", "a"),
    line(1, "bob", "3", "b"),
    line(2, "bob", "4", "b"),  # nothing new
    line(1, "eve", "5", "c"),  # one basket
    line(2, "eve", "5", "b"),
    line(1, "joe", "6", "b"),
    line(2, "joe", "7", "z"),
]


def test_the_last_basket_of_each_user_is_held_out() -> None:
    found = split(ROWS)
    assert found.held == {("ann", "2"), ("bob", "4"), ("joe", "7")}
    assert found.wanted == {"ann": {"c", "d"}, "joe": {"z"}}, "only what is new"
    assert found.history["ann"] == {"a"}
    assert [row["product"] for row in found.train] == ["a", "b", "c", "b", "b"]


def test_each_method_ranks_what_a_user_does_not_have() -> None:
    found = split(ROWS)
    assert by_popularity(found) == {"ann": ["b", "c"], "joe": ["a", "c"]}
    of_products = {
        "a": [{"product": "d", "score": 0.2}, {"product": "c", "score": 0.9}],
        "b": [{"product": "b", "score": 1.0}, {"product": "z", "score": 0.1}],
    }
    assert by_co_purchases(found, of_products) == {"ann": ["c", "d"], "joe": ["z"]}
    assert by_als(found, {"ann": [{"product": "a"}, {"product": "d"}]}) == {"ann": ["d"], "joe": []}


def test_measures_by_hand() -> None:
    found = split(ROWS)
    quality = measure("x", found, {"ann": ["b", "d", "x"], "joe": ["a"]})
    assert (quality.users, quality.hits, quality.hit_rate) == (2, 1, 0.5)
    assert quality.recall == pytest.approx((1 / 2 + 0) / 2)
    assert quality.reciprocal_rank == pytest.approx((1 / 2 + 0) / 2)
    late = measure("x", found, {"ann": [*"efghijklmn", "c"]})
    assert (late.hits, late.recall, late.reciprocal_rank) == (0, 0, 0), "the eleventh does not count"
    assert measure("x", split([]), {}).hit_rate == 0
