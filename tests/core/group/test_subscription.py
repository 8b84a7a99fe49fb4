"""Subscriptions of any version are read by their common prefix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.group.subscription import subscribed_topics
from kpybroker.wire.codec import encode
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


@pytest.mark.parametrize("version", range(4))
def test_the_topics_of_every_version(version: int) -> None:
    subscription = ConsumerProtocolSubscription(topics=["a", "ü", "a"], user_data=b"mine")
    metadata = version.to_bytes(2, "big") + encode(subscription, version)
    assert subscribed_topics(metadata) == frozenset({"a", "ü"})
    assert subscribed_topics(metadata + b"of a later version") == frozenset({"a", "ü"})


def test_a_version_of_the_future_begins_the_same() -> None:
    assert subscribed_topics(b"\0\x63" + encode(ConsumerProtocolSubscription(topics=["a"]), 0)) == frozenset({"a"})


def test_many_topics() -> None:
    topics = [f"t{n}" for n in range(5_000)]
    assert subscribed_topics(b"\0\0" + encode(ConsumerProtocolSubscription(topics=topics), 0)) == frozenset(topics)


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0", b"\0\0\0\0\0\1", b"\0\0\xff\xff\xff\xff\0\0\0\0", b"text"])
def test_what_is_no_subscription(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None


@given(st.binary(max_size=100))
def test_any_bytes(metadata: bytes) -> None:
    topics = subscribed_topics(metadata)
    assert topics is None or all(isinstance(topic, str) for topic in topics)
