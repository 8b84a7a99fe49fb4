"""Rolling restarts of an application from classic groups to the new protocol and back, Java 4.3.1 and librdkafka mixed,
or Java and franz-go.

Records flow all the while, and members commit what they hand out: each record is read at least once, and no partition
has two owners, by the members' own logs.

With the cooperative assignor the application is Java's alone: a leader of librdkafka writes its members' user data into
their assignments, and a group with such assignments is not upgraded, as by Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.groups.test_clients import PARTITIONS, Flow, all_read
from compat_tests.support.groups.logged_members import (
    ConfluentMember,
    FranzMembers,
    JavaMembers,
    LoggedMember,
    Logs,
    MemberProcess,
)
from compat_tests.support.groups.ownership import Kind, problems_of
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.waiting import eventually

Processes = dict[str, MemberProcess]
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
INSTANCES = 3


class Clients(NamedTuple):
    """The client of each instance of an application, and the assignor of Java's; that of the others is `range`."""

    names: tuple[str, ...]
    assignor: str = RANGE


MIXED = Clients(("java", "confluent", "java"))
COOPERATIVE_JAVA = Clients(("java", "java", "java"), COOPERATIVE)
WITH_FRANZ = Clients(("franz", "java", "franz"))


class Application:
    """Instances that are replaced one by one, each with a member; `stop` before `start`, as in a rolling restart."""

    def __init__(self, bootstrap: str, processes: Processes, clients: Clients) -> None:
        self.logs = Logs()
        self._admin = admin_client(bootstrap)
        self.flow = Flow(bootstrap, "t")
        self.running: dict[int, LoggedMember] = {}
        self._bootstrap = bootstrap
        self._processes = processes
        for process in processes.values():
            process.log = self.logs.add
        self._clients = clients
        self._starts = 0

    def start(self, instance: int, protocol: str) -> None:
        self._starts += 1
        client = self._clients.names[instance]
        name = f"{client}-{instance}-{protocol}-{self._starts}"
        settings: dict[str, Any] = {
            "bootstrap_servers": self._bootstrap,
            "group_id": "g",
            "group_protocol": protocol,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": "false",
            "metadata_max_age_ms": "500",
            "topics": "t",
            "commit": "sync",
        }
        if protocol == "classic":
            settings["partition_assignment_strategy"] = self._clients.assignor if client == "java" else "range"
            settings["heartbeat_interval_ms"] = "300"
        if client == "confluent":
            self.running[instance] = ConfluentMember(name, self.logs.add, **settings)
        else:
            self.running[instance] = self._processes[client].start(name, **settings)

    def stop(self, instance: int) -> None:
        member = self.running.pop(instance)
        member.close()
        eventually(partial(self.logs.has, member.name, Kind.CLOSED), f"the end of {member.name}")

    def is_settled(self) -> bool:
        """Records flow; each member reads its share, and the whole topic is given."""
        self.flow.write(PARTITIONS)
        if not self.logs.is_settled([member.name for member in self.running.values()], PARTITIONS):
            failed = [event for event in self.logs.events if event.kind is Kind.FAILED]
            raise AssertionError({m.name: sorted(self.logs.owned(m.name)) for m in self.running.values()}, failed)
        return True

    def roll(self, protocol: str) -> None:
        """Restart each instance with this protocol."""
        for instance in range(INSTANCES):
            if instance in self.running:
                self.stop(instance)
            self.start(instance, protocol)
            eventually(self.is_settled, f"instance {instance} is {protocol}", 90)

    @property
    def kind(self) -> str:
        """CLASSIC or CONSUMER, as the broker lists the group."""
        (group,) = self._admin.list_consumer_groups().result(timeout=120).valid
        return str(group.type.name)

    def is_all_read(self) -> bool:
        return all_read(self.logs, self.flow)()

    def check(self) -> None:
        """Everything written was read, in order, and every partition had one owner at a time."""
        eventually(self.is_all_read, "all records", 60)
        assert problems_of(self.logs.events, self.flow.values) == []

    def close(self) -> None:
        for instance in list(self.running):
            self.stop(instance)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    members: Processes = {"java": JavaMembers(lambda event: None), "franz": FranzMembers(lambda event: None)}
    yield members
    for one in members.values():
        one.end()


def application(own_broker: StartBroker, processes: Processes, policy: str, clients: Clients = MIXED) -> Application:
    """Its broker has this policy, and a topic."""
    broker = group_broker(own_broker, group_consumer_migration_policy=policy)
    create_topic(broker.bootstrap, "t", PARTITIONS)
    return Application(broker.bootstrap, processes, clients)


@pytest.mark.parametrize(
    "clients",
    [
        pytest.param(MIXED, id="mixed"),
        pytest.param(COOPERATIVE_JAVA, marks=pytest.mark.wide, id="cooperative"),
        pytest.param(WITH_FRANZ, marks=pytest.mark.wide, id="with-franz"),
    ],
)
def test_there_and_back(own_broker: StartBroker, processes: Processes, clients: Clients) -> None:
    app = application(own_broker, processes, "bidirectional", clients)
    try:
        for protocol in ("classic", "consumer", "classic"):
            app.roll(protocol)
            app.flow.write()
            assert app.kind == protocol.upper()
        app.check()
    finally:
        app.close()


@pytest.mark.wide
def test_upgrade_only(own_broker: StartBroker, processes: Processes) -> None:
    """From classic groups to the new protocol."""
    app = application(own_broker, processes, "upgrade")
    try:
        app.roll("classic")
        app.roll("consumer")
        assert app.kind == "CONSUMER"
        app.check()
    finally:
        app.close()


@pytest.mark.wide
def test_downgrade_only(own_broker: StartBroker, processes: Processes) -> None:
    """A group that began with the new protocol may go back, and there it stays."""
    app = application(own_broker, processes, "downgrade")
    try:
        app.roll("consumer")
        app.roll("classic")
        assert app.kind == "CLASSIC"
        app.check()
    finally:
        app.close()


@pytest.mark.wide
@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_an_upgrade_that_is_not_allowed_is_refused_and_disturbs_no_one(
    own_broker: StartBroker, processes: Processes, policy: str
) -> None:
    app = application(own_broker, processes, policy)
    try:
        app.roll("classic")
        app.stop(1)
        eventually(app.is_settled, "two members")
        app.start(1, "consumer")
        refused = app.running.pop(1)
        eventually(partial(app.logs.has, refused.name, Kind.FAILED), "its refusal")
        eventually(app.is_settled, "two members still")
        assert app.kind == "CLASSIC"
        app.check()
    finally:
        app.close()
