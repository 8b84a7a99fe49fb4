"""Clusters of three brokers on real ZooKeeper, of whatever kind `--broker` names; or of kinds that a test chooses.

With `--security sasl_ssl` they are secured (`compat_tests.security.secured`), and those of three brokers that a test
does not choose are mixed: two of the kind that `--broker` names, and one of real Kafka.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.secured import Secured, prepare_with
from compat_tests.support.cluster import Cluster

MakeCluster = Callable[..., Cluster]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def all_are_secured(request: pytest.FixtureRequest) -> bool:
    chosen: str = request.config.getoption("--security")
    return chosen == "sasl_ssl"


@pytest.fixture(scope="module")
def secured(all_are_secured: bool, tmp_path_factory: pytest.TempPathFactory) -> Secured | None:
    """None: clusters are open. A module may decide this for itself."""
    return Secured(tmp_path_factory.mktemp("secured")) if all_are_secured else None


@contextmanager
def _maker(launcher: Launcher, secured: Secured | None) -> Iterator[MakeCluster]:
    made: list[Cluster] = []

    def make(*kinds: str, **properties: str) -> Cluster:
        name = f"cluster-{next(_numbers)}"
        keys = {key.replace("_", "."): value for key, value in properties.items()}
        third = launcher.kind if secured is None else "kafka"
        chosen = list(kinds) or [launcher.kind, launcher.kind, third]
        zookeeper = launcher.zookeeper(name)
        prepare = prepare_with(secured, zookeeper)
        made.append(Cluster(launcher.directory / name, zookeeper, chosen, keys, prepare))
        return made[-1]

    try:
        yield make
    finally:
        for cluster in made:
            cluster.close()


@pytest.fixture(scope="module")
def any_cluster(launcher: Launcher, secured: Secured | None) -> Iterator[MakeCluster]:
    """Makes clusters for a module: `any_cluster("kpybroker", "kafka", ..., some_key="value")`, not started yet."""
    with _maker(launcher, secured) as make:
        yield make


@pytest.fixture(scope="module")
def shared_cluster(any_cluster: MakeCluster) -> Cluster:
    cluster = any_cluster()
    cluster.start()
    return cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The module's cluster, whole: a test may stop and kill brokers."""
    shared_cluster.heal()
    return shared_cluster


@pytest.fixture
def own_cluster(launcher: Launcher, secured: Secured | None) -> Iterator[MakeCluster]:
    """The same for one test."""
    with _maker(launcher, secured) as make:
        yield make
