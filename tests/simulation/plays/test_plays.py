"""The sound broker passes every play, under any order of tasks."""

from __future__ import annotations

import pytest

from tests.simulation.plays import PLAYS
from tests.simulation.world import simulate


@pytest.mark.parametrize("name", PLAYS)
def test_it_ends_well(name: str) -> None:
    play = PLAYS[name]
    for seed in (1, 2):
        ended = simulate(seed, play.run, brokers=play.brokers, seconds_max=300)
        assert ended.problems == [], "\n".join([*ended.problems, *ended.lines[-200:]])
