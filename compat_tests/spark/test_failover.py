"""A streaming query over failovers of a cluster: leaders are killed and stopped, and each row comes out once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.spark.support import Stream, records, write
from compat_tests.support.cluster import Cluster

PARTITIONS = 3
QUICK = {"kafka.request.timeout.ms": "4000", "kafka.default.api.timeout.ms": "5000"}
"""Java's AdminClient, which lists topics and offsets for Spark's driver, insists on a leader that it has once found
until its call times out, however long everybody has known of the next one: a minute by default.
"""


@pytest.fixture
def cluster(launcher: Launcher, name: str) -> Iterator[Cluster]:
    """Comes before `stream` in a test's arguments: a query that outlives its brokers takes a minute to stop."""
    made = Cluster(launcher.directory / name, launcher.zookeeper(name), [launcher.kind] * 3)
    made.start()
    yield made
    made.close()


@pytest.mark.wide
def test_rows_are_right_after_leaders_died_and_stopped(cluster: Cluster, stream: Stream, name: str) -> None:
    cluster.create(name, "1:2:3,2:3:1,3:1:2", "--config", "min.insync.replicas=2")
    everyone = cluster.bootstrap
    expected = [one for part in range(PARTITIONS) for one in records(name, part, 40)]
    write(everyone, expected)
    stream.start(everyone, follow=True, subscribe=name, startingOffsets="earliest", **QUICK)
    stream.has(expected)
    for strike, victim, first in (("kill", 1, 40), ("stop", 2, 80)):
        getattr(cluster.brokers[victim], strike)()
        more = [one for part in range(PARTITIONS) for one in records(name, part, 40, first=first)]
        write(everyone, more)
        expected += more
        stream.has(expected)
        assert {cluster.state(name, part).leader for part in range(PARTITIONS)}.isdisjoint({victim})
        cluster.brokers[victim].start()
        for part in range(PARTITIONS):
            cluster.wait_for_isr(name, {1, 2, 3}, part)
