"""Exactly once over failovers: stock copiers while the leaders of coordinators and copies are killed in turn."""

from __future__ import annotations

import random

from compat_tests.cluster.conftest import MakeCluster
from compat_tests.eos.place import Replicated
from compat_tests.eos.soak import Soak

RECORDS = {"kpybroker": 4_500, "kafka": 3_000}
KILLS = {"kpybroker": 2, "kafka": 2}


def test_exactly_once_while_coordinators_and_leaders_die(own_cluster: MakeCluster) -> None:
    """Whoever leads the copies afterwards tells the same of them: what was aborted is known to every replica."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    cluster = own_cluster(**{key.replace(".", "_"): value for key, value in Replicated.PROPERTIES.items()})
    place = Replicated(cluster)
    place.start()
    kind = cluster.brokers[1].kind
    assert Soak(place, seed, RECORDS[kind], groups=False, say=print).run(KILLS[kind], 1) == []
