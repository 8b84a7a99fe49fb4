"""What a heartbeat is refused for before a group sees it: Kafka's checks, in its order and with its texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kpybroker.core.consumer_group.validation import validate
from kpybroker.core.consumer_group.values import ConsumerHeartbeat
from kpybroker.wire.errors import ErrorCode, KafkaError

JOIN = ConsumerHeartbeat("g", "m", 0, rebalance_timeout_ms=5_000, topic_names=frozenset("t"), owned={})
ASSIGNORS = ("uniform", "range")
TOPIC = b"0" * 16


def refused(request: ConsumerHeartbeat, version: int = 1) -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as raised:
        validate(request, version, ASSIGNORS)
    return raised.value.code, raised.value.message


@pytest.mark.parametrize(
    "request_",
    [
        JOIN,
        replace(JOIN, topic_names=None, pattern=""),
        replace(JOIN, topic_names=frozenset()),
        replace(JOIN, server_assignor="range"),
        replace(JOIN, instance_id="i", rack_id="r"),
        ConsumerHeartbeat("g", "m", 3),
        ConsumerHeartbeat("g", "m", -1),
        ConsumerHeartbeat("g", "m", -2, instance_id="i"),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_what_clients_send(request_: ConsumerHeartbeat, version: int) -> None:
    validate(request_, version, ASSIGNORS)


@pytest.mark.parametrize(("epoch", "needs_id"), [(0, False), (1, True), (-1, True), (-2, False)])
def test_version_0_lets_the_broker_make_the_id(epoch: int, needs_id: bool) -> None:
    request = replace(JOIN, member_id="", member_epoch=epoch, instance_id="i")
    if needs_id:
        assert refused(request, 0) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    else:
        validate(request, 0, ASSIGNORS)
    assert refused(request, 1) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("member_id", "MemberId can't be empty."),
        ("group_id", "GroupId can't be empty."),
        ("instance_id", "InstanceId can't be empty."),
        ("rack_id", "RackId can't be empty."),
    ],
)
def test_blank_texts(name: str, text: str, blank: str) -> None:
    assert refused(replace(JOIN, **{name: blank})) == (ErrorCode.INVALID_REQUEST, text)  # type: ignore[arg-type]


def test_a_text_of_other_spaces_is_one_as_in_java() -> None:
    validate(replace(JOIN, rack_id="\N{NO-BREAK SPACE}"), 1, ASSIGNORS)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (replace(JOIN, rebalance_timeout_ms=-1), "RebalanceTimeoutMs must be provided in first request."),
        (replace(JOIN, owned=None), "TopicPartitions must be empty when (re-)joining."),
        (replace(JOIN, owned={TOPIC: frozenset((0,))}), "TopicPartitions must be empty when (re-)joining."),
        (replace(JOIN, owned={TOPIC: frozenset()}), "TopicPartitions must be empty when (re-)joining."),
        (
            replace(JOIN, topic_names=None),
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (ConsumerHeartbeat("g", "m", -2), "InstanceId can't be null."),
        (ConsumerHeartbeat("g", "m", -3, instance_id="i"), "MemberEpoch is invalid."),
    ],
)
def test_what_an_epoch_asks_for(request_: ConsumerHeartbeat, text: str) -> None:
    assert refused(request_) == (ErrorCode.INVALID_REQUEST, text)


def test_an_assignor_that_the_broker_does_not_have() -> None:
    text = "ServerAssignor best is not supported. Supported assignors: uniform, range."
    assert refused(ConsumerHeartbeat("g", "m", 3, server_assignor="best")) == (ErrorCode.UNSUPPORTED_ASSIGNOR, text)


def test_the_first_mistake_counts() -> None:
    """In Kafka's order."""
    request = ConsumerHeartbeat(" ", " ", 0, instance_id="", rack_id="", server_assignor="best")
    corrections: list[Callable[[ConsumerHeartbeat], ConsumerHeartbeat]] = [
        lambda one: replace(one, member_id="m"),
        lambda one: replace(one, group_id="g"),
        lambda one: replace(one, instance_id=None),
        lambda one: replace(one, rack_id=None),
        lambda one: replace(one, rebalance_timeout_ms=1),
        lambda one: replace(one, owned={}),
        lambda one: replace(one, pattern=""),
        lambda one: replace(one, server_assignor="range"),
    ]
    texts = []
    for correct in corrections:
        texts.append(refused(request)[1].split()[0])
        request = correct(request)
    assert texts == [
        "MemberId",
        "GroupId",
        "InstanceId",
        "RackId",
        "RebalanceTimeoutMs",
        "TopicPartitions",
        "Either",
        "ServerAssignor",
    ]
    validate(request, 1, ASSIGNORS)
