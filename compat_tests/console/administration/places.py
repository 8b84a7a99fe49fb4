"""Clusters of three brokers that an administrator has: ours, Kafka 3.9.1 on ZooKeeper, Kafka 4.3.1 in KRaft mode.

All have an authorizer to which every client is the super user, take transactions that no coordinator knows, and keep
what is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient

from compat_tests.console.conftest import START_S
from compat_tests.support import cluster as old
from compat_tests.support.command_line import CommandLine
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.quick import admin_client
from compat_tests.support.services import ZooKeeper
from compat_tests.support.waiting import eventually
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from kpybroker.testing import Cluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import BatchFields, build_batch

KEYS: Final = {
    "super.users": "User:ANONYMOUS",
    "transaction.partition.verification.enable": "false",
    "log.retention.ms": "-1",
    "auto.leader.rebalance.enable": "false",
}
OLD_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
NEW_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OURS: Final = "ours"
HOUR_MS: Final = 3_600_000
LONG_AGO_MS: Final = 1_000_000_000_000


class Place(NamedTuple):
    """A console that may change a cluster, the cluster, and a schema registry on it."""

    kind: str
    address: str
    bootstrap: str
    registry: str

    @property
    def cli(self) -> CommandLine:
        return CommandLine(self.bootstrap)

    @property
    def admin(self) -> AdminClient:
        """Keep it in a variable while its futures are waited for."""
        return admin_client(self.bootstrap)

    @contextmanager
    def wire(self) -> Iterator[WireCluster]:
        with WireCluster(Settings(self.bootstrap, {}, START_S, "the test")) as wire:
            yield wire

    def replicas(self, topic: str) -> tuple[list[int], int]:
        """Of partition 0, and its leader."""
        partition = self.admin.list_topics(topic, timeout=START_S).topics[topic].partitions[0]
        return list(partition.replicas), partition.leader

    def reassign(self, topic: str, replicas: list[int]) -> None:
        """Give partition 0 these replicas, and wait until it has them."""
        requested = AlterPartitionReassignmentsRequest
        partition = requested.ReassignablePartition(partition_index=0, replicas=replicas)
        topics = [requested.ReassignableTopic(name=topic, partitions=[partition])]
        with self.wire() as wire:
            request = requested(timeout_ms=60_000, topics=topics)
            response = wire.broker(wire.controller_id).request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)
        assert (response.error_code, response.responses[0].partitions[0].error_code) == (0, 0), response
        eventually(lambda: self.replicas(topic)[0] == replicas, f"{topic} is on {replicas}")

    def write_hanging(self, topic: str) -> None:
        """Of a transaction long ago, by a producer that no coordinator knows."""
        batch = BatchFields(producer_id=4711, producer_epoch=0, base_sequence=0, is_transactional=True)
        data = ProduceRequest.PartitionProduceData(
            index=0, records=bytes(build_batch([(None, b"hanging", LONG_AGO_MS)], batch))
        )
        topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(transactional_id="no-one", acks=-1, timeout_ms=5000, topic_data=topics)
        _, leader = self.replicas(topic)
        with self.wire() as wire:
            response = wire.broker(leader).request_in(ApiKey.PRODUCE, request, 9)
        assert response.responses[0].partition_responses[0].error_code == 0


@contextmanager
def _ours(_: Path) -> Iterator[str]:
    with Cluster(3, config={**KEYS, "authorizer.class.name": OLD_AUTHORIZER}, start_timeout=START_S) as found:
        yield found.bootstrap_servers


@contextmanager
def _zookeeper(directory: Path) -> Iterator[str]:
    zookeeper = ZooKeeper(directory / "zookeeper")
    try:
        zookeeper.start()
        keys = {**KEYS, "authorizer.class.name": OLD_AUTHORIZER}
        found = old.Cluster(directory, f"{zookeeper.connect}/three", ["kafka"] * 3, keys)
        try:
            found.start()
            yield found.bootstrap
        finally:
            found.close()
    finally:
        zookeeper.stop()


@contextmanager
def _kraft(directory: Path) -> Iterator[str]:
    """The first is the controller too."""
    with ExitStack() as stack:
        first = KraftBroker(directory / "broker-1", {**KEYS, "authorizer.class.name": NEW_AUTHORIZER})
        stack.callback(first.close)
        first.start()
        keys = {**KEYS, "authorizer.class.name": NEW_AUTHORIZER}
        for node in (2, 3):
            broker = KraftBroker(directory / f"broker-{node}", keys, node, controller=first)
            stack.callback(broker.close)
            broker.start()
        admin = admin_client(first.bootstrap)
        eventually(lambda: len(admin.list_topics(timeout=START_S).brokers) == 3, "three brokers")
        yield first.bootstrap


CLUSTERS: Final[Mapping[str, Callable[[Path], AbstractContextManager[str]]]] = {
    OURS: _ours,
    "3.9": _zookeeper,
    "4.3": _kraft,
}
