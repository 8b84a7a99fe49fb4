"""The topics in a consumer's subscription, the only part of members' metadata that a coordinator reads.

Every version of ConsumerProtocolSubscription begins with the fields of version 0, so all are parsed as version 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.wire.codec import decode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION_SIZE = 2


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Topics of a subscription; None where the bytes are not one."""
    try:
        body = metadata[_VERSION_SIZE:]
        return frozenset(decode(ConsumerProtocolSubscription, body, 0, max_elements=len(body)).topics)
    except ProtocolError:
        return None


def all_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Topics of all of them; None where the bytes of one are no subscription."""
    topics: frozenset[str] = frozenset()
    for metadata in subscriptions:
        theirs = subscribed_topics(metadata)
        if theirs is None:
            return None
        topics |= theirs
    return topics
