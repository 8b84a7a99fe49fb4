"""Groups of the new protocol (KIP-848) with Java 4.3.1, librdkafka and franz-go, judged by the members' own logs.

They reach the broker through a proxy: for who owned what, what a member reported to it counts (`ownership`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from compat_tests.conftest import Launcher
from compat_tests.faults.groups.beats import LISTENING, beats_of
from compat_tests.faults.groups.check import reports_of
from compat_tests.faults.proxy import CLIENTS, Network
from compat_tests.overload.raw import Raw
from compat_tests.support.groups.logged_members import (
    ConfluentMember,
    FranzMembers,
    JavaMembers,
    LoggedMember,
    Logs,
    MemberProcess,
)
from compat_tests.support.groups.ownership import Kind, Sessions, disorder, double_owners, problems_of, read_counts
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.quick import admin_client, committed, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.wire.messages.metadata import MetadataRequest

PARTITIONS = 6
BATCH = 60
MIXED = ("java", "confluent")
"""Go's clients are built for the wide tests only."""
QUICK_CLASSIC = {"heartbeat_interval_ms": "300"}
"""A member of the classic protocol has a heartbeat of its own."""
Start = Callable[..., LoggedMember]
Judge = Callable[..., list[str]]


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaMembers]:
    members = JavaMembers(lambda event: None)
    yield members
    members.end()


@pytest.fixture(scope="module")
def go() -> Iterator[FranzMembers]:
    members = FranzMembers(lambda event: None)
    yield members
    members.end()


@pytest.fixture
def network() -> Iterator[Network]:
    """Keeps what members report."""
    made = Network()
    made.listening = LISTENING
    yield made
    made.close()


@pytest.fixture
def served(launcher: Launcher, network: Network) -> Iterator[Broker]:
    """A broker with heartbeats short enough for a test."""
    started: list[Broker] = []

    def start(**keys: str) -> Broker:
        started.append(broker := launcher.unstarted(**keys))
        broker.client_port = network.proxy(0, broker.port, CLIENTS)
        broker.configure({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.client_port}"})
        broker.start()
        return broker

    yield group_broker(start)
    for broker in started:
        broker.service.kill()


@pytest.fixture
def logs() -> Logs:
    return Logs()


@pytest.fixture
def start(served: Broker, jvm: JavaMembers, go: FranzMembers, logs: Logs) -> Iterator[Start]:
    """Starts a member: `start("confluent", "name", topics="t")`. At the end of the test all are closed."""
    started: list[LoggedMember] = []
    processes: dict[str, MemberProcess] = {"java": jvm, "franz": go}
    for process in processes.values():
        process.log = logs.add

    def member(client: str, name: str, protocol: str = "consumer", **settings: Any) -> LoggedMember:
        settings = {
            "bootstrap_servers": served.bootstrap,
            "group_id": "g",
            "client_id": name,
            "group_protocol": protocol,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": "false",
            "metadata_max_age_ms": "500",
            "commit": "sync",
            **(QUICK_CLASSIC if protocol == "classic" else {}),
            **settings,
        }
        if client == "confluent":
            started.append(ConfluentMember(name, logs.add, **settings))
        else:
            started.append(processes[client].start(name, **settings))
        return started[-1]

    yield member
    for one in started:
        one.close()
    for one in started:
        eventually(partial(logs.has, one.name, Kind.CLOSED), f"the end of {one.name}")


@pytest.fixture
def judge(served: Broker, network: Network, logs: Logs) -> Judge:
    """`judge(flow.values)`: all that is wrong with what members of the new protocol did."""

    def problems(values: list[str]) -> list[str]:
        with Raw(("127.0.0.1", served.port)) as raw:
            names = {topic.topic_id: topic.name for topic in raw.ask(MetadataRequest(topics=None), 12).topics}
        beats = beats_of(list(network.exchanges), defaultdict(str, names))["g"]
        reports = reports_of(beats, lambda _: True)
        assert reports.keys() >= {event.member for event in logs.events if event.kind is Kind.RECORD}
        return problems_of(logs.events, values, Sessions(None, reports=reports))

    return problems


class Flow:
    """Records that are written in order, each value once."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = PARTITIONS) -> None:
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
        self._numbers = count()
        self.values: list[str] = []

    def write(self, records: int = BATCH) -> None:
        for number, _ in zip(self._numbers, range(records), strict=False):
            self.values.append(f"{self._topic}-{number}")
            self._producer.produce(self._topic, self.values[-1], partition=number % self._partitions)
        assert self._producer.flush(120) == 0


def settled(logs: Logs, flow: Flow, *members: str) -> Callable[[], bool]:
    """Records flow all the while; each of the members reads its share, and the whole topic is given."""

    def check() -> bool:
        flow.write(PARTITIONS)
        return logs.is_settled(members, PARTITIONS)

    return check


def all_read(logs: Logs, flow: Flow) -> Callable[[], bool]:
    return lambda: read_counts(logs.events).keys() >= set(flow.values)


class Members(NamedTuple):
    """How the members of a group are."""

    client: str
    protocol: str
    commit: str


@pytest.mark.parametrize(
    "members_are",
    [
        pytest.param(
            Members(client, protocol, commit),
            id=f"{client}-{protocol}-{commit}",
            marks=[] if client in MIXED and (protocol, commit) == ("consumer", "sync") else pytest.mark.wide,
        )
        for client in (*MIXED, "franz")
        for protocol in ("consumer", "classic")
        for commit in ("sync", "async")
    ],
)
def test_three_members_come_and_go_while_records_flow(
    served: Broker, start: Start, logs: Logs, judge: Judge, members_are: Members
) -> None:
    """In the new protocol a commit is not refused while members come and go, so that nothing is read twice."""
    client, protocol, commit = members_are
    create_topic(served.bootstrap, "t", PARTITIONS)
    flow = Flow(served.bootstrap, "t")
    names = [f"{client}-{number}" for number in range(3)]
    members = []
    for number, name in enumerate(names):
        members.append(start(client, name, protocol, topics="t", commit=commit))
        eventually(settled(logs, flow, *names[: number + 1]), f"{number + 1} members", 60)
    for number, member in enumerate(members[:2]):
        member.close()
        eventually(settled(logs, flow, *names[number + 1 :]), f"{2 - number} members", 60)
    eventually(all_read(logs, flow), "all records", 60)
    assert (judge(flow.values) if protocol == "consumer" else problems_of(logs.events, flow.values)) == []
    if protocol == "consumer":
        assert not [event for event in logs.events if event.kind is Kind.REFUSED]
        if commit == "sync":
            assert set(read_counts(logs.events).values()) == {1}, (
                "a record was read twice, though members left properly"
            )
    members[2].close()
    eventually(lambda: logs.has(names[2], Kind.CLOSED), "the end of the last")
    ends = [len(range(index, len(flow.values), PARTITIONS)) for index in range(PARTITIONS)]
    eventually(
        lambda: committed(served.bootstrap, "g", [("t", index) for index in range(PARTITIONS)]) == ends, "the commits"
    )


def read_later_topic(served: Broker, member: LoggedMember, logs: Logs) -> Flow:
    """Have the member read a topic that is made when it has a pattern already, and commit."""
    eventually(lambda: logs.owned(member.name) == {("orders-1", 0)}, "the topic that matches")
    create_topic(served.bootstrap, "orders-2")
    eventually(lambda: logs.owned(member.name) == {("orders-1", 0), ("orders-2", 0)}, "the later topic")
    flow = Flow(served.bootstrap, "orders-2", 1)
    flow.write(9)
    eventually(lambda: logs.values() == flow.values, "its records")
    eventually(lambda: committed(served.bootstrap, "g", [("orders-2", 0)]) == [9], "a commit")
    return flow


@pytest.fixture
def orders(served: Broker) -> None:
    for topic in ("orders-1", "other", "orders-x"):
        create_topic(served.bootstrap, topic)


@pytest.mark.wide
@pytest.mark.usefixtures("orders")
def test_franz_go_finds_the_topics_of_a_pattern(served: Broker, start: Start, logs: Logs) -> None:
    """It does not go on with a topic that is made again unless its application says so: that is not shown."""
    read_later_topic(served, start("franz", "m", pattern=r"orders-\pN+"), logs)
    assert double_owners(logs.events) == []


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("client", [pytest.param("java", marks=pytest.mark.wide), "confluent"])
def test_a_pattern_follows_the_topics_there_are(served: Broker, start: Start, logs: Logs, client: str) -> None:
    """RE2's syntax; a topic that is made later is found, one that is deleted and made again starts at its beginning."""
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    member = start(client, "m", pattern=r"orders-\pN+$" if client == "confluent" else r"orders-\pN+")
    first = read_later_topic(served, member, logs)
    admin.delete_topics(["orders-2"])["orders-2"].result(60)
    eventually(lambda: logs.owned("m") == {("orders-1", 0)}, "that it is gone")
    create_topic(served.bootstrap, "orders-2")
    eventually(lambda: ("orders-2", 0) in logs.owned("m"), "that it is back")
    again = Flow(served.bootstrap, "orders-2", 1)
    again.write(5)
    eventually(lambda: logs.values() == first.values + again.values, "the new records, from the beginning")
    assert double_owners(logs.events) == []


@pytest.mark.parametrize("client", MIXED)
def test_a_static_member_keeps_its_own_and_has_its_name_alone(
    served: Broker, start: Start, logs: Logs, judge: Judge, client: str
) -> None:
    create_topic(served.bootstrap, "t", PARTITIONS)
    flow = Flow(served.bootstrap, "t")
    start(client, "steady", topics="t", group_instance_id="one")
    restless = start(client, "restless", topics="t", group_instance_id="two")
    eventually(settled(logs, flow, "steady", "restless"), "halves")
    had, heard = logs.owned("restless"), len(logs.of("steady"))
    for number in range(2):  # the first is not thrown out by those that come with its name
        start(client, f"double-{number}", topics="t", group_instance_id="one")
        eventually(partial(logs.has, f"double-{number}", Kind.FAILED), "a refusal")
    restless.close()
    eventually(lambda: logs.has("restless", Kind.CLOSED), "its end")
    start(client, "returned", topics="t", group_instance_id="two")
    eventually(lambda: logs.owned("returned") == had, "its partitions again")
    moved = {Kind.ASSIGNED, Kind.REVOKED, Kind.LOST}
    assert not [event for event in logs.of("steady")[heard:] if event.kind in moved and event.partitions]
    flow.write()
    eventually(all_read(logs, flow), "all records")
    assert judge(flow.values) == []


def test_a_member_that_does_not_poll_is_out_and_comes_back(
    served: Broker, start: Start, logs: Logs, judge: Judge, jvm: JavaMembers
) -> None:
    """It leaves when max.poll.interval.ms is over, says so when it polls again, and joins again with its id."""
    create_topic(served.bootstrap, "t", PARTITIONS)
    flow = Flow(served.bootstrap, "t")
    start("java", "slow", topics="t", max_poll_interval_ms="1500")
    start("confluent", "steady", topics="t")
    eventually(settled(logs, flow, "slow", "steady"), "halves")
    jvm.stall("slow", 6_000)
    eventually(settled(logs, flow, "steady"), "the whole topic")
    eventually(lambda: logs.has("slow", Kind.LOST), "that it lost its partitions")
    eventually(settled(logs, flow, "slow", "steady"), "halves again")
    flow.write()
    eventually(all_read(logs, flow), "all records")
    assert judge(flow.values) == []


@pytest.mark.parametrize("clients", [MIXED, pytest.param((*MIXED, "franz"), marks=pytest.mark.wide)], ids="+".join)
def test_members_go_on_after_a_restart_of_the_broker(
    served: Broker, start: Start, logs: Logs, judge: Judge, clients: tuple[str, ...]
) -> None:
    create_topic(served.bootstrap, "t", PARTITIONS)
    flow = Flow(served.bootstrap, "t")
    for client in clients:
        start(client, client, topics="t")
    eventually(settled(logs, flow, *clients), "equal shares")
    owned = {client: logs.owned(client) for client in clients}
    served.restart()
    flow.write()
    eventually(all_read(logs, flow), "the records after", 120)
    assert {client: logs.owned(client) for client in clients} == owned, "a restart moves nothing"
    assert judge(flow.values) == []
    admin = admin_client(served.bootstrap)
    assert admin.describe_consumer_groups(["g"])["g"].result(timeout=120).state.name == "STABLE"
    assert disorder(logs.events) == []
