"""Consumer groups as their users know them: members come, go and die; a group shares, groups do not.

Clients with `-consumer` behind their names speak the new protocol (KIP-848). Their members have the session timeout
that the broker has for their group, and a member's name is free only when it has left.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.overload.raw import Raw
from compat_tests.support.clients import CLIENTS, PYTHON_CLIENTS, Client
from compat_tests.support.groups.members import Member, speaks_new_protocol
from compat_tests.support.groups.serving import NOT_SERVED, serves_groups
from compat_tests.support.quick import admin_client, create_topic, fill, read
from compat_tests.support.records import Record
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

Join = Callable[..., Member]

MEMBERS = (*PYTHON_CLIENTS, "franz-go", "confluent-consumer", "franz-go-consumer")
"""Those that commit when they are asked to, and take patterns."""
ALL_MEMBERS = (*MEMBERS, "java-3.9.1", "java-4.x", "java-3.9.1-consumer", "java-4.x-consumer")
OF_MAKE_TEST = ("confluent",)
"""Where the broker cannot see which client it is: of the others each runs with --all-versions."""
OTHERS_IN_PYTHON = tuple(client for client in PYTHON_CLIENTS if client != "confluent")
"""They join, share and leave in `make test`, and the rest in the wide tests."""
GO_AND_NEW_JAVA = ("franz-go", "franz-go-consumer", "java-3.9.1-consumer", "java-4.x-consumer")
"""Go's clients are built for the wide tests only, and `groups/test_clients.py` has Java's with the new protocol."""


def some(clients: tuple[str, ...]) -> list[Any]:
    """All of them, those that `make test` leaves out marked."""
    return [each if each in OF_MAKE_TEST else pytest.param(each, marks=pytest.mark.wide) for each in clients]


def each_of(*clients: str, wide: tuple[str, ...] = (*GO_AND_NEW_JAVA, *OTHERS_IN_PYTHON)) -> list[Any]:
    """All of them, those that run with the wide tests only marked."""
    return [pytest.param(each, marks=pytest.mark.wide) if each in wide else each for each in clients]


SESSION_MS_MIN, SESSION_MS = 6_000, 30_000


def load(broker: Broker, topic: str, partitions: int, each: int, start: int = 0) -> set[tuple[int, str]]:
    """Records `start` .. `start + each - 1` into every partition; what a reader of all must see."""
    values = [f"{n}" for n in range(start, start + each)]
    for partition in range(partitions):
        fill(broker.bootstrap, topic, values, partition)
    return {(partition, value) for partition in range(partitions) for value in values}


def seen(*members: Member) -> Counter[tuple[int, str | None]]:
    return Counter((record.partition, record.value) for member in members for record in member.records)


def shared(topic: str, partitions: int, *members: Member) -> bool:
    """Every partition has exactly one owner, and no member has two more than another."""
    owned = [part for member in members for part in member.assignment]
    sizes = [len(member.assignment) for member in members]
    if sorted(owned) != [(topic, n) for n in range(partitions)]:
        raise AssertionError("\n".join(f"{sorted(m.assignment)}: {m.said()}" for m in members))
    return max(sizes) - min(sizes) <= 1


def limit_session(broker: Broker, group: str, client: str) -> None:
    """Give members of the new protocol the session timeout that those of the classic one bring with them."""
    if not speaks_new_protocol(client):
        return
    if not serves_groups(broker):
        pytest.skip(NOT_SERVED)
    timeout = IncrementalAlterConfigsRequest.AlterableConfig(
        name="consumer.session.timeout.ms", value=str(SESSION_MS_MIN)
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=ConfigResourceType.GROUP, resource_name=group, configs=[timeout]
    )
    with Raw(("127.0.0.1", broker.port)) as raw:
        (response,) = raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert response.error_code == 0, response


@pytest.mark.parametrize("client", each_of(*ALL_MEMBERS, wide=GO_AND_NEW_JAVA))
def test_join_and_leave(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    """Alone a member owns all; a second takes half; when it leaves properly, the first has all back at once."""
    made = topic(partitions=4)
    first = join(client, group=name, topics=[made])
    eventually(lambda: shared(made, 4, first), "all four partitions")
    second = join(client, group=name, topics=[made], session_timeout_ms=SESSION_MS)
    eventually(lambda: shared(made, 4, first, second), "two partitions each")
    expected = load(broker, made, 4, 25)
    eventually(lambda: set(seen(first, second)) >= expected, "every record")
    assert seen(first, second) == Counter(expected)
    left_at = time.monotonic()
    second.close()
    eventually(lambda: shared(made, 4, first), "all four partitions again")
    assert time.monotonic() - left_at < SESSION_MS / 1000, "a leaver is not waited for"


@pytest.mark.parametrize(
    "client",
    each_of(
        *("confluent", "kafka-python-3.0.12", "franz-go"),
        *("confluent-consumer", "java-4.x-consumer", "franz-go-consumer"),
        wide=(*GO_AND_NEW_JAVA, *OTHERS_IN_PYTHON, "confluent-consumer"),
    ),
)
def test_killed_member(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    """A member that dies without a word loses its partitions when its session ends, and nothing is lost with it."""
    made = topic(partitions=2)
    limit_session(broker, name, client)
    members = [join(client, group=name, topics=[made], session_timeout_ms=SESSION_MS_MIN) for _ in range(2)]
    eventually(lambda: shared(made, 2, *members), "one partition each")
    killed, survivor = members
    killed.kill()
    expected = load(broker, made, 2, 10)
    eventually(lambda: shared(made, 2, survivor), "the survivor owns both")
    eventually(lambda: set(seen(survivor)) >= expected, "every record")


@pytest.mark.parametrize("client", some(ALL_MEMBERS))
def test_queue_and_broadcast(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    """Members of one group share the records; a second group gets all of them too."""
    made = topic(partitions=2)
    shares = [join(client, group=f"{name}-a", topics=[made]) for _ in range(2)]
    alone = join(client, group=f"{name}-b", topics=[made])
    eventually(lambda: shared(made, 2, *shares) and shared(made, 2, alone), "both groups settled")
    expected = Counter(load(broker, made, 2, 20))
    eventually(lambda: seen(*shares) == expected == seen(alone), "every record once in each group")
    assert all(len(member.records) == 20 for member in shares)


@pytest.mark.parametrize("client", some(MEMBERS))
def test_more_members_than_partitions(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    made = topic(partitions=2)
    members = [join(client, group=name, topics=[made]) for _ in range(3)]
    admin = admin_client(broker.bootstrap)

    def settled() -> bool:
        owners = sorted(len(member.assignment) for member in members)
        described = admin.describe_consumer_groups([name])[name].result(timeout=60)
        return owners == [0, 1, 1] and len(described.members) == 3

    eventually(settled, "two owners and one idle member")
    expected = Counter(load(broker, made, 2, 10))
    eventually(lambda: seen(*members) == expected, "every record once")
    (idle,) = [member for member in members if not member.assignment]
    assert idle.records == []
    next(member for member in members if member.assignment).close()
    eventually(lambda: len(idle.assignment) == 1, "the idle member takes over")


@pytest.mark.parametrize("client", some(ALL_MEMBERS))
def test_manual_commit(made: str, broker: Broker, name: str, join: Join, client: str) -> None:
    """What was committed is not read again, what was not is: the VerifiableConsumer commits what it hands out."""
    load(broker, made, 1, 10)
    first = join(client, group=name, topics=[made])
    first.has(10)
    if client in MEMBERS:
        first.commit()
    else:
        eventually(lambda: first.commits > 0, "a commit")
    load(broker, made, 1, 10, start=10)
    first.has(20)
    first.close()
    load(broker, made, 1, 1, start=20)
    expected = range(10, 21) if client in MEMBERS else range(20, 21)
    second = join(client, group=name, topics=[made]).has(len(expected))
    assert [record.value for record in second] == [str(n) for n in expected]


@pytest.mark.parametrize("client", some(MEMBERS))
def test_automatic_commit(made: str, broker: Broker, name: str, join: Join, client: str) -> None:
    """A proper close commits what was handed out; the next member starts there."""
    load(broker, made, 1, 10)
    first = join(client, group=name, topics=[made], auto_commit=True)
    first.has(10)
    first.close()
    load(broker, made, 1, 5, start=10)
    second = join(client, group=name, topics=[made], auto_commit=True).has(5)
    assert [record.value for record in second] == [str(n) for n in range(10, 15)]


@pytest.mark.parametrize("client", some(MEMBERS))
def test_several_topics(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    topics = [topic(suffix="-a"), topic(partitions=2, suffix="-b")]
    member = join(client, group=name, topics=topics)
    eventually(lambda: len(member.assignment) == 3, "the partitions of both")
    for one, partitions in zip(topics, (1, 2), strict=True):
        load(broker, one, partitions, 5)
    assert Counter(record.topic for record in member.has(15)) == {topics[0]: 5, topics[1]: 10}


@pytest.mark.parametrize("client", some(MEMBERS))
def test_regex(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    """A pattern covers the topics that are there and those that come later, and no others."""
    early = topic(suffix="-yes-1")
    topic(suffix="-no")
    member = join(client, group=name, pattern=f"{name}-yes-.*")
    eventually(lambda: member.assignment == {(early, 0)}, "the topic that matches")
    late = topic(suffix="-yes-2")
    eventually(lambda: member.assignment == {(early, 0), (late, 0)}, "the topic that came later")
    load(broker, early, 1, 3)
    load(broker, late, 1, 3)
    assert Counter(record.topic for record in member.has(6)) == {early: 3, late: 3}


@pytest.mark.parametrize("client", CLIENTS)
def test_keys_keep_their_partition_and_order(broker: Broker, topic: MakeTopic, client: str) -> None:
    """Every record of a key is in one partition, in the order in which it was sent; the keys are spread."""
    made = topic(partitions=5)
    records = [Record(f"{n}", f"key-{n % 23}") for n in range(400)]
    Client(client, broker.bootstrap).produce(made, records)
    found = read(broker.bootstrap, [(made, n) for n in range(5)], 400)
    places: dict[bytes, set[int]] = {}
    for message in found:
        places.setdefault(message.key(), set()).add(message.partition())
    assert len(places) == 23
    assert all(len(partitions) == 1 for partitions in places.values()), places
    assert len({partition for partitions in places.values() for partition in partitions}) > 1
    for key in places:
        mine = [int(message.value()) for message in found if message.key() == key]
        assert mine == sorted(mine)


@pytest.mark.parametrize(
    "client",
    each_of(
        *("confluent", "kafka-python-3.0.12", "aiokafka", "java-3.9.1", "franz-go"),
        *("confluent-consumer", "java-4.x-consumer"),
        wide=(*GO_AND_NEW_JAVA, *OTHERS_IN_PYTHON, "java-3.9.1"),
    ),
)
def test_static_member_returns(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    """KIP-345: a member with a name of its own that dies and returns in time gets its partitions back, and no one
    else is disturbed.

    In the new protocol it is closed: the name of one that died is not free before its session ends. That of franz-go
    1.22.3 is not free then either: its last heartbeat does not say the name, and is refused, by Kafka 4.3.1 too.
    """
    made = topic(partitions=2)

    def start(instance: str) -> Member:
        return join(client, group=name, topics=[made], instance=instance, session_timeout_ms=30_000)

    steady, restless = start("steady"), start("restless")
    eventually(lambda: shared(made, 2, steady, restless), "one partition each")
    had, quiet_since = restless.assignment, len(steady.assignments)
    restless.close() if speaks_new_protocol(client) else restless.kill()
    returned = start("restless")
    eventually(lambda: returned.assignment == had, "its own partition again")
    expected = load(broker, made, 2, 5)
    eventually(lambda: set(seen(steady, returned)) >= expected, "every record")
    assert len(steady.assignments) == quiet_since, "the other member was rebalanced"


@pytest.mark.parametrize(
    "client",
    each_of(
        *("confluent", "kafka-python-3.0.12", "java-3.9.1", "java-4.x", "franz-go"),
        *("confluent-consumer", "java-4.x-consumer", "franz-go-consumer"),
    ),
)
def test_cooperative_sticky(broker: Broker, topic: MakeTopic, name: str, join: Join, client: str) -> None:
    """KIP-429: a member keeps what it keeps while the rest moves to a newcomer. The new protocol knows no other way."""
    made = topic(partitions=4)
    assignor = "cooperative-sticky"
    if speaks_new_protocol(client):
        assignor = "uniform"
    elif client.startswith("java"):
        assignor = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    first = join(client, group=name, topics=[made], assignor=assignor)
    eventually(lambda: shared(made, 4, first), "all four partitions")
    before = len(first.assignments)
    second = join(client, group=name, topics=[made], assignor=assignor)
    eventually(lambda: shared(made, 4, first, second), "two partitions each")
    kept = first.assignment
    assert all(kept <= during for during in first.assignments[before:]), first.assignments
    expected = Counter(load(broker, made, 4, 5))
    eventually(lambda: seen(first, second) == expected, "every record once")


@pytest.mark.parametrize("client", each_of(*MEMBERS))
def test_members_live_through_a_restart(own_broker: Callable[..., Broker], name: str, join: Join, client: str) -> None:
    """Offsets survive a restart of the broker; members that were there go on, and nothing committed is read again."""
    broker = own_broker()
    create_topic(broker.bootstrap, name, 2)
    expected = Counter(load(broker, name, 2, 10))
    member = join(client, bootstrap=broker.bootstrap, group=name, topics=[name])
    eventually(lambda: seen(member) == expected, "the records before")
    member.commit()
    broker.restart()
    expected += Counter(load(broker, name, 2, 10, start=10))

    def goes_on() -> bool:
        assert set(seen(member)) == set(expected), member.said() + broker.service.output()[-4000:]
        return True

    eventually(goes_on, "the records after", 120)
    assert all(count == 1 for (_, value), count in seen(member).items() if int(value or 0) < 10)
    member.commit()
    member.close()
    after = join(client, bootstrap=broker.bootstrap, group=name, topics=[name])
    load(broker, name, 1, 1, start=20)
    assert [record.value for record in after.has(1)] == ["20"]
