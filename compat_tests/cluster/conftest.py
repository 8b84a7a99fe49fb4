"""Clusters of three brokers on real ZooKeeper, of whatever kind `--broker` names; or of kinds that a test chooses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster

MakeCluster = Callable[..., Cluster]
_numbers = itertools.count()


def _make(launcher: Launcher, kinds: list[str], properties: dict[str, str]) -> Cluster:
    name = f"cluster-{next(_numbers)}"
    return Cluster(launcher.directory / name, launcher.zookeeper(name), kinds, properties)


@pytest.fixture(scope="module")
def shared_cluster(launcher: Launcher) -> Iterator[Cluster]:
    cluster = _make(launcher, [launcher.kind] * 3, {})
    cluster.start()
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The module's cluster, whole: a test may stop and kill brokers."""
    shared_cluster.heal()
    return shared_cluster


@pytest.fixture
def own_cluster(launcher: Launcher) -> Iterator[MakeCluster]:
    """Makes clusters for one test: `own_cluster("kpybroker", "kafka", ..., some_key="value")`, not started yet."""
    made: list[Cluster] = []

    def make(*kinds: str, **properties: str) -> Cluster:
        keys = {key.replace("_", "."): value for key, value in properties.items()}
        made.append(_make(launcher, list(kinds) or [launcher.kind] * 3, keys))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()
