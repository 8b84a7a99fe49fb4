"""`transaction.version` rises and falls while stock clients of both versions write transactions, and brokers die.

Nothing is lost, nothing is there twice, nothing hangs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.eos.load import LOADS, TOPIC, Load, each_starts_again
from compat_tests.eos.place import OVERRIDES
from compat_tests.support.cluster import Cluster
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.serving import NO_FEATURES, has_features
from compat_tests.support.quick import create_topic
from compat_tests.support.services import started

LEVELS = ((2, "upgrade"), (0, "downgrade"), (2, "upgrade"), (1, "downgrade"), (2, "upgrade"))


@pytest.fixture
def cluster(launcher: Launcher, name: str) -> Iterator[Cluster]:
    """Nothing is finalized in it."""
    if not has_features("kpybroker"):
        pytest.skip(NO_FEATURES)
    kinds = ["kpybroker"] * 3
    keys = {**OVERRIDES, "min.insync.replicas": "2"}
    with started(Cluster(launcher.directory / name, launcher.zookeeper(name), kinds, keys)) as three:
        yield three


@pytest.mark.wide
@pytest.mark.parametrize("libraries", LOADS)
def test_the_level_falls_and_rises_under_load(cluster: Cluster, libraries: tuple[str, ...]) -> None:
    """Some change their version when they have connected again; franz-go does not go back before it starts again."""
    create_topic(cluster.bootstrap, TOPIC, 3, replicas=3)
    with Load(cluster.bootstrap, 3, libraries) as load:
        load.goes_on("before anything is finalized")
        load.is_of_version(0)
        for number, (level, how) in enumerate(LEVELS):
            CommandLine(cluster.bootstrap).run("feature", how, f"transaction.version={level}")
            load.goes_on(f"with level {level} just set")
            each_starts_again(cluster, killed=number % 2 == 0)
            if level < 2:
                load.renew_franz()
            load.goes_on(f"at level {level}")
            load.is_of_version(2 if level == 2 else 0)
        assert load.finish() == []
