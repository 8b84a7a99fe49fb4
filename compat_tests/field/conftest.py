"""A cluster of two brokers on real ZooKeeper, of the kind that `--broker` names, and the tools of old against it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.field.era import VERSIONS, Era
from compat_tests.support.cluster import Cluster

MakeCluster = Callable[..., Cluster]

PROPERTIES = {
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}
_numbers = itertools.count()


@pytest.fixture(scope="session")
def make_cluster(launcher: Launcher) -> Iterator[MakeCluster]:
    """Starts clusters, each on a chroot of its own: `make_cluster(kind, brokers=2)`."""
    made: list[Cluster] = []

    def make(kind: str, brokers: int = 2) -> Cluster:
        name = f"field-{kind}-{next(_numbers)}"
        properties = PROPERTIES if brokers > 1 else {"offsets.topic.replication.factor": "1"}
        made.append(Cluster(launcher.directory / name, launcher.zookeeper(name), [kind] * brokers, properties))
        made[-1].start()
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture(scope="session")
def shared_cluster(launcher: Launcher, make_cluster: MakeCluster) -> Cluster:
    return make_cluster(launcher.kind)


@pytest.fixture(scope="session")
def other_cluster(launcher: Launcher, make_cluster: MakeCluster) -> Cluster:
    """One more, of one broker of the same kind: where things are copied to."""
    return make_cluster(launcher.kind, 1)


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The session's cluster, whole: a test has its own topics and groups, and may stop brokers."""
    shared_cluster.heal()
    return shared_cluster


@pytest.fixture(params=VERSIONS)
def era(request: pytest.FixtureRequest, cluster: Cluster) -> Era:
    """The tools, once from each set of jars."""
    return Era(request.param, cluster)
