"""Real Kafka 3.9.1 and kpybroker in one cluster, each with a listener for logins next to the plain one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster
from tests.support.network.ports import free_port

Address = tuple[str, int]
KINDS = {1: "kafka", 2: "kpybroker"}
COMMON = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "connection.failed.authentication.delay.ms": "0",
}


class Pair:
    """One broker of each kind on one tree. `sasl` are the addresses of their SASL listeners."""

    def __init__(self, cluster: Cluster, host: str) -> None:
        self.cluster = cluster
        self.sasl: dict[int, Address] = {}
        for number, broker in cluster.brokers.items():
            port = free_port()
            self.sasl[number] = (host, port)
            plain = f"PLAINTEXT://127.0.0.1:{broker.port},SASL://"
            broker.configure({"listeners": f"{plain}127.0.0.1:{port}", "advertised.listeners": f"{plain}{host}:{port}"})

    def plain(self, number: int) -> Address:
        return "127.0.0.1", self.cluster.brokers[number].port

    def other(self, number: int) -> Address:
        return self.sasl[3 - number]


@contextmanager
def running_pair(
    launcher: Launcher, name: str, properties: Mapping[str, str], host: str = "127.0.0.1"
) -> Iterator[Pair]:
    """`properties` are those of both; the listener for logins is called SASL, and clients reach it at `host`."""
    directory, keys = launcher.directory / name, COMMON | dict(properties)
    cluster = Cluster(directory, launcher.zookeeper(name), list(KINDS.values()), keys)
    both = Pair(cluster, host)
    try:
        cluster.start()
        yield both
    finally:
        cluster.close()
