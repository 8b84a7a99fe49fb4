"""Rounds of faults: several that overlap, drawn from a seed, or one scenario."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from compat_tests.faults.cluster import FaultyCluster
from compat_tests.faults.faults import FAULTS, OF_MEMBERS, Fault, Roles, nothing
from compat_tests.faults.scenarios import SCENARIOS

BEGIN_S = (0.0, 2.0)
LENGTH_S = (0.2, 6.0)
COUNTS = (1, 1, 2, 2, 3)
"""Of faults in one round, each as likely."""


class Planned(NamedTuple):
    fault: Fault
    begin_s: float
    length_s: float


def plan(
    cluster: FaultyCluster, roles: Roles, random: Random, only: Collection[str] = (), length_max_s: float = LENGTH_S[1]
) -> list[Planned]:
    """The faults of one round; the same for the same seed and roles. A scenario has its round to itself."""
    scenarios = [name for name in SCENARIOS if name in only]
    if scenarios:
        scenario = SCENARIOS[random.choice(scenarios)]
        return [
            Planned(Fault(scenario.__name__.replace("_", " "), partial(scenario, cluster, roles), nothing), 0.0, 0.0)
        ]
    possible = [name for name in FAULTS if cluster.applications or name not in OF_MEMBERS]
    names = [name for name in possible if not only or name in only]
    weights = [FAULTS[name][1] for name in names]
    drawn = random.choices(names, weights, k=random.choice(COUNTS))
    return [
        Planned(
            FAULTS[name][0](cluster, roles, random),
            random.uniform(*BEGIN_S),
            random.uniform(LENGTH_S[0], length_max_s),
        )
        for name in drawn
    ]


def play(planned: Sequence[Planned], say: Callable[[str], None]) -> list[str]:
    """Begin and end each at its time, all concurrently; returns what could not be done."""
    failures: list[str] = []

    def live(one: Planned) -> None:
        try:
            time.sleep(one.begin_s)
            say(f"{one.fault.text}, for {one.length_s:.1f} s" if one.length_s else one.fault.text)
            one.fault.begin()
            time.sleep(one.length_s)
            one.fault.end()
        except Exception as error:
            failures.append(f"{one.fault.text}: {error!r}")

    threads = [threading.Thread(target=live, args=(one,), daemon=True) for one in planned]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures
