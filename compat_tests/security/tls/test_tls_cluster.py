"""Brokers that talk mutual TLS with each other, kpybroker and Apache Kafka in one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import fill, read
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port

VALUES = [f"value {number}" for number in range(300)]


@pytest.fixture(scope="module")
def cluster(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The first broker, and so the controller, is of the kind under test. Clients use the plain listener."""
    directory: Path = tmp_path_factory.mktemp("tls-cluster")
    authority = Authority(directory / "certificates")
    keys = {
        "inter.broker.listener.name": "BETWEEN",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BETWEEN:SSL",
        "listener.name.between.ssl.client.auth": "required",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    kinds = [launcher.kind, "kafka", launcher.kind]
    made = Cluster(directory / "brokers", launcher.zookeeper("tls-cluster"), kinds, keys)
    for broker_id, broker in made.brokers.items():
        _, store = authority.issue(f"broker-{broker_id}")
        listeners = f"PLAINTEXT://127.0.0.1:{broker.port},BETWEEN://127.0.0.1:{free_port()}"
        broker.configure({"listeners": listeners, "ssl.keystore.location": str(store)})
    made.start()
    yield made
    made.close()


@pytest.mark.parametrize("leader", [1, 2, 3])
def test_records_are_replicated_over_tls_with_each_leader(cluster: Cluster, leader: int, name: str) -> None:
    replicas = [leader, *(other for other in (1, 2, 3) if other != leader)]
    cluster.create(name, ":".join(map(str, replicas)))
    cluster.wait_for_leader(name, leader)
    fill(cluster.bootstrap, name, VALUES)
    cluster.wait_for_isr(name, {1, 2, 3})
    assert [message.value().decode() for message in read(cluster.bootstrap, [(name, 0)], len(VALUES))] == VALUES


def test_another_leader_has_every_record_after_a_failure(cluster: Cluster, name: str) -> None:
    cluster.create(name, "3:2:1", "--config", "min.insync.replicas=2")
    cluster.wait_for_isr(name, {1, 2, 3})
    fill(cluster.bootstrap, name, VALUES)
    cluster.brokers[3].kill()
    cluster.wait_for_leader(name, 2)
    assert [message.value().decode() for message in read(cluster.bootstrap, [(name, 0)], len(VALUES))] == VALUES
    fill(cluster.bootstrap, name, ["after"])
    cluster.heal()
    cluster.wait_for_isr(name, {1, 2, 3})
