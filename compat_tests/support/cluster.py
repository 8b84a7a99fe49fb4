"""A cluster of broker processes on one ZooKeeper: who leads what is read from the tree, where it is decided."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import ClusterMetadata
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat

from compat_tests.support.quick import admin_client
from compat_tests.support.services import START_DEADLINE_S, Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from compat_tests.support.zookeeper.sessions import end_session

CHANGE_DEADLINE_S = 120.0

PROPERTIES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
    "replica.lag.time.max.ms": "5000",
}
"""Leaders stay where a test has put them. A broker that `kill` ends is noticed at once (`sessions`)."""


Prepare = Callable[[Broker], None]


def leave_open(_: Broker) -> None:
    """A `Prepare` that changes nothing."""


class PartitionState(NamedTuple):
    leader: int
    isr: set[int]
    leader_epoch: int


class Cluster:
    """Brokers 1 to n, each of its own kind (`kafka` or `kpybroker`), none started yet."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        kinds: Sequence[str],
        properties: dict[str, str] | None = None,
        prepare: Prepare = leave_open,
    ) -> None:
        """`prepare` is called with each new broker, and may change its configuration."""
        self.zookeeper = zookeeper
        self._directory = directory
        self._properties = PROPERTIES | (properties or {})
        self._prepare = prepare
        self.brokers: dict[int, Broker] = {}
        for kind in kinds:
            self.add(kind)
        address, _, chroot = zookeeper.partition("/")
        with_root = KazooClient(address)
        with_root.start(timeout=START_DEADLINE_S)
        with_root.ensure_path(f"/{chroot}")
        with_root.stop()
        with_root.close()
        self.tree = KazooClient(zookeeper)
        self.tree.start(timeout=START_DEADLINE_S)

    def add(self, kind: str, **overrides: str) -> Broker:
        """One more broker; keys of `overrides` have `_` for `.`."""
        broker_id = len(self.brokers) + 1
        keys = {key.replace("_", "."): value for key, value in overrides.items()}
        own = {"broker.id": str(broker_id), **self._properties, **keys}
        broker = Broker(kind, self._directory / f"broker-{broker_id}", self.zookeeper, own)
        self._prepare(broker)
        self.brokers[broker_id] = broker
        return broker

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()

    def heal(self) -> None:
        """All brokers run and are registered; those that were down are started."""
        for broker in self.brokers.values():
            if not broker.service.running:
                broker.start()
        self.wait(lambda: self.live() == set(self.brokers), "all brokers are registered")

    def close(self) -> None:
        self.tree.stop()
        self.tree.close()
        for broker in self.brokers.values():
            broker.service.kill()

    # --- clients

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values() if broker.service.running)

    @property
    def tools(self) -> Tools:
        return Tools("3.9.1", self.bootstrap)

    def create(self, topic: str, assignment: str, *arguments: str) -> None:
        """`assignment` as kafka-topics has it: `1:2,2:3` is partition 0 on brokers 1 and 2, partition 1 on 2 and 3.

        The topic is known to every broker that runs then: the next tool may ask any of them."""
        self.tools.run("topics", "--create", "--topic", topic, "--replica-assignment", assignment, *arguments)
        for broker_id, broker in self.brokers.items():
            if broker.service.running:
                self.wait(lambda: topic in self.metadata(broker_id).topics, f"{topic} is known to {broker_id}")

    def metadata(self, broker_id: int) -> ClusterMetadata:
        """What this one broker says to its clients."""
        admin = admin_client(self.brokers[broker_id].bootstrap)
        return admin.list_topics(timeout=CHANGE_DEADLINE_S)

    def controller_seen_by(self, broker_id: int) -> int:
        found: int = self.metadata(broker_id).controller_id
        return found

    # --- the tree

    def registration(self, broker_id: int) -> ZnodeStat:
        _, stat = self.tree.get(f"/brokers/ids/{broker_id}")
        return stat

    def expire(self, broker_id: int) -> None:
        """End the broker's session."""
        end_session(self.zookeeper, f"/brokers/ids/{broker_id}")

    def json(self, path: str) -> Any:
        data, _ = self.tree.get(path)
        return json.loads(data)

    def live(self) -> set[int]:
        return {int(name) for name in self.tree.get_children("/brokers/ids")}

    def controller(self) -> int | None:
        """None while there is none."""
        if self.tree.exists("/controller") is None:
            return None
        broker_id: int = self.json("/controller")["brokerid"]
        return broker_id

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        found = self.json(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return PartitionState(found["leader"], set(found["isr"]), found["leader_epoch"])

    def replicas(self, topic: str, partition: int = 0) -> list[int]:
        found: list[int] = self.json(f"/brokers/topics/{topic}")["partitions"][str(partition)]
        return found

    def wait(self, condition: Callable[[], object], what: str, deadline_s: float = CHANGE_DEADLINE_S) -> None:
        eventually(condition, what, deadline_s)

    def wait_for_leader(self, topic: str, leader: int, partition: int = 0) -> None:
        """In the tree; and that broker, if it runs, knows: the controller has had it lead before it says so to it."""
        self.wait(lambda: self.state(topic, partition).leader == leader, f"{topic}-{partition} is led by {leader}")
        if leader in self.brokers and self.brokers[leader].service.running:
            self.wait(lambda: self._seen_by(leader, topic, partition) == leader, f"{leader} knows that it leads")

    def _seen_by(self, broker_id: int, topic: str, partition: int) -> int | None:
        """Who leads as far as this broker knows; None: it does not know the partition."""
        found = self.metadata(broker_id).topics.get(topic)
        return found.partitions[partition].leader if found is not None and partition in found.partitions else None

    def wait_for_isr(self, topic: str, isr: set[int], partition: int = 0) -> None:
        self.wait(lambda: self.state(topic, partition).isr == isr, f"the ISR of {topic}-{partition} is {isr}")

    def wait_until_whole(self, isr: set[int] | None = None) -> None:
        """The ISR of every partition is of `isr`, or of all brokers."""
        wanted = isr or set(self.brokers)

        def is_whole() -> bool:
            for topic in self.tree.get_children("/brokers/topics"):
                for partition in self.tree.get_children(f"/brokers/topics/{topic}/partitions"):
                    assert self.state(topic, int(partition)).isr == wanted, f"{topic}-{partition}"
            return True

        self.wait(is_whole, f"the ISR of every partition is {wanted}")

    # --- what an administrator does

    def lead_all(self, topic: str, leader: int) -> None:
        """Every partition of a topic that has replicas everywhere is led by this broker."""
        partitions = range(len(self.json(f"/brokers/topics/{topic}")["partitions"]))
        order = [leader, *(i for i in self.brokers if i != leader)]
        wanted = [{"topic": topic, "partition": i, "replicas": order} for i in partitions]
        with tempfile.TemporaryDirectory() as directory:
            plan = Path(directory, "plan.json")
            plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
            self.tools.run("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
        self.wait(lambda: all(self.replicas(topic, i) == order for i in partitions), "new order")
        self.tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
        for partition in partitions:
            self.wait_for_leader(topic, leader, partition)
