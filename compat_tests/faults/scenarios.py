"""Scenarios: rounds written step by step, for what a storm meets too rarely by chance. `make mutants` plays them
where a mutant needs more than luck; `--only` takes their names too.

A scenario finds the cluster whole and leaves it to be healed by the quiet time. It waits for what happens, never for a
length of time, except where a mutant needs a moment to do wrong. What must not be reported goes into the history: a
record that was acknowledged, or a failure in words. Real Kafka keeps what every scenario asks for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from compat_tests.faults.clients.housekeeping import ask_for_election, elect_preferred
from compat_tests.faults.clients.raw_producer import RawProducer
from compat_tests.faults.clients.watchers import GROUP_PARTITIONS, GROUP_TOPIC, java_hash
from compat_tests.faults.cluster import BROKERS, MAIN, SPREAD, FaultyCluster, quietly
from compat_tests.faults.faults import Roles
from compat_tests.faults.history import Outcome, Transaction
from compat_tests.faults.proxy import ZOOKEEPER, Cut, Node
from compat_tests.faults.transaction_scenarios import end_in_later_epochs, repeat_marker, write_without_adding
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import PartitionState
from compat_tests.support.waiting import eventually
from kpybroker.storage.disk.checkpoints import decode_leader_epochs
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import parse_request_header
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.records.batch import iter_batches

GROUP = "followers"
"""The group that reads the main topic."""
CHANGE_S = 30.0
WRONG_S = 8.0
"""So long a mutant is given to do what a broker must not."""
LOOKS_S = 1.5
"""Time for several looks of the watchers, and less than a follower that does not fetch stays in the ISR."""
RECORDS = 10
SHUT_DOWN = "shut down completed"


# --- who leads


def lead_from_behind(cluster: FaultyCluster, roles: Roles) -> None:
    """A follower stands still until the ISR goes on without it; then all who are in the ISR die. It must not lead."""
    leader = roles.leaders[0]
    follower, third = (broker for broker in BROKERS if broker != leader)
    _leave_behind(cluster, follower)
    cluster.kill(leader)
    cluster.kill(third)
    cluster.resume(follower)
    _perhaps(lambda: _state(cluster).leader == follower)


def depose_leader(cluster: FaultyCluster, roles: Roles) -> None:
    """A leader that is cut off writes on until it hears of the next one. When it leads again, that is gone."""
    leader = _lead(cluster, 0)
    _depose(cluster, MAIN, 0, leader)
    _lead(cluster, 0)


def depose_coordinator(cluster: FaultyCluster, roles: Roles) -> None:
    """What a group's coordinator received while it was cut off, it must report to no client."""
    index = java_hash(GROUP) % GROUP_PARTITIONS
    _depose(cluster, GROUP_TOPIC, index, cluster.cluster.state(GROUP_TOPIC, index).leader)


def depose_controller(cluster: FaultyCluster, roles: Roles) -> None:
    """Its session ends and another is elected: when it is registered again, it is no controller any more."""
    former = roles.controller
    cluster.network.cut(former, ZOOKEEPER, Cut.STALL)
    _wait_for_other_controller(cluster, former)
    cluster.network.heal_way(former, ZOOKEEPER)
    eventually(lambda: former in cluster.cluster.live(), f"{former} registers again", CHANGE_S)
    before = cluster.cluster.controller()
    said = ask_for_election(cluster, former)
    if former not in (before, cluster.cluster.controller()) and said != {ErrorCode.NOT_CONTROLLER}:
        cluster.history.failures.append(f"{former} held an election, {said}, when {before} was the controller")


# --- what is repeated


def repeat_orders(cluster: FaultyCluster, roles: Roles) -> None:
    """A broker leads a partition for one epoch. It hears once more that it shall, in the next one."""
    controller = roles.controller
    index = next(n for n, (first, second, _) in enumerate(SPREAD) if controller not in (first, second))
    second = SPREAD[index][1]
    first = _lead(cluster, index)
    cluster.kill(first)
    eventually(lambda: _state(cluster, index).leader == second, f"{second} leads", CHANGE_S)
    order = eventually(lambda: _order_to_lead(cluster, controller, second, index), "the order to lead", CHANGE_S)
    cluster.start_broker(first)
    eventually(lambda: first in _state(cluster, index).isr, f"{first} is back", CHANGE_S)
    _lead(cluster, index)
    response = _repeat(cluster, second, order)
    assert isinstance(response, LeaderAndIsrResponse)
    codes = [found.error_code for topic in response.topics for found in topic.partition_errors]
    if not response.error_code and ErrorCode.NONE in codes:
        cluster.history.failures.append(f"{second} obeyed an order of an earlier leader epoch: {codes}")


def repeat_former_controller(cluster: FaultyCluster, roles: Roles) -> None:
    """What a controller has said reaches the others again when there is another one."""
    former = roles.controller
    others = [broker for broker in BROKERS if broker != former]
    orders = {
        broker: next(f for f in reversed(cluster.network.orders(former, broker)) if _key(f) is ApiKey.UPDATE_METADATA)
        for broker in others
    }
    cluster.kill(former)
    now = _wait_for_other_controller(cluster, former)
    for broker in others:
        eventually(lambda: cluster.cluster.controller_seen_by(broker) == now, f"{broker} knows {now}", CHANGE_S)
        code = ErrorCode(_repeat(cluster, broker, orders[broker]).error_code)
        if code is ErrorCode.NONE:
            cluster.history.failures.append(f"{broker} obeyed {former}, when {now} was the controller")


# --- what producers send again


def resend_after_failover(cluster: FaultyCluster, roles: Roles) -> None:
    """What a leader has acknowledged is sent again to the next one, as if the response was lost."""
    leader = _lead(cluster, 0)
    producer = RawProducer(cluster)
    for number in range(3):
        assert producer.write(leader, 0, number) is ErrorCode.NONE
    cluster.kill(leader)
    producer.write(_next_leader(cluster, MAIN, 0, leader), 0, 2)


def resend_after_truncation(cluster: FaultyCluster, roles: Roles) -> None:
    """A batch that was cut off with its leader's tail is sent again to that leader when it leads once more."""
    leader = _lead(cluster, 0)
    producer = RawProducer(cluster)
    assert producer.write(leader, 0, 0) is ErrorCode.NONE
    _isolate(cluster, leader)
    assert producer.write(leader, 0, 1, acks=1) is ErrorCode.NONE
    _next_leader(cluster, MAIN, 0, leader)
    _wait_for_acknowledgements(cluster)
    cluster.network.heal()
    eventually(lambda: leader in _state(cluster).isr, f"{leader} is back", CHANGE_S)
    _lead(cluster, 0)
    eventually(lambda: producer.write(leader, 0, 1) is ErrorCode.NONE, "it is taken", CHANGE_S)


def commit_below_min_isr(cluster: FaultyCluster, roles: Roles) -> None:
    """A transaction is committed while the leader of what it wrote is alone: the marker comes later, but it comes."""
    producer = RawProducer(cluster, is_transactional=True)
    index, leader = next((n, broker) for n, broker in enumerate(roles.leaders) if broker != producer.coordinator)
    producer.add(MAIN, index)
    assert producer.write(leader, index, 0) is ErrorCode.NONE
    for other in BROKERS:
        if other != leader:
            cluster.network.cut(other, leader, Cut.STALL)
    eventually(lambda: _state(cluster, index).isr == {leader}, f"{leader} is alone", CHANGE_S)
    producer.commit()
    cluster.history.transactions.append(Transaction(Outcome.COMMITTED, (((MAIN, index), producer.record(0)),)))
    time.sleep(LOOKS_S)  # so that the marker is under way
    cluster.network.heal()


# --- who has what


def fetch_without_responses(cluster: FaultyCluster, roles: Roles) -> None:
    """A follower that is behind asks and asks, and gets nothing. That does not bring it into the ISR."""
    leader = _lead(cluster, 0)
    follower = SPREAD[0][1]
    _leave_behind(cluster, follower)
    cluster.network.cut(follower, leader, Cut.STALL_RESPONSES)
    cluster.resume(follower)
    _perhaps(lambda: follower in _state(cluster).isr)
    time.sleep(LOOKS_S)


def follow_while_cut(cluster: FaultyCluster, roles: Roles) -> None:
    """A follower of the ISR gets a new leader that it cannot reach yet. It keeps what it has."""
    first, second, third = SPREAD[0]
    _lead(cluster, 0)
    cluster.kill(first)
    eventually(lambda: _state(cluster).leader == second, f"{second} leads", CHANGE_S)
    cluster.start_broker(first)
    eventually(lambda: _state(cluster).isr == set(BROKERS), "all are in sync", CHANGE_S)
    cluster.network.cut(third, first, Cut.STALL)
    _lead(cluster, 0)
    time.sleep(LOOKS_S)


def look_at_epochs(cluster: FaultyCluster, roles: Roles) -> None:
    """Who has ended in order has every leader epoch of its batches in its checkpoints."""
    victim = roles.leaders[0]
    cluster.terminate(victim)
    broker = cluster.brokers[victim]
    if SHUT_DOWN not in broker.service.output():
        return
    for index in range(len(SPREAD)):
        directory = broker.data_dir / f"{MAIN}-{index}"
        path = directory / "leader-epoch-checkpoint"
        noted = (
            {entry.epoch for entry in decode_leader_epochs(path.read_bytes(), str(path))} if path.exists() else set()
        )
        held = {
            header.partition_leader_epoch
            for segment in directory.glob("*.log")
            for _, header in iter_batches(segment.read_bytes())
        }
        if held - noted:
            cluster.history.failures.append(f"{victim} has noted epochs {noted} of {MAIN}-{index}, which has {held}")


# --- steps


def _state(cluster: FaultyCluster, index: int = 0) -> PartitionState:
    state = quietly(lambda: cluster.cluster.state(MAIN, index))
    assert state is not None, "the tree does not respond"
    return state


def _lead(cluster: FaultyCluster, index: int) -> int:
    """The preferred leader of one of the main topic's partitions leads it."""
    first = SPREAD[index][0]

    def leads() -> bool:
        if _state(cluster, index).leader != first:
            elect_preferred(cluster)
        return _state(cluster, index).leader == first

    eventually(leads, f"{first} leads {MAIN}-{index}", CHANGE_S)
    return first


def _next_leader(cluster: FaultyCluster, topic: str, index: int, former: int) -> int:
    def next_one() -> int:
        state = quietly(lambda: cluster.cluster.state(topic, index))
        return 0 if state is None or state.leader in (former, -1) else state.leader

    return eventually(next_one, f"{topic}-{index} has another leader than {former}", CHANGE_S)


def _wait_for_other_controller(cluster: FaultyCluster, former: int) -> int:
    def other() -> int:
        found = quietly(cluster.cluster.controller)
        return 0 if found is None or found == former else found

    return eventually(other, f"another controller than {former}", CHANGE_S)


def _isolate(cluster: FaultyCluster, victim: int) -> None:
    ways: list[tuple[Node, Node]] = [(victim, ZOOKEEPER)]
    ways += [way for other in BROKERS if other != victim for way in ((victim, other), (other, victim))]
    for source, target in ways:
        cluster.network.cut(source, target, Cut.RESET)


def _depose(cluster: FaultyCluster, topic: str, index: int, leader: int) -> None:
    _isolate(cluster, leader)
    _next_leader(cluster, topic, index, leader)
    _wait_for_acknowledgements(cluster)
    cluster.network.heal()
    eventually(lambda: leader in cluster.cluster.state(topic, index).isr, f"{leader} is back", CHANGE_S)


def _leave_behind(cluster: FaultyCluster, follower: int) -> None:
    cluster.pause(follower)
    eventually(lambda: follower not in _state(cluster).isr, f"the ISR goes on without {follower}", CHANGE_S)
    _wait_for_acknowledgements(cluster)


def _wait_for_acknowledgements(cluster: FaultyCluster) -> None:
    acknowledged = cluster.history.acknowledged[MAIN, 0]
    goal = len(acknowledged) + RECORDS
    eventually(lambda: len(acknowledged) >= goal, f"{RECORDS} records are acknowledged", CHANGE_S)


def _perhaps(condition: Callable[[], bool]) -> None:
    """What only a mutant lets happen."""
    end = time.monotonic() + WRONG_S
    while time.monotonic() < end and not condition():
        time.sleep(0.05)


def _key(frame: bytes) -> ApiKey:
    return ApiKey(int.from_bytes(frame[4:6], "big"))


def _order_to_lead(cluster: FaultyCluster, controller: int, broker: int, index: int) -> bytes | None:
    """The latest order to `broker` that it lead a partition of the main topic."""
    for frame in reversed(cluster.network.orders(controller, broker)):
        if _key(frame) is ApiKey.LEADER_AND_ISR:
            header = parse_request_header(frame[4:])
            request = decode(LeaderAndIsrRequest, frame[4 + header.body_offset :], header.api_version)
            for topic in request.topic_states:
                for state in topic.partition_states:
                    if (topic.topic_name, state.partition_index, state.leader) == (MAIN, index, broker):
                        return frame
    return None


def _repeat(cluster: FaultyCluster, broker: int, frame: bytes) -> Any:
    with Raw(("127.0.0.1", cluster.peer_ports[broker])) as connection:
        connection.send(frame)
        return connection.response(_key(frame), int.from_bytes(frame[6:8], "big"))


Scenario = Callable[[FaultyCluster, Roles], None]
SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.__name__.replace("_", "-"): scenario
        for scenario in (
            *(lead_from_behind, depose_leader, depose_coordinator, depose_controller),
            *(repeat_orders, repeat_former_controller),
            *(resend_after_failover, resend_after_truncation, commit_below_min_isr),
            *(fetch_without_responses, follow_while_cut, look_at_epochs),
            *(write_without_adding, end_in_later_epochs, repeat_marker),
        )
    }
)
