"""Brokers in the place of a release of Kafka: from the test kit and from the command line, alone and as a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.broker.requests.served.kafka_releases import RELEASES, capped, levels_of, versions_of
from kpybroker.cli import main
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.config.keys.own import KAFKA_VERSIONS
from kpybroker.core.features import SUPPORTED
from kpybroker.core.features import of_release as features_of_release
from kpybroker.testing import Broker, BrokerRelease, Cluster, StartError
from tests.support.programs.samples import dev_broker


def served_by(bootstrap: str) -> dict[int, tuple[int, int]]:
    with WireCluster(load(Connection(bootstrap, None, (), 60.0))) as wire:
        return dict(wire.any().versions)


def of_release(release: str) -> dict[int, tuple[int, int]]:
    """As it is listed to a client that is neither Java nor librdkafka."""
    features = features_of_release(SUPPORTED, levels_of(release))
    listed = listed_for(capped(SERVED, versions_of(release)), "", features)
    return {int(key): versions for key, versions in listed.items()}


def test_the_releases_are_those_of_the_table_and_of_the_command_line() -> None:
    assert main.KAFKA_VERSIONS == KAFKA_VERSIONS
    assert set(KAFKA_VERSIONS) <= set(RELEASES)


@pytest.mark.parametrize("release", ["3.9", "4.0"])
def test_a_broker_of_the_kit_serves_what_the_release_did(release: BrokerRelease) -> None:
    with Broker(kafka_version=release, in_thread=True, topics=["t"]) as broker:
        assert served_by(broker.bootstrap_servers) == of_release(release)
        broker.produce("t", ["a"])
        assert [record.text for record in broker.records("t")] == ["a"]


def test_a_cap_counts_while_it_is_held_and_the_release_after_it() -> None:
    with Broker(kafka_version="4.0", in_thread=True) as broker:
        broker.cap_versions(as_version="2.4")
        assert served_by(broker.bootstrap_servers) == of_release("2.4")
        broker.cap_versions()
        assert served_by(broker.bootstrap_servers) == of_release("4.0")


def test_brokers_of_a_release_without_zookeeper_reach_each_other_all_the_same() -> None:
    with Cluster(3, kafka_version="4.3", in_thread=True, topics={"t": 1}) as cluster:
        cluster.produce("t", ["a"])
        leader = cluster.topics()["t"].partitions[0].leader
        assert leader is not None
        cluster[leader].stop()  # which hands over, by the controller
        cluster.produce("t", ["b"])
        assert [record.text for record in cluster.records("t")] == ["a", "b"]


def test_a_release_that_is_not_in_the_list_is_refused() -> None:
    old: Any = "2.8"
    with pytest.raises(StartError, match=r"kpybroker\.kafka\.version"):
        Broker(kafka_version=old).start()


def test_dev_serves_what_the_release_did(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data", "--kafka-version", "3.9") as broker:
        assert served_by(broker.bootstrap) == of_release("3.9")
