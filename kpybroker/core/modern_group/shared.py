"""What all groups of one kind share in a machine: topics, timers, the budget, counts, who subscribes to a topic."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable
from typing import Final

from kpybroker.core.budget import StateBudget
from kpybroker.core.modern_group.timers import MemberTimers
from kpybroker.core.modern_group.values import GroupCounts, NoTopics, TopicMetadata, Topics

HASH_VERSION: Final = b"\x00"
HASH_BYTES: Final = 8


class Shared:
    """`topics` is the latest metadata; `new_topics_version` is that of the last one with a topic that was not there."""

    __slots__ = (
        "_hashes",
        "budget",
        "counts",
        "groups_by_topic",
        "new_topics_version",
        "timers",
        "topics",
    )

    def __init__(self, counts: GroupCounts, budget: StateBudget) -> None:
        self.counts = counts
        self.budget = budget
        self.timers = MemberTimers()
        self.topics: Topics = NoTopics()
        self.new_topics_version = -1
        self.groups_by_topic: dict[str, set[str]] = {}
        self._hashes: dict[str, tuple[TopicMetadata, bytes]] = {}  # of subscribed topics

    def update_topics(self, topics: Topics, changed: Iterable[str], *, has_new: bool) -> set[str]:
        """There is new metadata; returns the groups that subscribe to a topic that changed (made, altered, deleted)."""
        self.topics = topics
        if has_new or self.new_topics_version == -1:
            self.new_topics_version = topics.version
        affected: set[str] = set()
        for name in changed:
            self._hashes.pop(name, None)
            affected |= self.groups_by_topic.get(name, set())
        return affected

    def subscribe(self, group_id: str, topic_name: str) -> None:
        """The group subscribes to the topic."""
        self.groups_by_topic.setdefault(topic_name, set()).add(group_id)

    def unsubscribe(self, group_id: str, topic_name: str) -> None:
        """The group does not subscribe to the topic any more."""
        groups = self.groups_by_topic.get(topic_name, set())
        groups.discard(group_id)
        if not groups:
            self.groups_by_topic.pop(topic_name, None)
            self._hashes.pop(topic_name, None)

    def topic_ids(self, topic_names: Collection[str]) -> frozenset[bytes]:
        """The ids of those topics that exist."""
        by_name = self.topics.by_name
        return frozenset(topic.topic_id for topic in map(by_name, topic_names) if topic is not None)

    def metadata_hash(self, topic_names: Iterable[str]) -> int:
        """A signed 64-bit number that changes when one of the topics does; 0 if none exists.

        Kafka's is XXH3 of the same facts. A Kafka that loads ours finds another one, and assigns again, once.
        """
        hashes = [self._topic_hash(topic) for name in sorted(topic_names) if (topic := self.topics.by_name(name))]
        if not hashes:
            return 0
        digest = hashlib.blake2b(b"".join(hashes), digest_size=HASH_BYTES).digest()
        return int.from_bytes(digest, "big", signed=True)

    def _topic_hash(self, topic: TopicMetadata) -> bytes:
        known = self._hashes.get(topic.name)
        if known is not None and known[0] == topic:
            return known[1]
        hashed = hashlib.blake2b(HASH_VERSION + topic.topic_id, digest_size=HASH_BYTES)
        hashed.update(_text(topic.name))
        hashed.update(struct.pack(">i", topic.partition_count))
        for racks in topic.racks:
            hashed.update(struct.pack(">i", len(racks)))
            for rack in racks:
                hashed.update(_text(rack))
        digest = hashed.digest()
        self._hashes[topic.name] = (topic, digest)
        return digest


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return struct.pack(">i", len(data)) + data
