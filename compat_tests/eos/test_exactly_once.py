"""A slice of `make soak-eos`: copied once while broker and copiers die; a failure prints its seed for `--seed`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.eos.place import OVERRIDES, OneBroker, Replicated
from compat_tests.eos.soak import Soak
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import started

RECORDS = 9_000
KILLS = 2
ZOMBIES = 2
KINDER = {"kpybroker": 1, "kafka": 2}  # Kafka takes ten seconds to come back, and its clients to find it


@pytest.fixture
def place(launcher: Launcher) -> Iterator[OneBroker]:
    one = OneBroker(launcher.unstarted(**{key.replace(".", "_"): value for key, value in OVERRIDES.items()}))
    with started(one):
        yield one


@pytest.mark.wide
def test_exactly_once(seed: int, place: OneBroker) -> None:
    soak = Soak(place, seed, RECORDS // KINDER[place.broker.kind], groups=False, say=print)
    assert soak.run(KILLS // KINDER[place.broker.kind], ZOMBIES) == []
    assert soak.numbers.zombies.total() == ZOMBIES // KINDER[place.broker.kind]


def test_exactly_once_by_a_group(seed: int, place: OneBroker) -> None:
    """The copiers share the partitions; who has lost his may not commit what he copied of it."""
    assert Soak(place, seed, RECORDS // 2 // KINDER[place.broker.kind], groups=True, say=print).run(1, 0) == []


@pytest.fixture
def replicated(launcher: Launcher) -> Iterator[Replicated]:
    kinds = [launcher.kind] * 3
    properties = Replicated.PROPERTIES
    three = Replicated(Cluster(launcher.directory / "copied", launcher.zookeeper("copied"), kinds, properties))
    with started(three):
        yield three


@pytest.mark.wide
def test_exactly_once_in_a_cluster(seed: int, replicated: Replicated, launcher: Launcher) -> None:
    """Who is killed coordinates transactions or leads what is copied; another replica goes on with what it knew."""
    assert Soak(replicated, seed, RECORDS // 4 // KINDER[launcher.kind], groups=False, say=print).run(1, 1) == []
