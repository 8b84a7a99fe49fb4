"""The topics in a consumer's subscription: the only thing a coordinator reads of what members tell each
other.

Version 0 of ConsumerProtocolSubscription prefixes every later version, so it is parsed as version 0 whatever
it says.
"""

from __future__ import annotations

from kpybroker.wire.codec import decode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION_SIZE = 2


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """None when the bytes are no subscription."""
    try:
        body = metadata[_VERSION_SIZE:]
        return frozenset(decode(ConsumerProtocolSubscription, body, 0, max_elements=len(body)).topics)
    except ProtocolError:
        return None
