"""KIP-345 as operators use it: static members are restarted one after the other, and no member rebalances.

Counted twice: by the group's generation, which from outside only a heartbeat shows (it is refused in any other than
the present one), and by what the members' own rebalance callbacks reported. In the new protocol (KIP-848) a group has
an epoch instead, which ConsumerGroupDescribe shows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from compat_tests.clients.test_groups import GO_AND_NEW_JAVA, each_of, load, seen, shared
from compat_tests.conftest import MakeTopic
from compat_tests.overload.raw import Raw
from compat_tests.support.groups.members import Member, speaks_new_protocol
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.heartbeat import HeartbeatRequest

Join = Callable[..., Member]

# Those that do not leave when they are closed with a name; the other Python clients do, and so end their membership.
# franz-go in the new protocol does not release its name at all: see `test_groups`.
CLASSIC = ("confluent", "java-3.9.1", "java-4.x", "franz-go")
NEW = ("confluent-consumer", "java-4.x-consumer")
OF_MAKE_TEST = (
    ("confluent", "killed"),
    ("java-3.9.1", "killed"),
    ("java-4.x", "killed"),
    ("confluent-consumer", "closed"),
)
INSTANCES = ("one", "two", "three")
PARTITIONS = 6


def generation(broker: Broker, group: str, client: str) -> int:
    """The present generation of a group, or its epoch, once it is stable."""
    ask = epoch if speaks_new_protocol(client) else generation_of_classic
    return eventually(lambda: ask(broker, group), "a stable group")


def epoch(broker: Broker, group: str) -> int:
    with Raw(("127.0.0.1", broker.port)) as raw:
        (described,) = raw.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
    assert described.group_state == "Stable", described.group_state
    found: int = described.group_epoch
    return found


def generation_of_classic(broker: Broker, group: str) -> int:
    with Raw(("127.0.0.1", broker.port)) as raw:
        (described,) = raw.ask(DescribeGroupsRequest(groups=[group]), 5).groups
        assert described.group_state == "Stable", described.group_state
        member = described.members[0]
        for number in count(1):
            beat = HeartbeatRequest(
                group_id=group,
                generation_id=number,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
            )
            error = raw.ask(beat, 4).error_code
            if error == ErrorCode.NONE:
                return number
            assert error == ErrorCode.ILLEGAL_GENERATION, ErrorCode(error)
    raise AssertionError("unreachable")


@pytest.fixture
def start(broker: Broker, topic: MakeTopic, name: str, join: Join) -> Callable[..., Member]:
    """Starts members of the test's group, which reads the test's topic of six partitions.

    franz-go's default is cooperative, with two generations for a change; that of the others is `range`.
    """
    made = topic(partitions=PARTITIONS)

    def member(client: str, instance: str | None) -> Member:
        eager = {"assignor": "range"} if client == "franz-go" else {}
        return join(client, group=name, topics=[made], session_timeout_ms=40_000, instance=instance, **eager)

    return member


def endings() -> list[Any]:
    """How a member of each client ends. In the new protocol the name of one that was killed is not free at once."""
    closed = [(client, "closed") for client in (*CLASSIC, *NEW)]
    killed = [(client, "killed") for client in CLASSIC]
    return [one if one in OF_MAKE_TEST else pytest.param(*one, marks=pytest.mark.wide) for one in (*closed, *killed)]


@pytest.mark.parametrize(("client", "ending"), endings())
def test_a_rolling_restart_triggers_no_rebalance(
    broker: Broker, name: str, start: Callable[..., Member], client: str, ending: str
) -> None:
    members = {instance: start(client, instance) for instance in INSTANCES}
    eventually(lambda: shared(name, PARTITIONS, *members.values()), "two partitions each")
    before = generation(broker, name, client)
    owned = {instance: member.assignment for instance, member in members.items()}
    for restarted in INSTANCES:
        steady = {instance: len(member.assignments) for instance, member in members.items() if instance != restarted}
        members[restarted].close() if ending == "closed" else members[restarted].kill()
        members[restarted] = start(client, restarted)
        returned = members[restarted]
        eventually(lambda: returned.assignment == owned[restarted], "its partitions again")
        assert {instance: len(members[instance].assignments) for instance in steady} == steady, "a callback elsewhere"
        assert generation(broker, name, client) == before, f"the restart of {restarted} began a new generation"
    expected = load(broker, name, PARTITIONS, 5)
    eventually(lambda: set(seen(*members.values())) >= expected, "every record")
    assert generation(broker, name, client) == before


@pytest.mark.parametrize("client", each_of(*CLASSIC, *NEW, wide=(*GO_AND_NEW_JAVA, "java-3.9.1", "java-4.x")))
def test_dynamic_members_do_rebalance(broker: Broker, name: str, start: Callable[..., Member], client: str) -> None:
    """The same restart without a name is counted: one generation when the member leaves, one when it comes back."""
    steady, restless = start(client, None), start(client, None)
    eventually(lambda: shared(name, PARTITIONS, steady, restless), "three partitions each")
    before, heard = generation(broker, name, client), len(steady.assignments)
    restless.close()
    eventually(lambda: shared(name, PARTITIONS, steady), "all partitions")
    returned = start(client, None)
    eventually(lambda: shared(name, PARTITIONS, steady, returned), "three partitions each again")
    assert generation(broker, name, client) == before + 2
    assert len(steady.assignments) > heard
