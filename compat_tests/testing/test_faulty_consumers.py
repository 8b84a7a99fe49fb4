"""What consumers of three libraries make of each fault: what heals by itself, and what reaches the application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.testing.faulty_clients import LIBRARIES, Goal, consume
from kpybroker.testing import Broker, Fault

VALUES = [f"message {number}" for number in range(20)]
MakeFault = Callable[[Broker, str], Fault]


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(config={"group.min.session.timeout.ms": 100}) as broker:
        yield broker


@pytest.fixture
def faulty(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


@pytest.fixture
def topic(faulty: Broker, request: pytest.FixtureRequest) -> str:
    """With `VALUES` in two batches. A group of the same name is the consumer's."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[-60:]
    faulty.create_topic(name, partitions=1)
    for values in (VALUES[:5], VALUES[5:]):
        faulty.produce(name, values)
    return name


HEALED: dict[str, tuple[MakeFault, int]] = {
    "no coordinator": (
        lambda broker, group: broker.faults.error("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", group=group, times=2),
        2,
    ),
    "the coordinator loads": (
        lambda broker, group: broker.faults.error("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", group=group, times=2),
        2,
    ),
    "another coordinator at the join": (
        lambda broker, group: broker.faults.error("JoinGroup", "NOT_COORDINATOR", group=group, times=1),
        1,
    ),
    "another coordinator at the sync": (
        lambda broker, group: broker.faults.error("SyncGroup", "NOT_COORDINATOR", group=group, times=1),
        1,
    ),
    "a rebalance at the sync": (
        lambda broker, group: broker.faults.error("SyncGroup", "REBALANCE_IN_PROGRESS", group=group, times=1),
        1,
    ),
    "no offsets yet": (
        lambda broker, group: broker.faults.error("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", group=group, times=2),
        2,
    ),
    "no commit yet": (
        lambda broker, group: broker.faults.error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", group=group, times=1),
        1,
    ),
    "the join is disconnected": (
        lambda broker, group: broker.faults.disconnect("JoinGroup", group=group, once=True),
        1,
    ),
    "not the leader of the fetch": (
        lambda broker, group: broker.faults.error("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=group, times=2),
        2,
    ),
    "an unknown epoch": (
        lambda broker, group: broker.faults.error("Fetch", "UNKNOWN_LEADER_EPOCH", topic=group, times=2),
        2,
    ),
    "out of range": (
        lambda broker, group: broker.faults.error("Fetch", "OFFSET_OUT_OF_RANGE", topic=group, once=True),
        1,
    ),
    "not the leader of the offsets": (
        lambda broker, group: broker.faults.error("ListOffsets", "NOT_LEADER_OR_FOLLOWER", topic=group, times=2),
        2,
    ),
    "no leader in the metadata": (
        lambda broker, group: broker.faults.error(
            "Metadata", "LEADER_NOT_AVAILABLE", topic=group, partition=0, times=2
        ),
        2,
    ),
    "the fetch is disconnected": (lambda broker, group: broker.faults.disconnect("Fetch", topic=group, times=2), 2),
    "the fetch is reset after the work": (
        lambda broker, group: broker.faults.reset("Fetch", "after", topic=group, times=2),
        2,
    ),
    "half a response": (lambda broker, group: broker.faults.truncate("Fetch", 100, topic=group, times=2), 2),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", HEALED)
def test_what_heals_by_itself(faulty: Broker, topic: str, library: str, name: str) -> None:
    make_fault, hits = HEALED[name]
    fault = make_fault(faulty, topic)
    assert consume(faulty, library, topic, topic, Goal(len(VALUES))) == VALUES
    faulty.assert_committed(topic, topic, {0: len(VALUES)})
    assert 1 <= fault.hits <= hits  # a client may do without a second try


@pytest.mark.parametrize("library", LIBRARIES)
def test_responses_in_pieces(faulty: Broker, topic: str, library: str) -> None:
    fault = faulty.faults.slice("Fetch", 50, topic=topic)
    assert consume(faulty, library, topic, topic, Goal(len(VALUES))) == VALUES
    assert fault.hits >= 1


RAISED: dict[str, dict[str, str | None]] = {
    "crc": {
        "confluent-kafka": "_BAD_MSG",
        "kafka-python": "CorruptRecordError",
        "aiokafka": "CorruptRecordException",
    },
    "length": {
        "confluent-kafka": None,
        "kafka-python": "CorruptRecordError",
        "aiokafka": "CorruptRecordException",
    },
    "magic": {"confluent-kafka": "_NOT_IMPLEMENTED", "kafka-python": None, "aiokafka": None},
    "record": {
        "confluent-kafka": None,
        "kafka-python": "CorruptRecordError",
        "aiokafka": "CorruptRecordException",
    },
}
"""What each client raises for each damage. None: it fetches again (librdkafka), or does not look at the magic."""


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("damage", RAISED)
def test_a_corrupt_batch(faulty: Broker, topic: str, library: str, damage: Any) -> None:
    fault = faulty.faults.corrupt(damage, topic=topic, once=True)
    expected = RAISED[damage][library]
    if expected is None:
        assert consume(faulty, library, topic, topic, Goal(len(VALUES))) == VALUES
    else:
        with pytest.raises(Exception) as raised:
            consume(faulty, library, topic, topic, Goal(len(VALUES)))
        error: Any = raised.value
        assert expected == (error.args[0].name() if library == "confluent-kafka" else type(error).__name__)
        assert consume(faulty, library, topic, f"{topic}-again", Goal(len(VALUES))) == VALUES
    assert fault.hits == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_member_that_is_unknown_joins_again(faulty: Broker, topic: str, library: str) -> None:
    """The group still has the member that was sent away, until the time of its session is over."""
    fault = faulty.faults.error("Heartbeat", "UNKNOWN_MEMBER_ID", group=topic, once=True)
    joins = faulty.faults.observe("JoinGroup", group=topic)
    is_expired = False

    def has_joined_again() -> bool:
        nonlocal is_expired
        if not is_expired and fault.hits == 1 and joins.hits >= 4:  # each join asks for a member id first
            faulty.clock.advance(seconds=46)
            is_expired = True
        return is_expired

    values = consume(
        faulty, library, topic, topic, Goal(len(VALUES), has_joined_again, commits=False), heartbeat_interval_ms=100
    )
    assert list(dict.fromkeys(values)) == VALUES


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_silenced_consumer_connects_again(faulty: Broker, topic: str, library: str) -> None:
    fault = faulty.faults.never_answer("Fetch", topic=topic, once=True)
    short: dict[str, Any] = {"session_timeout_ms": 4000, "heartbeat_interval_ms": 300}
    if library == "confluent-kafka":
        short["socket_timeout_ms"] = 1500
    else:
        short["request_timeout_ms"] = 4500  # it must be longer than a session
    assert consume(faulty, library, topic, topic, Goal(len(VALUES)), **short) == VALUES
    assert fault.hits == 1
