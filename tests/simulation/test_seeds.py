"""A few short storms, so that a change that breaks what is promised may fail here; `make simulate` has more.

The seeds are chosen so that every kind of fault and of client is in one of them.
"""

from __future__ import annotations

import pytest

from tests.simulation.scenario import run
from tests.simulation.storm import KINDS, draw

SECONDS = 18
SEEDS = (138, 305, 703, 1023, 1230)
GROUPS = {"member", "consumer", "streamer", "sharer"}
CLIENTS = {"producer", "reader", "transactional", "keyed", "operator", "tools", *GROUPS}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_kept_whatever_happens(seed: int) -> None:
    ended = run(draw(seed, seconds=SECONDS))
    assert ended.problems == [], "\n".join([*ended.problems, *ended.lines[-200:]])


def test_every_kind_is_among_them() -> None:
    storms = [draw(seed, seconds=SECONDS) for seed in SEEDS]
    assert {fault.kind for storm in storms for fault in storm.faults} == set(KINDS)
    clients = {name.rstrip("0123456789") for storm in storms for name in storm.clients}
    assert clients == CLIENTS
    vanish = {name.rstrip("0123456789") for storm in storms if storm.habits.vanishes for name in storm.clients}
    are_static = {name.rstrip("0123456789") for storm in storms if storm.habits.is_static for name in storm.clients}
    assert vanish >= GROUPS
    assert are_static >= {"member", "consumer"}
    assert {storm.is_unclean for storm in storms} == {storm.trims for storm in storms} == {True, False}
