"""The bytes that classic consumers and their leaders exchange, as the coordinator reads and writes them."""

from __future__ import annotations

import pytest

from kpybroker.core.group.migration.embedded import (
    NEWEST,
    Subscription,
    encode_assignment,
    parse_assignment,
    parse_subscription,
)
from kpybroker.core.modern_group.values import TopicMetadata
from kpybroker.wire.codec import encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.core.consumer_group.harness import Topics, classic_assignment, classic_subscription, topic_id

TOPICS = Topics(1, [TopicMetadata(topic_id(name), name, 4) for name in "tu"])
T, U = topic_id("t"), topic_id("u")


def subscription_of(version: int) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=["t", "gone"],
        user_data=b"x",
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=[1, 0]) for topic in ("t", "gone")
        ],
        generation_id=7,
        rack_id="r",
    )
    if version == 0:
        message.owned_partitions = []
    if version < 2:
        message.generation_id = -1
    if version < 3:
        message.rack_id = None
    return version.to_bytes(2, "big") + encode(message, version)


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_a_subscription_of_each_version(version: int) -> None:
    owned = {T: frozenset((0, 1))} if version >= 1 else {}
    rack_id, generation_id = "r" if version >= 3 else None, 7 if version >= 2 else -1
    expected = Subscription(frozenset(("t", "gone")), rack_id, owned, generation_id)
    assert parse_subscription(subscription_of(version), TOPICS) == expected


def test_a_later_version_is_read_as_the_newest_one() -> None:
    later = (NEWEST + 6).to_bytes(2, "big") + subscription_of(NEWEST)[2:] + b"more"
    assert parse_subscription(later, TOPICS) == parse_subscription(subscription_of(NEWEST), TOPICS)


def test_an_empty_rack_is_none() -> None:
    assert parse_subscription(classic_subscription(["t"], {}, ""), TOPICS).rack_id is None


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\xff\xff\0\0\0\0", b"\0\3" + b"\x7f" * 8])
def test_what_is_no_subscription(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_subscription(data, TOPICS)


@pytest.mark.parametrize("data", [b"\0", b"\0\0", b"\xff\xff\0\0\0\0", b"text"])
def test_what_is_no_assignment(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_assignment(data, TOPICS)


def test_no_bytes_assign_nothing() -> None:
    assert parse_assignment(b"", TOPICS) == ({}, False)


def test_an_assignment_names_topics_that_may_be_gone() -> None:
    assert parse_assignment(classic_assignment("t:0,1;gone:0;u:3"), TOPICS)[0] == {
        T: frozenset((0, 1)),
        U: frozenset((3,)),
    }


@pytest.mark.parametrize(("user_data", "is_own"), [(None, False), (b"", False), (b"x", True)])
def test_an_assignors_own_data(user_data: bytes | None, is_own: bool) -> None:
    data = b"\0\1" + encode(ConsumerProtocolAssignment(user_data=user_data), 1)
    assert parse_assignment(data, TOPICS) == ({}, is_own)


@pytest.mark.parametrize(
    ("subscription", "version"),
    [(subscription_of(version), version) for version in range(NEWEST + 1)]
    + [(b"\0\x09" + subscription_of(3)[2:], NEWEST), (b"", 0), (b"\xff\xff", 0)],
)
def test_an_assignment_is_written_in_the_version_of_the_subscription(subscription: bytes, version: int) -> None:
    data = encode_assignment({T: {3, 0}, topic_id("gone"): {1}, U: {2}}, TOPICS, subscription)
    assert data[:2] == version.to_bytes(2, "big")
    assert parse_assignment(data, TOPICS) == ({T: frozenset((0, 3)), U: frozenset((2,))}, False)
