"""A slice of `make soak-eos`: copied once while broker and copiers die; a failure prints its seed for `--seed`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.eos.place import OVERRIDES, WITHOUT_FEATURES, OneBroker, Replicated
from compat_tests.eos.soak import Soak
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.serving import NO_FEATURES, has_features
from compat_tests.support.services import started
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM

RECORDS = 9_000
KILLS = 2
ZOMBIES = 2
KINDER = {"kpybroker": 1, "kafka": 2}  # Kafka takes ten seconds to come back, and its clients to find it


@pytest.fixture(params=[pytest.param(1, marks=pytest.mark.wide), 2], ids=["version 1", "version 2"])
def version(request: pytest.FixtureRequest, launcher: Launcher) -> int:
    """Of the transactions of clients that know both."""
    chosen: int = request.param
    if chosen == EPOCH_BUMP_FROM and not has_features(launcher.kind):
        pytest.skip(NO_FEATURES)
    return chosen


@pytest.fixture
def place(launcher: Launcher, version: int) -> Iterator[OneBroker]:
    keys = {**OVERRIDES, **WITHOUT_FEATURES} if version < EPOCH_BUMP_FROM else OVERRIDES
    one = OneBroker(launcher.unstarted(**{key.replace(".", "_"): value for key, value in keys.items()}))
    with started(one):
        yield one


@pytest.mark.wide
def test_exactly_once(seed: int, place: OneBroker, version: int) -> None:
    soak = Soak(place, seed, RECORDS // KINDER[place.broker.kind], groups=False, version=version, say=print)
    assert soak.run(KILLS // KINDER[place.broker.kind], ZOMBIES) == []
    assert soak.numbers.zombies.total() == ZOMBIES // KINDER[place.broker.kind]


@pytest.mark.wide
def test_exactly_once_by_a_group(seed: int, place: OneBroker, version: int) -> None:
    """The copiers share the partitions; who has lost his may not commit what he copied of it."""
    records = RECORDS // 2 // KINDER[place.broker.kind]
    assert Soak(place, seed, records, groups=True, version=version, say=print).run(1, 0) == []


@pytest.fixture
def replicated(launcher: Launcher, version: int) -> Iterator[Replicated]:
    kinds = [launcher.kind] * 3
    properties = Replicated.PROPERTIES
    name = f"copied-{version}"
    three = Replicated(Cluster(launcher.directory / name, launcher.zookeeper(name), kinds, properties))
    with started(three):
        yield three


@pytest.mark.wide
def test_exactly_once_in_a_cluster(seed: int, replicated: Replicated, launcher: Launcher, version: int) -> None:
    """Who is killed coordinates transactions or leads what is copied; another replica goes on with what it knew."""
    records = RECORDS // 4 // KINDER[launcher.kind]
    assert Soak(replicated, seed, records, groups=False, version=version, say=print).run(1, 1) == []
