"""A cluster of two brokers on real ZooKeeper, of the kind that `--broker` names, and the tools of old against it.

A test marked `on_dev` also runs against `kpybroker dev`, on the tree that it serves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.field.clusters import DevCluster, FieldCluster
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
PLACES = ("zookeeper", "dev")
"""Where the tree is: in a real ZooKeeper, or in the first broker."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Kafka needs a ZooKeeper: there is one place for it."""
    is_ours = metafunc.config.getoption("--broker") == "kpybroker"
    if metafunc.definition.get_closest_marker("on_dev") and is_ours:
        places = [PLACES[0], pytest.param(PLACES[1], marks=pytest.mark.wide)]
        metafunc.parametrize("place", places, indirect=True)


@pytest.fixture(scope="session")
def make_cluster(launcher: Launcher) -> Iterator[MakeCluster]:
    """Starts clusters, each on a chroot of its own: `make_cluster(kind, brokers=2)`."""
    made: list[Cluster] = []

    def make(kind: str, brokers: int = 2) -> Cluster:
        name = f"field-{kind}-{next(_numbers)}"
        properties = PROPERTIES if brokers > 1 else {"offsets.topic.replication.factor": "1"}
        made.append(FieldCluster(launcher.directory / name, launcher.zookeeper(name), [kind] * brokers, properties))
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


@pytest.fixture(scope="session")
def dev_cluster(launcher: Launcher) -> Iterator[Cluster]:
    made = DevCluster(launcher.directory / "field-dev", PROPERTIES)
    yield made
    made.close()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """One of PLACES."""
    found: str = getattr(request, "param", PLACES[0])
    return found


@pytest.fixture
def cluster(request: pytest.FixtureRequest, place: str) -> Cluster:
    """One that the session shares, whole: a test has its own topics and groups, and may stop broker 2."""
    found: Cluster = request.getfixturevalue("dev_cluster" if place == "dev" else "shared_cluster")
    found.heal()
    return found


@pytest.fixture(params=[VERSIONS[0], pytest.param(VERSIONS[1], marks=pytest.mark.wide)])
def era(request: pytest.FixtureRequest, cluster: Cluster) -> Era:
    """The tools, once from each set of jars; `make test` takes the oldest."""
    return Era(request.param, cluster)
