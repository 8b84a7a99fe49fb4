"""Three brokers and a ZooKeeper, all of whose connections go through proxies; and every way to hurt them.

    clients -> CLIENTS listener of a broker      brokers -> PEERS listener of a broker      broker -> ZooKeeper

Whatever hurts may be said to a process in any state: to resume one that was killed, or to kill it twice, changes
nothing. How long a process stood still or was dead goes into the history.
"""

from __future__ import annotations

import base64
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from compat_tests.eos.transaction_log import have_version_2
from compat_tests.faults.groups.applications import Application
from compat_tests.faults.groups.history import SESSION_MS
from compat_tests.faults.history import Absence, History
from compat_tests.faults.proxy import CLIENTS, ZOOKEEPER, Network
from compat_tests.support.cluster import PROPERTIES, Cluster
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.serving import has_features, serves_groups
from compat_tests.support.quick import admin_client
from compat_tests.support.services import Broker, ZooKeeper, write_properties
from compat_tests.support.waiting import eventually
from compat_tests.support.zookeeper.sessions import end_session
from kpybroker.core.features import GROUP_VERSION
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch
from tests.support.network.ports import free_port

T = TypeVar("T")

CHROOT = "faults"
BROKERS = (1, 2, 3)
MAIN = "main"
SPREAD = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
"""The replicas of the main topic's partitions, the preferred leader first."""
STOP_S = 25.0
RECOVERY_S = 180.0
LOOK_S = 2.0
NO_LOG_DIRS = "all log dirs"
"""In what both brokers say when their last log directory has failed."""

QUICK = {
    **PROPERTIES,
    "zookeeper.connection.timeout.ms": "10000",
    "replica.lag.time.max.ms": "2500",
    "replica.socket.timeout.ms": "2500",
    "controller.socket.timeout.ms": "2500",
    "request.timeout.ms": "2500",
    "replica.fetch.backoff.ms": "200",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "log.segment.bytes": "262144",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    # For so long after a start Kafka's LogManager writes no checkpoint, whatever the interval: 30 s by default.
    "log.initial.task.delay.ms": "200",
    "controlled.shutdown.max.retries": "2",
    "group.initial.rebalance.delay.ms": "0",
}
"""Everything that waits for a peer waits shortly, so that a minute holds many elections."""
CONSUMER_GROUPS = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "200",
}
"""Of brokers with groups of the new protocol."""
ZOOKEEPER_SESSION_MS = {"kpybroker": "2500", "kafka": "6000"}
"""Next to nine other processes on two cores a JVM that starts may be late with its pings by more than two seconds."""


class BrokerEnded(Exception):
    """By itself, and not for want of ZooKeeper or because its former registration is still there: there is no use in
    starting it again."""


class FaultyCluster:
    """`applications` are the processes of groups' members, if there are any."""

    def __init__(self, kind: str, directory: Path, history: History, transaction_version: int = 1) -> None:
        """`transaction_version` is that of clients that know both; always 1 where no feature is served."""
        self.kind = kind
        self.transaction_version = transaction_version if self.serves_features else 1
        self.history = history
        self.applications: Sequence[Application] = ()
        self.network = Network()
        # A process dies with the thread that has started it (PR_SET_PDEATHSIG): this one lives as long as the cluster.
        self._starter = ThreadPoolExecutor(max_workers=1)
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self._starter.submit(self.zookeeper.start).result()
        self.tree_address = f"{self.zookeeper.connect}/{CHROOT}"
        properties = {**QUICK, "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_MS[kind]}
        if self.serves_features:
            properties |= CONSUMER_GROUPS
        self.cluster = Cluster(directory / "brokers", self.tree_address, [], properties)
        self._away_since: dict[int, int] = {}
        self._ended_by_us: set[int] = set()
        self._lock = threading.RLock()
        self.peer_ports: dict[int, int] = {}
        """Of each broker's listener for its peers, past the proxies."""
        self.client_ports = {broker_id: self._add(broker_id) for broker_id in BROKERS}

    def _add(self, broker_id: int) -> int:
        """One broker; returns the port at which clients find it."""
        to_zookeeper = self.network.proxy(ZOOKEEPER, self.zookeeper.port, source=broker_id)
        broker = self.cluster.add(self.kind, zookeeper_connect=f"127.0.0.1:{to_zookeeper}/{CHROOT}")
        peers = self.peer_ports[broker_id] = free_port()
        for_clients = self.network.proxy(broker_id, broker.port, CLIENTS)
        for_peers = self.network.proxy(broker_id, peers)
        broker.properties |= {
            "listeners": f"CLIENTS://127.0.0.1:{broker.port},PEERS://127.0.0.1:{peers}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{for_clients},PEERS://127.0.0.1:{for_peers}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PEERS:PLAINTEXT",
            "inter.broker.listener.name": "PEERS",
        }
        write_properties(broker.config_file, broker.properties)
        return for_clients

    @property
    def brokers(self) -> dict[int, Broker]:
        return self.cluster.brokers

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.client_ports.values())

    @property
    def serves_features(self) -> bool:
        return has_features(self.kind)

    def topic_id(self, topic: str) -> bytes:
        text: str = self.cluster.json(f"/brokers/topics/{topic}")["topic_id"]
        return base64.urlsafe_b64decode(text + "==")

    def start(self) -> None:
        for broker_id in BROKERS:
            self.start_broker(broker_id)
        self.activate()
        if self.serves_features:
            self._finalize_groups()
        if self.transaction_version == EPOCH_BUMP_FROM:
            have_version_2(self.bootstrap)

    def _finalize_groups(self) -> None:
        """On ZooKeeper no feature is finalized unasked."""
        CommandLine(self.bootstrap).run("feature", "upgrade", f"{GROUP_VERSION}=1")
        for broker in self.brokers.values():
            eventually(lambda: serves_groups(broker), f"{broker.node_id} serves the new groups", RECOVERY_S)

    def close(self) -> None:
        self.cluster.tree.stop()
        self.cluster.tree.close()
        for broker in self.brokers.values():
            broker.service.kill()
        self.zookeeper.stop()
        self.network.close()
        self._starter.shutdown()

    # --- what can be done to a broker

    def start_broker(self, broker_id: int) -> None:
        """Without waiting for it."""
        with self._lock:
            service = self.brokers[broker_id].service
            if not service.running:
                self._is_back(broker_id)
                self._ended_by_us.discard(broker_id)
                self._starter.submit(service.start, lambda _: True).result()

    def kill(self, broker_id: int) -> bool:
        """Whether it ran."""
        with self._lock:
            service = self.brokers[broker_id].service
            has_run = service.running
            self._ended_by_us.add(broker_id)
            service.kill()
            self._is_away(broker_id)
            return has_run

    def kill_and_tear(self, broker_id: int, *, zeros: bool) -> None:
        """Killed, with half a batch at the end of every log, cut off or filled with zeros."""
        with self._lock:
            if not self.kill(broker_id):
                return
            for directory in self.brokers[broker_id].data_dir.glob("*-[0-9]"):
                segment = max(directory.glob("*.log"))
                headers = [header for _, header in iter_batches(segment.read_bytes())]
                end = headers[-1].next_offset if headers else int(segment.stem)
                batch = build_batch([(None, b"torn" * 50, int(time.time() * 1000))], base_offset=end)
                half = batch[: len(batch) // 2]
                with segment.open("ab") as file:
                    file.write(half + bytes(len(batch) - len(half)) if zeros else half)

    def pause(self, broker_id: int) -> None:
        """Let it stand still."""
        with self._lock:
            service = self.brokers[broker_id].service
            if service.running and broker_id not in self._away_since:
                service.pause()
                self._is_away(broker_id)

    def resume(self, broker_id: int) -> None:
        with self._lock:
            service = self.brokers[broker_id].service
            if service.running and broker_id in self._away_since:
                self._is_back(broker_id)
                service.resume()

    def terminate(self, broker_id: int) -> None:
        """Ask for an orderly end, and wait for it; who cannot end is killed, as an operator would."""
        service = self.brokers[broker_id].service
        if not service.running:
            return
        self._ended_by_us.add(broker_id)
        os.kill(service.pid, signal.SIGTERM)
        with suppress(AssertionError):
            eventually(lambda: not service.running, "its end", STOP_S)
        self.kill(broker_id)

    def _is_away(self, broker_id: int) -> None:
        self._away_since.setdefault(broker_id, time.monotonic_ns())

    def _is_back(self, broker_id: int) -> None:
        since = self._away_since.pop(broker_id, None)
        if since is not None:
            self.history.absences.append(Absence(broker_id, since, time.monotonic_ns()))

    # --- ZooKeeper

    def pause_zookeeper(self) -> None:
        if self.zookeeper.service.running:
            self.zookeeper.service.pause()

    def resume_zookeeper(self) -> None:
        if self.zookeeper.service.running:
            self.zookeeper.service.resume()

    def kill_zookeeper(self) -> None:
        self.zookeeper.service.kill()

    def start_zookeeper(self) -> None:
        with self._lock:
            if not self.zookeeper.service.running:
                self._starter.submit(self.zookeeper.start).result()

    def expire(self, broker_id: int) -> None:
        """A second client takes the broker's session over by id and password, and closes it."""
        with suppress(KazooException, KazooTimeoutError):
            end_session(self.tree_address, f"/brokers/ids/{broker_id}", connect_s=5)

    # --- back to health

    def activate(self) -> None:
        """Everything runs, is connected and registered. Raises AssertionError, BrokerEnded."""
        self.network.heal()
        self.resume_zookeeper()
        self.start_zookeeper()
        for broker_id in BROKERS:
            self.resume(broker_id)
        eventually(self._all_are_there, "every broker is registered", RECOVERY_S)

    def _all_are_there(self) -> bool:
        for broker_id in BROKERS:
            if not self.brokers[broker_id].service.running:
                self._look_why(broker_id)
                self.start_broker(broker_id)
        live = quietly(self.cluster.live)
        assert live == set(BROKERS), f"registered: {live}"
        assert quietly(self.cluster.controller) is not None, "no controller"
        for broker_id in BROKERS:
            self._knows_it(broker_id)
        return True

    def _knows_it(self, broker_id: int) -> None:
        """librdkafka asks once: an administrator that came before the controller is known would wait for minutes."""
        admin = admin_client(self.brokers[broker_id].bootstrap)
        try:
            reported = admin.list_topics(timeout=LOOK_S)
        except KafkaException as error:
            raise AssertionError(f"{broker_id}: {error}") from None
        assert set(reported.brokers) == set(BROKERS), f"{broker_id} reports {set(reported.brokers)}"
        assert reported.controller_id in BROKERS, f"{broker_id} knows no controller"

    def _look_why(self, broker_id: int) -> None:
        """A broker may give up while it starts without ZooKeeper, or with its former registration. Raises
        BrokerEnded."""
        service = self.brokers[broker_id].service
        if broker_id in self._ended_by_us:
            return
        said = service.output()
        if f"[KafkaServer id={broker_id}] started" in said or NO_LOG_DIRS in said:
            raise BrokerEnded(f"broker {broker_id} ended by itself:\n{service.tail(30)}")

    def wait_for_full_isr(self, topics: dict[str, int]) -> None:
        """By topic its number of partitions. Raises AssertionError, BrokerEnded."""

        def full() -> bool:
            self._all_are_there()
            for topic, count in topics.items():
                for index in range(count):
                    state = quietly(lambda: self.cluster.state(topic, index))
                    is_whole = state is not None and state.isr == set(BROKERS) and state.leader in BROKERS
                    assert is_whole, f"{topic}-{index}: {state}"
            return True

        eventually(full, "every replica is in sync", RECOVERY_S)


def quietly(look: Callable[[], T]) -> T | None:
    """What the tree says; None while it does not respond."""
    try:
        return look()
    except (KazooException, KazooTimeoutError):
        return None
