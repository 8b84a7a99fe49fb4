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
from typing import Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.budget import Owner
from kpybroker.core.consumer_group.members import GONE, Member, MemberMetadata, PartitionEpochs, member_bytes
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpoch,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.shared import Shared
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
from kpybroker.core.consumer_group.values import ConsumerGroupState, ResolvedPattern

FIRST_EPOCH: Final = 1
NO_TARGET: Final = TargetEpoch(-1, 0)
"""In place of a target epoch that has a tombstone."""


class ConsumerGroup:
    """A consumer group; see the module."""

    __slots__ = (
        "_topic_counts",
        "assignors",
        "classic_count",
        "classic_protocols",
        "computing",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "holders",
        "is_released",
        "live",
        "members",
        "metadata_checked_epoch",
        "metadata_hash",
        "pattern_counts",
        "patterns",
        "resolving",
        "shared",
        "static_members",
        "successor",
        "target_epoch",
        "targets",
        "written_up_to",
    )

    def __init__(self, group_id: str, shared: Shared) -> None:
        self.group_id = group_id
        self.shared = shared
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = TargetEpoch(FIRST_EPOCH, 0)
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False
        self.written_up_to = 0  # the offset after the group's last record in the log
        # derived
        self.static_members: dict[str, str] = {}  # group.instance.id -> member id
        self.pattern_counts: Counter[str] = Counter()  # members that subscribe to a pattern
        self.assignors: Counter[str] = Counter()  # members that want an assignor
        self.classic_count = 0  # members that use the classic protocol
        self.classic_protocols: Counter[str] = Counter()  # those of them that support a protocol
        self.holders: dict[TopicId, Counter[int]] = {}  # members that have a partition: more than 1 only in an odd log
        self._topic_counts: Counter[str] = Counter()  # members and patterns that name a topic
        # live
        self.is_released = False
        self.live: dict[str, LiveMember] = {}
        self.metadata_checked_epoch: int | None = None
        self.resolving = False
        self.computing: object | None = None
        self.successor: object | None = None  # what takes the group's place, if its end has been written for that

    # --- views

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def next_epoch(self) -> int:
        """Above that of the target as well, which is higher only in an odd log: else there would be no new target."""
        return max(self.epoch, self.target_epoch.epoch) + 1

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

    def live_member(self, member_id: str, owner: Owner) -> LiveMember:
        """What this coordinator knows of a member; made when it is first seen."""
        live = self.live.get(member_id)
        if live is None:
            live = self.live[member_id] = LiveMember(self.group_id, member_id, owner)
        return live

    def start_session(self, live: LiveMember, metadata: MemberMetadata, now: float) -> None:
        """The member's session starts again; one that uses the classic protocol has said how long it is."""
        if metadata.classic is None:
            timeout_ms = self.shared.surroundings.config_of(self.group_id).session_timeout_ms
        else:
            timeout_ms = metadata.classic.session_timeout_ms
        self.shared.timers.start(TimerKind.SESSION, live, now + timeout_ms / 1000)

    def forget_live(self, member_id: str) -> None:
        """The member is gone, or never came to be."""
        live = self.live.pop(member_id, None)
        if live is not None:
            live.is_gone = True
            self.shared.budget.add(live.owner, -live.size)
            live.size = 0

    def release(self) -> None:
        """The group is gone, or its partition is; and so is all that it shares with others."""
        self.is_released = True
        for member_id in list(self.live):
            self.forget_live(member_id)
        for topic_name in self._topic_counts:
            self.shared.unsubscribe(self.group_id, topic_name)
        self._topic_counts.clear()
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
                self.target_epoch = NO_TARGET if target_epoch is None else target_epoch
            case TargetRecord(member_id=member_id, value=target):
                if target is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = target
                self.charge(member_id)
            case PatternRecord(pattern=pattern, value=resolved):
                self._replay_pattern(pattern, resolved)
            case MemberRecord(member_id=member_id, value=metadata):
                if metadata is None:
                    self._remove(member_id)
                else:
                    self._put(replace(self._member(member_id), metadata=metadata))
            case CurrentRecord(member_id=member_id, value=current):
                if current is not None:
                    self._put(replace(self._member(member_id), current=current))
                elif member_id in self.members:
                    self._put(replace(self.members[member_id], current=GONE))

    def _member(self, member_id: str) -> Member:
        """The member, or a new one: after compaction, its assignment may come before what it said of itself."""
        return self.members.get(member_id) or Member(member_id)

    def _put(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        old_metadata = None if old is None else old.metadata
        if old_metadata != member.metadata:
            self._count(member.member_id, old_metadata, member.metadata)
        if old is not None:
            self._hold(old.current.assigned, -1)
            self._hold(old.current.pending_revocation, -1)
        self._hold(member.current.assigned, 1)
        self._hold(member.current.pending_revocation, 1)
        self.charge(member.member_id)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.targets.pop(member_id, None)
            self._count(member_id, member.metadata, None)
            self._hold(member.current.assigned, -1)
            self._hold(member.current.pending_revocation, -1)
        self.forget_live(member_id)

    def _count(self, member_id: str, old: MemberMetadata | None, new: MemberMetadata | None) -> None:
        self._count_topics(() if new is None else new.topic_names, () if old is None else old.topic_names)
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
        self._count_topics(() if resolved is None else resolved.topic_names, () if old is None else old.topic_names)
        if resolved is not None:
            self.patterns[pattern] = resolved

    def _count_topics(self, added: Iterable[str], removed: Iterable[str]) -> None:
        counts = self._topic_counts
        for name in added:
            counts[name] += 1
            if counts[name] == 1:
                self.shared.subscribe(self.group_id, name)
        for name in removed:
            counts[name] -= 1
            if counts[name] == 0:
                del counts[name]
                self.shared.unsubscribe(self.group_id, name)

    def _hold(self, epochs: PartitionEpochs, change: int) -> None:
        for topic_id, partitions in epochs.items():
            holders = self.holders.setdefault(topic_id, Counter())
            for partition in partitions:
                holders[partition] += change
                if not holders[partition]:
                    del holders[partition]
            if not holders:
                del self.holders[topic_id]

    def charge(self, member_id: str) -> None:
        """Report what the member takes in memory to the budget of the client that made it."""
        live, member = self.live.get(member_id), self.members.get(member_id)
        if live is None or member is None:
            return
        size = member_bytes(member, self.targets.get(member_id, {}))
        self.shared.budget.add(live.owner, size - live.size)
        live.size = size


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
