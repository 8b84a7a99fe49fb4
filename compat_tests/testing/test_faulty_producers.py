"""What producers of three libraries make of each fault: they retry, and each message is there once, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.testing.faulty_clients import LIBRARIES, produce
from kpybroker.testing import Broker, ErrorName, Fault

VALUES = [f"message {number}" for number in range(6)]
MakeFault = Callable[[Broker, str], Fault]


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def faulty(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


@pytest.fixture
def topic(faulty: Broker, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[-60:]
    faulty.create_topic(name, partitions=1)
    return name


RETRIED: dict[str, tuple[MakeFault, int]] = {
    "not the leader": (
        lambda broker, topic: broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic, times=2),
        2,
    ),
    "not enough replicas": (
        lambda broker, topic: broker.faults.error("Produce", "NOT_ENOUGH_REPLICAS", topic=topic, times=2),
        2,
    ),
    "appended, but not replicated": (
        lambda broker, topic: broker.faults.error("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", topic=topic, times=2),
        2,
    ),
    "appended, then timed out": (
        lambda broker, topic: broker.faults.error("Produce", "REQUEST_TIMED_OUT", topic=topic, nth=3),
        1,
    ),
    "disconnected before": (lambda broker, topic: broker.faults.disconnect("Produce", topic=topic, nth=2), 1),
    "disconnected after": (lambda broker, topic: broker.faults.disconnect("Produce", "after", topic=topic, nth=2), 1),
    "reset before": (lambda broker, topic: broker.faults.reset("Produce", topic=topic, nth=2), 1),
    "reset after": (lambda broker, topic: broker.faults.reset("Produce", "after", topic=topic, nth=2), 1),
    "truncated": (lambda broker, topic: broker.faults.truncate("Produce", 9, topic=topic, nth=2), 1),
    "in pieces": (lambda broker, topic: broker.faults.slice("Produce", 7, topic=topic), 6),
    "late": (lambda broker, topic: broker.faults.delay("Produce", 50, jitter_ms=20, topic=topic), 6),
    "late after the work": (
        lambda broker, topic: broker.faults.delay("Produce", 50, after_work=True, topic=topic, times=2),
        2,
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", RETRIED)
def test_an_idempotent_producer_delivers_each_message_once(faulty: Broker, topic: str, library: str, name: str) -> None:
    make_fault, hits = RETRIED[name]
    fault = make_fault(faulty, topic)
    produce(faulty, library, topic, VALUES)
    faulty.assert_records(topic, values=VALUES)
    assert fault.hits == hits


@pytest.mark.parametrize("name", RETRIED)
def test_five_requests_in_flight_stay_in_order(faulty: Broker, topic: str, name: str) -> None:
    fault = RETRIED[name][0](faulty, topic)
    producer = faulty.producer(library="confluent-kafka", enable_idempotence=True, linger_ms=0, batch_num_messages=1)
    values = [str(number) for number in range(30)]
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(120) == 0
    faulty.assert_records(topic, values=values)
    assert fault.hits >= 1


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("after_work", [False, True])
def test_a_request_without_any_response_is_sent_again(
    faulty: Broker, topic: str, library: str, after_work: bool
) -> None:
    fault = faulty.faults.never_answer("Produce", topic=topic, nth=2, after_work=after_work)
    produce(faulty, library, topic, VALUES, request_timeout_s=1)
    faulty.assert_records(topic, values=VALUES)
    assert fault.hits == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_idempotence_an_error_after_the_append_duplicates(faulty: Broker, topic: str, library: str) -> None:
    faulty.faults.error("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", topic=topic, once=True)
    produce(faulty, library, topic, VALUES[:2], idempotent=False)
    faulty.assert_records(topic, values=[VALUES[0], VALUES[0], VALUES[1]])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("error", ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED"])
def test_an_error_that_is_final_reaches_the_application(
    faulty: Broker, topic: str, library: str, error: ErrorName
) -> None:
    faulty.faults.error("Produce", error, topic=topic)
    with pytest.raises(Exception) as raised:
        produce(faulty, library, topic, VALUES[:1], idempotent=False)
    assert NAMED[library](raised.value) == error
    faulty.assert_records(topic, values=[])


def _confluent_name(error: Any) -> str:
    name: str = error.args[0].name()
    return {"MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE"}.get(name, name)


def _class_name(error: Any) -> str:
    """MessageSizeTooLargeError is MESSAGE_TOO_LARGE, and so on."""
    return {10: "MESSAGE_TOO_LARGE", 29: "TOPIC_AUTHORIZATION_FAILED", 18: "RECORD_LIST_TOO_LARGE"}[error.errno]


NAMED: dict[str, Callable[[Any], str]] = {
    "confluent-kafka": _confluent_name,
    "kafka-python": _class_name,
    "aiokafka": _class_name,
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_only_the_topic_that_is_named_suffers(faulty: Broker, topic: str, library: str) -> None:
    faulty.create_topic(f"{topic}-other", partitions=1)
    fault = faulty.faults.error("Produce", "MESSAGE_TOO_LARGE", topic=topic, expect_unused=True)
    produce(faulty, library, f"{topic}-other", VALUES[:2])
    faulty.assert_records(f"{topic}-other", values=VALUES[:2])
    assert fault.hits == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_predicate_of_the_test_chooses_the_request(faulty: Broker, topic: str, library: str) -> None:
    seen: list[str] = []

    def has_message_2(request: Any) -> bool:
        (data,) = request["topic_data"][0]["partition_data"]
        values = [record["value"] for batch in data["records"]["batches"] for record in batch["records"]]
        seen.extend(values)
        return values == ["message 2"]

    fault = faulty.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic, times=1, when=has_message_2)
    produce(faulty, library, topic, VALUES[:4])
    faulty.assert_records(topic, values=VALUES[:4])
    assert fault.hits == 1
    assert seen.count("message 2") >= 1
