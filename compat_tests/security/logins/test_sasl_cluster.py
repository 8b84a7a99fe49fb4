"""Brokers that log in to each other, kpybroker and Apache Kafka in one cluster, and clients that log in to all."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import (
    DEADLINE_S,
    configs_on_zookeeper,
    jaas,
    librdkafka,
    may_log_in,
    protocol,
    set_scram,
    stores,
)
from compat_tests.support.cluster import Cluster
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port

_numbers = itertools.count()
SESSION_MS = 4_000
RECORDS = 200
ATTEMPTS_MAX = 10


class Secured:
    """A cluster whose brokers log in to each other, with short sessions; inside TLS with an `authority`."""

    def __init__(
        self, launcher: Launcher, directory: Path, kinds: list[str], mechanism: str, authority: Authority | None
    ) -> None:
        self.mechanism = mechanism
        self.ca = None if authority is None else str(authority.certificate)
        between = protocol(self.ca)
        name = f"sasl-cluster-{next(_numbers)}"
        keys = {
            "inter.broker.listener.name": between,
            "sasl.enabled.mechanisms": mechanism,
            "sasl.mechanism.inter.broker.protocol": mechanism,
            f"listener.name.{between.lower()}.{mechanism.lower()}.sasl.jaas.config": jaas(
                mechanism,
                "admin",
                "admin-secret",
                ' user_admin="admin-secret" user_alice="alice-1"' if mechanism == "PLAIN" else "",
            ),
            "connections.max.reauth.ms": str(SESSION_MS),
            **({} if authority is None else stores(authority)),
        }
        self.cluster = Cluster(directory / name, launcher.zookeeper(name), kinds, keys)
        self.ports = {broker_id: free_port() for broker_id in self.cluster.brokers}
        for broker_id, broker in self.cluster.brokers.items():
            listeners = f"PLAINTEXT://127.0.0.1:{broker.port},{between}://127.0.0.1:{self.ports[broker_id]}"
            broker.configure({"listeners": listeners})
        if mechanism != "PLAIN":
            for user, password in (("admin", "admin-secret"), ("alice", "alice-1")):
                configs_on_zookeeper(
                    self.cluster.zookeeper, "--alter", "--entity-type", "users", "--entity-name", user,
                    "--add-config", f"{mechanism}=[password={password}]",
                )  # fmt: skip

    @property
    def client(self) -> dict[str, object]:
        running = [f"127.0.0.1:{self.ports[i]}" for i, one in self.cluster.brokers.items() if one.service.running]
        return librdkafka(",".join(running), self.mechanism, "alice", "alice-1", self.ca)

    def sessions_ended(self) -> int:
        """How often a broker has closed a connection because who logged in did not do so again in time."""
        return sum(broker.service.output().count("its session as") for broker in self.cluster.brokers.values())


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("SCRAM-SHA-512", marks=pytest.mark.wide),
        pytest.param("PLAIN", marks=pytest.mark.wide),
        "SCRAM-SHA-256 inside TLS",
    ],
)
def secured(
    request: pytest.FixtureRequest, launcher: Launcher, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    """SCRAM: the controller is of the kind under test; PLAIN: it is Kafka."""
    kinds = [launcher.kind, "kafka", launcher.kind]
    if request.param == "PLAIN":
        kinds = ["kafka", launcher.kind, launcher.kind]
    authority = None
    if request.param.endswith("TLS"):
        authority = Authority(tmp_path_factory.mktemp("secured-ca"))
    made = Secured(launcher, tmp_path_factory.mktemp("secured"), kinds, request.param.split()[0], authority)
    made.cluster.start()
    yield made
    made.cluster.close()


def test_records_are_replicated_between_brokers_that_log_in(secured: Secured, name: str) -> None:
    """For longer than sessions last: brokers and clients log in again, and nothing is lost or closed.

    A machine that stands still for longer than a session ends one, rightly. Then the same is looked for again.
    """
    cluster = secured.cluster
    cluster.create(name, "1:2:3,2:3:1,3:1:2", "--config", "min.insync.replicas=3")
    producer = Producer({**secured.client, "acks": "all"})
    for _ in range(ATTEMPTS_MAX):
        ended_before = secured.sessions_ended()
        produce_for_longer_than_sessions_last(producer, name)
        for partition in range(3):
            cluster.wait_for_isr(name, {1, 2, 3}, partition)
        if secured.sessions_ended() == ended_before:
            return
    pytest.fail(f"in each of {ATTEMPTS_MAX} times somebody did not log in again in time")


def produce_for_longer_than_sessions_last(producer: Producer, topic: str) -> None:
    failures: list[object] = []
    ends = time.monotonic() + 3 * SESSION_MS / 1000
    number = 0
    while number < RECORDS or time.monotonic() < ends:
        producer.produce(topic, str(number), on_delivery=lambda error, _: failures.append(error))
        producer.poll(0.05)
        number += 1
    assert producer.flush(DEADLINE_S) == 0
    assert set(failures) == {None}


@pytest.mark.wide
def test_a_leader_fails_and_nothing_acknowledged_is_lost(secured: Secured, name: str) -> None:
    cluster = secured.cluster
    cluster.create(name, "3:1:2", "--config", "min.insync.replicas=2")
    producer = Producer({**secured.client, "acks": "all"})
    acknowledged: list[str] = []

    def delivered(error: object, message: Message) -> None:
        if error is None:
            acknowledged.append(str(message.value(), "utf-8"))

    for number in range(RECORDS):
        producer.produce(name, str(number), on_delivery=delivered)
        if number == RECORDS // 2:
            producer.flush(DEADLINE_S)
            cluster.brokers[3].kill()
    producer.flush(DEADLINE_S)
    # two brokers are too few for the offsets of a group
    consumer = Consumer({**secured.client, "group.id": name, "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, 0, 0)])
    read: set[str] = set()

    def has_all() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            read.add(str(message.value(), "utf-8"))
        return read >= set(acknowledged)

    eventually(has_all, "every acknowledged record is read")
    consumer.close()
    assert len(acknowledged) == RECORDS
    cluster.heal()
    cluster.wait_for_isr(name, {1, 2, 3})


def test_a_user_made_at_one_broker_logs_in_at_every_other(secured: Secured) -> None:
    if secured.mechanism == "PLAIN":
        pytest.skip("users of PLAIN are in the configuration")
    cluster = secured.cluster
    set_scram(Tools("3.9.1", cluster.bootstrap), "dora", "dora-1", (secured.mechanism,))
    for port in secured.ports.values():
        eventually(
            lambda at=f"127.0.0.1:{port}": may_log_in(at, secured.mechanism, "dora", "dora-1", secured.ca),  # type: ignore[misc]
            "dora is known everywhere",
        )


def test_a_session_of_a_client_goes_on_after_its_end(secured: Secured) -> None:
    """librdkafka logs in again on the same connection."""
    admin = AdminClient(secured.client)
    ends = time.monotonic() + 2.5 * SESSION_MS / 1000
    while time.monotonic() < ends:
        assert admin.list_topics(timeout=DEADLINE_S).brokers
