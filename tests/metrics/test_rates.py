"""Rates move as those of Yammer's Meter."""

from __future__ import annotations

import math

import pytest

from kpybroker.metrics.rates import TICK_S, Rates


def test_the_first_tick_sets_all_rates() -> None:
    rates = Rates(100, now_s=0)
    rates.tick(150)
    assert (rates.one_minute, rates.five_minutes, rates.fifteen_minutes) == (10, 10, 10)


def test_a_rate_falls_to_a_share_of_1_over_e_in_its_own_time() -> None:
    rates = Rates(0, now_s=0)
    rates.tick(300)
    for _ in range(int(60 / TICK_S)):
        rates.tick(300)
    assert rates.one_minute == pytest.approx(60 / math.e)
    assert rates.five_minutes == pytest.approx(60 * math.exp(-1 / 5))
    assert rates.fifteen_minutes == pytest.approx(60 * math.exp(-1 / 15))


def test_the_mean_is_of_everything_since_the_start() -> None:
    rates = Rates(0, now_s=100)
    assert rates.mean(0, 100) == 0
    assert rates.mean(50, 110) == 5
