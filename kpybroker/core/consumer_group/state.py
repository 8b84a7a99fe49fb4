"""One consumer group: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, members, targets, patterns. Only `replay` assigns them. It never raises, whatever the order of the
records: a log may have been compacted, or written by a Kafka 3.9 in between, and the later record counts. *Derived*
from them and kept at hand: counts of names, patterns and assignors, the owners of partitions. *Live*: timers and what
runs elsewhere (`live`, `resolving`, `computing`, `successor`); lost with the partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.consumer_group.members import GONE, Member, MemberMetadata, PartitionEpochs, member_bytes
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.shared import ConsumerShared
from kpybroker.core.consumer_group.values import ConsumerGroupState, ResolvedPattern
from kpybroker.core.modern_group.state import ModernGroup
from kpybroker.core.modern_group.values import ModernGroupConfig


class ConsumerGroup(ModernGroup[Member, Partitions]):
    """A consumer group; see the module. What it takes itself is counted in its `Group`, with the offsets."""

    shared: ConsumerShared

    __slots__ = (
        "assignors",
        "classic_count",
        "classic_protocols",
        "computing",
        "has_partition_metadata",
        "holders",
        "pattern_counts",
        "patterns",
        "resolving",
        "static_members",
        "successor",
    )

    def __init__(self, group_id: str, shared: ConsumerShared) -> None:
        super().__init__(group_id, shared)
        self.patterns: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False
        # derived
        self.static_members: dict[str, str] = {}  # group.instance.id -> member id
        self.pattern_counts: Counter[str] = Counter()  # members that subscribe to a pattern
        self.assignors: Counter[str] = Counter()  # members that want an assignor
        self.classic_count = 0  # members that use the classic protocol
        self.classic_protocols: Counter[str] = Counter()  # those of them that support a protocol
        self.holders: dict[TopicId, Counter[int]] = {}  # members that have a partition: more than 1 only in an odd log
        # live
        self.resolving = False
        self.computing: object | None = None
        self.successor: object | None = None  # what takes the group's place, if its end has been written for that

    # --- views

    @property
    def config(self) -> ModernGroupConfig:
        """What holds for the group now."""
        return self.shared.surroundings.config_of(self.group_id)

    @property
    def state(self) -> ConsumerGroupState:
        """The group's state, from those of its members."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch.epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.current.is_reconciled_to(self.target_epoch.epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str) -> Member | None:
        """The member with this instance id."""
        return self.members.get(self.static_members.get(instance_id, ""))

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """A member's part of the target; that of the member whose instance id it takes over, if it does."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id, {})

    def is_free(self, topic_id: TopicId, partition: int) -> bool:
        """Whether no member has the partition, neither to use nor to give up."""
        return partition not in self.holders.get(topic_id, ())

    def is_subscribed_to(self, topic_name: str) -> bool:
        """Whether a member names the topic, or a pattern of the group matches it."""
        return topic_name in self._topic_counts

    def preferred_assignor(self, old: MemberMetadata | None = None, new: MemberMetadata | None = None) -> str:
        """The assignor that most members want, else the first of the broker's; `new` is to take the place of `old`."""
        available = list(self.shared.surroundings.assignors)
        votes = self.assignors.copy()
        votes.subtract(_named(old))
        votes.update(_named(new))
        default = available[0] if available else ""
        wanted = [name for name in available if votes[name] > 0]
        return max(wanted, key=votes.__getitem__, default=default)

    def subscribed_topics(
        self, removed: Iterable[MemberMetadata] = (), added: MemberMetadata | None = None
    ) -> frozenset[str]:
        """Every topic that the group subscribes to, as if some members had gone and one had come."""
        counts, patterns = self._topic_counts.copy(), self.pattern_counts.copy()
        for metadata in removed:
            counts.subtract(metadata.topic_names)
            patterns.subtract(_pattern(metadata))
        if added is not None:
            counts.update(added.topic_names)
            patterns.update(_pattern(added))
        for pattern, resolved in self.patterns.items():
            if patterns[pattern] <= 0:
                counts.subtract(resolved.topic_names)
        return frozenset(name for name, count in counts.items() if count > 0)

    def topic_names_of(self, metadata: MemberMetadata) -> frozenset[str]:
        """The topics that one member subscribes to; a pattern that is not resolved yet matches none."""
        resolved = self.patterns.get(metadata.pattern or "")
        return metadata.topic_names if resolved is None else metadata.topic_names | resolved.topic_names

    # --- live

    def release(self) -> None:
        """The group is gone, or its partition is; and so is all that it shares with others."""
        super().release()
        self.computing = None

    # --- the log

    def replay(self, record: ConsumerRecord) -> None:
        """Apply a record that is in the log. That a group ends (the tombstone of its epoch) is its owner's matter."""
        match record:
            case GroupEpochRecord(value=value):
                if value is not None:
                    self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case PartitionMetadataRecord(value=value):
                self.has_partition_metadata = value is not None
            case TargetEpochRecord(value=target_epoch):
                self.set_target_epoch(target_epoch)
            case TargetRecord(member_id=member_id, value=target):
                self.set_target(member_id, target)
            case PatternRecord(pattern=pattern, value=resolved):
                self._replay_pattern(pattern, resolved)
            case MemberRecord(member_id=member_id, value=metadata):
                self.set_metadata(member_id, metadata)
            case CurrentRecord(member_id=member_id, value=current):
                self.set_current(member_id, current)

    def new_member(self, member_id: str) -> Member:
        """A member of which no record is known."""
        return Member(member_id)

    def without_assignment(self, member: Member) -> Member:
        """The member, whose assignment has a tombstone."""
        return replace(member, current=GONE)

    def count(self, old: Member | None, new: Member | None) -> None:
        """Keep who has which partition, and how many members name a topic, a pattern, an assignor."""
        member = old or new
        assert member is not None
        old_metadata, new_metadata = (None if one is None else one.metadata for one in (old, new))
        if old_metadata != new_metadata:
            self._count(member.member_id, old_metadata, new_metadata)
        for one, change in ((old, -1), (new, 1)):
            if one is not None:
                self._hold(one.current.assigned, change)
                self._hold(one.current.pending_revocation, change)

    def _count(self, member_id: str, old: MemberMetadata | None, new: MemberMetadata | None) -> None:
        self.count_topics(() if new is None else new.topic_names, () if old is None else old.topic_names)
        self.classic_count += _is_classic(new) - _is_classic(old)
        counted = ((self.pattern_counts, _pattern), (self.assignors, _named), (self.classic_protocols, _protocols))
        for counts, named in counted:
            counts.update(named(new))
            counts.subtract(named(old))
            for name in named(old):
                if not counts[name]:
                    del counts[name]
        old_id, new_id = (None if metadata is None else metadata.instance_id for metadata in (old, new))
        if old_id is not None and old_id != new_id and self.static_members.get(old_id) == member_id:
            del self.static_members[old_id]
        if new_id is not None:
            self.static_members[new_id] = member_id

    def _replay_pattern(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        old = self.patterns.pop(pattern, None)
        self.count_topics(() if resolved is None else resolved.topic_names, () if old is None else old.topic_names)
        if resolved is not None:
            self.patterns[pattern] = resolved

    def _hold(self, epochs: PartitionEpochs, change: int) -> None:
        for topic_id, partitions in epochs.items():
            holders = self.holders.setdefault(topic_id, Counter())
            for partition in partitions:
                holders[partition] += change
                if not holders[partition]:
                    del holders[partition]
            if not holders:
                del self.holders[topic_id]

    def bytes_of(self, member: Member) -> int:
        """What the member takes in memory, its assignments included."""
        return member_bytes(member, self.targets.get(member.member_id, {}))


def _pattern(metadata: MemberMetadata | None) -> tuple[str, ...]:
    return (metadata.pattern,) if metadata is not None and metadata.pattern else ()


def _is_classic(metadata: MemberMetadata | None) -> bool:
    return metadata is not None and metadata.classic is not None


def _protocols(metadata: MemberMetadata | None) -> tuple[str, ...]:
    if metadata is None or metadata.classic is None:
        return ()
    return tuple(dict.fromkeys(name for name, _ in metadata.classic.protocols))


def _named(metadata: MemberMetadata | None) -> tuple[str, ...]:
    return (metadata.server_assignor,) if metadata is not None and metadata.server_assignor is not None else ()
