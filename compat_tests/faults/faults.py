"""What can happen to a cluster, as data: a table of faults. `rounds` draws from it.

A fault has a beginning and an end. Its victims are drawn when a round is planned, while the cluster is whole and
everybody's role is known. Names of faults are what `--only` takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple, TypeVar

from compat_tests.faults.cluster import BROKERS, FaultyCluster
from compat_tests.faults.groups.history import SESSION_MS
from compat_tests.faults.proxy import CLIENTS, ZOOKEEPER, Cut, Node
from compat_tests.support.waiting import eventually
from kpybroker.wire.api import ApiKey

T = TypeVar("T")

LOSSES_MAX = 4
ROLLING_WAIT_S = 20.0

ZOOKEEPER_WRITES = (1, 2, 5, 14)
"""create, delete, setData, multi"""
CLIENT_APIS = (
    ApiKey.PRODUCE,
    ApiKey.END_TXN,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_COMMIT,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
)
PEER_APIS = (
    ApiKey.FETCH,
    ApiKey.LEADER_AND_ISR,
    ApiKey.UPDATE_METADATA,
    ApiKey.ALTER_PARTITION,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
)


class Fault(NamedTuple):
    text: str
    begin: Callable[[], object]
    end: Callable[[], object]


class Roles(NamedTuple):
    """Who is what before a round; `leaders` by partition of the main topic, `coordinators` of the internal ones."""

    leaders: Sequence[int]
    coordinators: Sequence[int]
    controller: int

    def draw(self, random: Random) -> tuple[str, int]:
        """A role and who has it."""
        leader = random.choice(self.leaders)
        return random.choice(
            [
                ("leader", leader),
                ("controller", self.controller),
                ("follower", random.choice([i for i in BROKERS if i != leader])),
                ("coordinator", random.choice(self.coordinators)),
            ]
        )


Maker = Callable[[FaultyCluster, Roles, Random], Fault]


def kill(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    role, victim = roles.draw(random)
    return Fault(f"kill {role} {victim}", lambda: cluster.kill(victim), lambda: cluster.start_broker(victim))


def kill_several(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    victims = random.sample(BROKERS, random.choice((2, 3)))
    return Fault(f"kill {victims}", _each(cluster.kill, victims), _each(cluster.start_broker, victims))


def kill_and_tear(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    """Killed in the middle of an append, or so that the end of one never came to the disk."""
    role, victim = roles.draw(random)
    zeros = random.random() < 0.5
    return Fault(
        f"kill {role} {victim} and tear its logs",
        lambda: cluster.kill_and_tear(victim, zeros=zeros),
        lambda: cluster.start_broker(victim),
    )


def pause(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    role, victim = roles.draw(random)
    return Fault(f"pause {role} {victim}", lambda: cluster.pause(victim), lambda: cluster.resume(victim))


def pause_and_kill(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    """A follower stands still while records come, then the leader is gone: it must not lead without them."""
    leader = random.choice(roles.leaders)
    follower = random.choice([i for i in BROKERS if i != leader])
    (third,) = set(BROKERS) - {leader, follower}
    both = random.choice(([leader], [leader, third]))

    def end() -> None:
        _each(cluster.kill, both)()
        cluster.resume(follower)

    return Fault(f"pause follower {follower}, then kill {both}", lambda: cluster.pause(follower), end)


def stop(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    role, victim = roles.draw(random)
    return Fault(f"stop {role} {victim}", lambda: cluster.terminate(victim), lambda: cluster.start_broker(victim))


def roll(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    order = random.sample(BROKERS, 3)

    def begin() -> None:
        for broker_id in order:
            cluster.terminate(broker_id)
            cluster.start_broker(broker_id)
            service = cluster.brokers[broker_id].service
            line = f"[KafkaServer id={broker_id}] started"
            with suppress(AssertionError):
                eventually(lambda: line in service.output(), "its start", ROLLING_WAIT_S)

    return Fault(f"rolling restart {order}", begin, nothing)


def kill_zookeeper(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    return Fault("kill ZooKeeper", cluster.kill_zookeeper, cluster.start_zookeeper)


def pause_zookeeper(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    return Fault("pause ZooKeeper", cluster.pause_zookeeper, cluster.resume_zookeeper)


def expire(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    role, victim = roles.draw(random)
    return Fault(f"expire the session of {role} {victim}", lambda: cluster.expire(victim), nothing)


def cut_peers(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    one, other = random.sample(BROKERS, 2)
    return _cut(cluster, [(one, other), (other, one)], random)


def cut_one_way(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    one, other = random.sample(BROKERS, 2)
    return _cut(cluster, [(one, other)], random)


def cut_zookeeper(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    _, victim = roles.draw(random)
    return _cut(cluster, [(victim, ZOOKEEPER)], random)


def cut_clients(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    """Never by a reset: a broker that hangs up on librdkafka's first request is an old broker to it (see
    `proxy._Door`)."""
    _, victim = roles.draw(random)
    return _cut(cluster, [(CLIENTS, victim)], random, (Cut.STALL, Cut.STALL_RESPONSES))


def isolate(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    """From its peers and ZooKeeper, while clients still reach it."""
    _, victim = roles.draw(random)
    others = [i for i in BROKERS if i != victim]
    ways: list[tuple[Node, Node]] = [(victim, ZOOKEEPER)]
    for other in others:
        ways += [(victim, other), (other, victim)]
    return _cut(cluster, ways, random)


def lose_client_responses(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    return _lose(cluster, CLIENTS, roles.draw(random)[1], random.choice(CLIENT_APIS), random)


def lose_produce_responses(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    return _lose(cluster, CLIENTS, random.choice(roles.leaders), ApiKey.PRODUCE, random)


def lose_peer_responses(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    one, other = random.sample(BROKERS, 2)
    return _lose(cluster, one, other, random.choice(PEER_APIS), random)


def lose_zookeeper_responses(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    """Written, but the writer does not know."""
    victim = roles.controller if random.random() < 0.7 else roles.draw(random)[1]
    count = random.randint(1, LOSSES_MAX)
    return Fault(
        f"lose {count} responses of ZooKeeper's to {victim}",
        lambda: cluster.network.lose_responses(victim, ZOOKEEPER, ZOOKEEPER_WRITES, count),
        nothing,
    )


def kill_members(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    victims = random.sample(cluster.applications, random.choice((1, 1, 2)))
    names = ", ".join(victim.name for victim in victims)
    return Fault(
        f"kill the members of {names}",
        _each(lambda victim: victim.kill(), victims),
        _each(lambda victim: victim.start(), victims),
    )


def pause_members(cluster: FaultyCluster, roles: Roles, random: Random) -> Fault:
    """They stand still, often for longer than their session: then they go on with partitions that others have."""
    victim = random.choice(cluster.applications)
    longer_s = random.choice((0, SESSION_MS / 1000))

    def end() -> None:
        time.sleep(longer_s)
        victim.resume()

    return Fault(f"pause the members of {victim.name} (and {longer_s:.0f} s)", victim.pause, end)


def _cut(
    cluster: FaultyCluster, ways: Sequence[tuple[Node, Node]], random: Random, kinds: Sequence[Cut] = tuple(Cut)
) -> Fault:
    how = random.choice(kinds)

    def begin() -> None:
        for source, target in ways:
            cluster.network.cut(source, target, how)

    def end() -> None:
        for source, target in ways:
            cluster.network.heal_way(source, target)

    return Fault(f"cut {', '.join(f'{a}->{b}' for a, b in ways)} ({how})", begin, end)


def _lose(cluster: FaultyCluster, source: Node, target: Node, api: ApiKey, random: Random) -> Fault:
    count = random.randint(1, LOSSES_MAX)
    return Fault(
        f"lose {count} responses to {api.name} {source}->{target}",
        lambda: cluster.network.lose_responses(source, target, (api,), count),
        nothing,
    )


def _each(action: Callable[[T], object], victims: Sequence[T]) -> Callable[[], None]:
    def act() -> None:
        for victim in victims:
            action(victim)

    return act


def nothing() -> None:
    pass


FAULTS: dict[str, tuple[Maker, int]] = {
    "kill": (kill, 4),
    "kill-and-tear": (kill_and_tear, 1),
    "kill-several": (kill_several, 1),
    "pause": (pause, 4),
    "pause-and-kill": (pause_and_kill, 2),
    "stop": (stop, 2),
    "roll": (roll, 1),
    "kill-zookeeper": (kill_zookeeper, 1),
    "pause-zookeeper": (pause_zookeeper, 1),
    "expire": (expire, 2),
    "cut-peers": (cut_peers, 2),
    "cut-one-way": (cut_one_way, 2),
    "cut-zookeeper": (cut_zookeeper, 2),
    "cut-clients": (cut_clients, 1),
    "isolate": (isolate, 3),
    "lose-client-responses": (lose_client_responses, 2),
    "lose-produce-responses": (lose_produce_responses, 2),
    "lose-peer-responses": (lose_peer_responses, 2),
    "lose-zookeeper-responses": (lose_zookeeper_responses, 2),
    "kill-members": (kill_members, 3),
    "pause-members": (pause_members, 3),
}
"""By name: who makes it, and how often it is drawn among the others."""
OF_MEMBERS = frozenset(("kill-members", "pause-members"))
"""They need applications."""
