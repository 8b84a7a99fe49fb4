"""The embedded protocol of classic consumers: subscriptions and assignments as bytes that begin with their version.

A version that is not known is read as the newest one: later ones only add to it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.modern_group.values import Topics
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.schema import Message

NEWEST: Final = 3
_VERSION = struct.Struct(">h")
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a classic member says of itself; `owned` is of those topics that exist, since `generation_id` if known."""

    topic_names: frozenset[str]
    rack_id: str | None
    owned: Partitions
    generation_id: int = -1


def parse_subscription(data: bytes, topics: Topics) -> Subscription:
    """Raises ProtocolError where the bytes are no subscription."""
    message = _parse(ConsumerProtocolSubscription, data)
    owned = ((one.topic, one.partitions) for one in message.owned_partitions)
    names = frozenset(message.topics)
    return Subscription(names, message.rack_id or None, _by_id(owned, topics), message.generation_id)


def parse_assignment(data: bytes, topics: Topics) -> tuple[Partitions, bool]:
    """The partitions of those topics that exist, and whether an assignor added data of its own.

    Nothing at all is an assignment of nothing. Raises ProtocolError where the bytes are no assignment.
    """
    if not data:
        return {}, False
    message = _parse(ConsumerProtocolAssignment, data)
    assigned = ((one.topic, one.partitions) for one in message.assigned_partitions)
    return _by_id(assigned, topics), bool(message.user_data)


def encode_assignment(partitions: Mapping[TopicId, Iterable[int]], topics: Topics, subscription: bytes) -> bytes:
    """The assignment in the version of a member's subscription. Topics that do not exist any more are left out."""
    try:
        version = _version(subscription)
    except ProtocolError:
        version = 0
    named = ((topics.by_id(topic_id), sorted(indexes)) for topic_id, indexes in partitions.items())
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic.name, partitions=indexes)
            for topic, indexes in named
            if topic is not None
        ]
    )
    return _VERSION.pack(version) + encode(message, version)


def _by_id(named: Iterable[tuple[str, Iterable[int]]], topics: Topics) -> Partitions:
    found = ((topics.by_name(name), frozenset(indexes)) for name, indexes in named)
    return {topic.topic_id: indexes for topic, indexes in found if topic is not None and indexes}


def _parse(message_class: type[M], data: bytes) -> M:
    version = _version(data)
    body = data[_VERSION.size :]
    return decode(message_class, body, version, max_elements=len(body))


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("the metadata of a member is too short for its version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"Unsupported version of the consumer protocol: {version}")
    return min(version, NEWEST)
