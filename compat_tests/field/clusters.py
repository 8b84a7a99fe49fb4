"""Where the tools of old run: brokers on a real ZooKeeper, or on the tree that `kpybroker dev` serves."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import NewTopic

from compat_tests.support import quick
from compat_tests.support.cluster import PROPERTIES, Cluster
from compat_tests.support.services import Broker, kpybroker_executable
from tests.support.network.ports import free_port


class FieldCluster(Cluster):
    """Its topics are made without a JVM: the tools that are tested here start enough of them."""

    def create(self, topic: str, assignment: str, *arguments: str) -> None:
        """As in `Cluster`; of `arguments`, `--config KEY=VALUE` only."""
        replicas = [[int(broker) for broker in one.split(":")] for one in assignment.split(",")]
        config = dict(setting.split("=", 1) for setting in arguments[1::2])
        assert set(arguments[::2]) <= {"--config"}, arguments
        admin = quick.admin_client(self.bootstrap)
        made = admin.create_topics(
            [NewTopic(topic, len(replicas), replica_assignment=replicas, config=config)],
            operation_timeout=quick.DEADLINE_S,
            request_timeout=quick.DEADLINE_S,
        )
        made[topic].result(timeout=quick.DEADLINE_S)


class DevCluster(FieldCluster):
    """Two brokers: `kpybroker dev --zookeeper-port`, and one that joins its tree. Started.

    Broker 1 is the tree: it must not be stopped.
    """

    def __init__(self, directory: Path, properties: dict[str, str]) -> None:
        tree_port = free_port()
        first = _dev_broker(directory / "broker-1", tree_port, PROPERTIES | properties | {"broker.id": "1"})
        first.start()
        try:
            super().__init__(directory, f"127.0.0.1:{tree_port}", (), properties)
        except BaseException:
            first.service.kill()
            raise
        self.brokers[1] = first
        self.add("kpybroker").start()


def _dev_broker(directory: Path, tree_port: int, properties: dict[str, str]) -> Broker:
    """`kpybroker dev` with these keys, not started."""
    broker = Broker("kpybroker", directory, None, {})
    release = "kpybroker.kafka.version"  # its place among releases is that of all brokers of this run
    properties |= {release: broker.properties[release]} if release in broker.properties else {}
    overrides = [word for key, value in properties.items() for word in ("--override", f"{key}={value}")]
    broker.service.command = [
        *(str(kpybroker_executable()), "dev", "--port", str(broker.port), "--data-dir", str(broker.data_dir)),
        *("--zookeeper-port", str(tree_port), "--log-level", "INFO", *overrides),
    ]
    broker.configure(properties)
    return broker
