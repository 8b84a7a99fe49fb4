"""Distributions: exact counts and sums, quantiles within six percent, a window that is forgotten."""

from __future__ import annotations

import random

import pytest

from kpybroker.metrics.histogram import BUCKETS, QUANTILES, VALUE_MAX, Histogram


def test_small_values_are_exact() -> None:
    histogram = Histogram()
    for value in range(1, 11):
        histogram.record(value)
    assert (histogram.count, histogram.sum, histogram.mean) == (10, 55, 5.5)
    assert (histogram.min, histogram.max) == (1, 10)
    assert histogram.quantiles((0.1, 0.5, 0.9, 1.0)) == [1, 5, 9, 10]


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_six_percent_off_at_most(seed: int) -> None:
    source = random.Random(seed)
    values = sorted(int(source.lognormvariate(9, 2)) for _ in range(5000))
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    for share, found in zip(QUANTILES, histogram.quantiles(), strict=True):
        assert found == pytest.approx(values[int(share * 5000) - 1], rel=0.065)


def test_every_value_has_a_bucket_whose_neighbours_are_ordered() -> None:
    last = -1.0
    for value in sorted({0, *(1 << bits for bits in range(40)), *((1 << bits) - 1 for bits in range(1, 40))}):
        histogram = Histogram()
        histogram.record(value)
        (found,) = histogram.quantiles((0.5,))
        assert found >= last
        assert found == pytest.approx(min(value, VALUE_MAX), rel=0.065)
        last = found
    assert len(Histogram()._current) == BUCKETS


def test_a_weight_counts_for_many_and_the_scale_is_applied() -> None:
    histogram = Histogram(scale=0.001)
    histogram.record(4000, weight=3)
    histogram.record(-5)
    assert (histogram.count, histogram.sum) == (4, 12.0)
    assert histogram.quantiles((0.9,)) == [pytest.approx(4.0, rel=0.065)]


def test_quantiles_forget_what_is_two_windows_old_and_sums_do_not() -> None:
    histogram = Histogram()
    histogram.record(1000)
    histogram.rotate()
    histogram.record(1)
    assert histogram.quantiles((1.0,)) == [pytest.approx(1000, rel=0.065)]
    histogram.rotate()
    assert histogram.quantiles((1.0,)) == [1]
    histogram.rotate()
    assert histogram.quantiles((0.5, 1.0)) == [0.0, 0.0]
    assert (histogram.count, histogram.sum, histogram.max) == (2, 1001, 1000)
