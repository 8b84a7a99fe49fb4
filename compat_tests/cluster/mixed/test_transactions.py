"""kpybroker and Kafka 3.9.1 in one cluster, and transactions of version 2, which that Kafka does not know.

Nothing here depends on `--broker`: the cluster is mixed by its nature. Ours must not be in the place of Kafka 3.9.
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
from compat_tests.support.transactional import Transactional
from compat_tests.support.waiting import eventually

OURS, OTHER, KAFKA = 1, 2, 3
STATES = "__transaction_state"


@pytest.fixture
def cluster(launcher: Launcher, name: str) -> Iterator[Cluster]:
    if not has_features("kpybroker"):
        pytest.skip(NO_FEATURES)
    kinds = ["kpybroker", "kpybroker", "kafka"]
    keys = {**OVERRIDES, "min.insync.replicas": "2"}
    with started(Cluster(launcher.directory / name, launcher.zookeeper(name), kinds, keys)) as mixed:
        yield mixed


@pytest.mark.wide
@pytest.mark.parametrize("libraries", LOADS)
def test_kafka_3_9_leaves_comes_too_early_and_comes_back(cluster: Cluster, libraries: tuple[str, ...]) -> None:
    """It keeps version 2 out, is kept out by it, and is let in after a downgrade: then it coordinates transactions
    whose epochs version 2 has left behind, among them one that is open; and what it leaves goes on in version 2.
    """
    ours = CommandLine(",".join(cluster.brokers[broker_id].bootstrap for broker_id in (OURS, OTHER)))
    create_topic(cluster.bootstrap, TOPIC, 2, replicas=3)
    with Load(cluster.bootstrap, 2, libraries) as load:
        load.goes_on("with a Kafka 3.9")
        refused = ours.run("feature", "upgrade", "transaction.version=2", code=None)
        assert refused.code != 0
        assert f"Broker {KAFKA} does not support this feature" in refused.out + refused.err
        load.is_of_version(0)

        cluster.brokers[KAFKA].stop()
        cluster.wait_until_whole({OURS, OTHER})
        ours.run("feature", "upgrade", "transaction.version=2")
        each_starts_again(cluster, killed=False)
        load.goes_on("in version 2")
        load.is_of_version(2)
        with pytest.raises(RuntimeError):
            cluster.brokers[KAFKA].launch()
        assert "feature compatibility checks failed" in cluster.brokers[KAFKA].service.output()
        load.goes_on("after a Kafka 3.9 was kept out")

        left = Transactional("java-4.3.1", cluster.bootstrap, "left", timeout_ms=900_000)
        try:
            left.do("init")
            left.do("begin")
            left.do("produce", TOPIC, 0, ["left.0"])
            ours.run("feature", "downgrade", "transaction.version=0")
            each_starts_again(cluster, killed=False)
            load.renew_franz()
            load.goes_on("after the downgrade")
            load.is_of_version(0)
            cluster.brokers[KAFKA].start()
            cluster.wait_until_whole()
            for topic in (STATES, "__consumer_offsets", TOPIC):
                cluster.lead_all(topic, KAFKA)
            load.goes_on("with Kafka 3.9 as coordinator and leader")
            load.is_of_version(0)
            left.do("produce", TOPIC, 0, ["left.1"])
            left.do("commit")
        finally:
            left.kill()

        for topic in (STATES, "__consumer_offsets", TOPIC):
            cluster.lead_all(topic, OURS)
        load.goes_on("with what Kafka 3.9 has left")
        cluster.brokers[KAFKA].stop()
        cluster.wait_until_whole({OURS, OTHER})
        eventually(lambda: cluster.live() == {OURS, OTHER}, "Kafka 3.9 is gone")
        ours.run("feature", "upgrade", "transaction.version=2")
        each_starts_again(cluster, killed=True)
        load.goes_on("in version 2 again")
        load.is_of_version(2)
        assert load.finish() == []
        values = [stored.record for stored in load.history.committed[TOPIC, 0] if stored.record]
        assert [one.number for one in values if one.producer == "left"] == [0, 1]
