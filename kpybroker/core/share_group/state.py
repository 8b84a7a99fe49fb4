"""One share group: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, members, targets, the partitions with a state. Only `replay` assigns them. It never raises, whatever
the order of the records. *Derived* from them: how many members name a topic, and whether an assignment is due. *Live*:
timers, the computation that runs elsewhere, when the record of states was last written; lost with the partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.consumer_group.records import TargetEpoch
from kpybroker.core.consumer_group.shared import Shared
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
from kpybroker.core.share_group.members import (
    GONE,
    SHARE_GROUP_BYTES,
    ShareMember,
    ShareMemberMetadata,
    member_bytes,
    partitions_bytes,
)
from kpybroker.core.share_group.records import (
    ShareCurrentRecord,
    ShareGroupEpochRecord,
    ShareMemberRecord,
    ShareRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitions,
    StatePartitionsRecord,
)
from kpybroker.core.share_group.values import ShareGroupConfig, ShareGroupState, ShareSurroundings

FIRST_EPOCH: Final = 1
NO_TARGET: Final = TargetEpoch(-1, 0)
"""In place of a target epoch that has a tombstone."""


class ShareGroup:
    """A share group; see the module."""

    __slots__ = (
        "_charged",
        "_has_unassigned",
        "_topic_counts",
        "computing",
        "epoch",
        "group_id",
        "is_ended",
        "live",
        "members",
        "metadata_checked_epoch",
        "metadata_hash",
        "now",
        "owner",
        "settings",
        "shared",
        "states",
        "states_written_at",
        "target_epoch",
        "targets",
        "written_up_to",
    )

    def __init__(self, group_id: str, shared: Shared, settings: ShareSurroundings) -> None:
        self.group_id = group_id
        self.shared = shared
        self.settings = settings
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = TargetEpoch(FIRST_EPOCH, 0)
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.states: StatePartitions | None = None
        self.written_up_to = 0  # the offset after the group's last record in the log
        # derived
        self._topic_counts: Counter[str] = Counter()  # members that name a topic
        self._has_unassigned: bool | None = None  # None: not looked at since the last record
        # live
        self.is_ended = False
        self.live: dict[str, LiveMember] = {}
        self.metadata_checked_epoch: int | None = None
        self.computing: object | None = None
        self.now = 0.0  # monotonic: of the call that replays its own records
        self.states_written_at = 0.0
        self.owner = UNOWNED
        self._charged = 0

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
    def state(self) -> ShareGroupState:
        """The group's state."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def config(self) -> ShareGroupConfig:
        """What holds for the group now."""
        return self.settings.config_of(self.group_id)

    def subscribed_topics(
        self, removed: Iterable[ShareMemberMetadata] = (), added: ShareMemberMetadata | None = None
    ) -> frozenset[str]:
        """Every topic that the group subscribes to, as if some members had gone and one had come."""
        counts = self._topic_counts.copy()
        for metadata in removed:
            counts.subtract(metadata.topic_names)
        if added is not None:
            counts.update(added.topic_names)
        return frozenset(name for name, count in counts.items() if count > 0)

    def has_unassigned(self) -> bool:
        """Whether a subscribed topic has partitions with a state that the target assignment does not have."""
        if self._has_unassigned is None:
            self._has_unassigned = self._find_unassigned()
        return self._has_unassigned

    def _find_unassigned(self) -> bool:
        if self.states is None:
            return False
        assigned: dict[TopicId, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            topic.name in self._topic_counts
            and self.shared.topics.by_id(topic_id) is not None
            and assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in self.states.initialized.items()
        )

    # --- live

    def live_member(self, member_id: str, owner: Owner) -> LiveMember:
        """What this coordinator knows of a member; made when it is first seen."""
        live = self.live.get(member_id)
        if live is None:
            live = self.live[member_id] = LiveMember(self.group_id, member_id, owner)
        return live

    def start_session(self, live: LiveMember, now: float) -> None:
        """The member's session starts again."""
        self.shared.timers.start(TimerKind.SESSION, live, now + self.config.session_timeout_ms / 1000)

    def forget_live(self, member_id: str) -> None:
        """The member is gone, or never came to be."""
        live = self.live.pop(member_id, None)
        if live is not None:
            live.is_gone = True
            self.shared.budget.add(live.owner, -live.size)
            live.size = 0

    def topics_changed(self) -> None:
        """A topic that the group subscribes to was made, altered or deleted."""
        self.metadata_checked_epoch = None
        self._has_unassigned = None

    def release(self) -> None:
        """The group is gone, or its partition is; and so is all that it shares with others."""
        self.is_ended = True
        for member_id in list(self.live):
            self.forget_live(member_id)
        for topic_name in self._topic_counts:
            self.shared.unsubscribe(self.group_id, topic_name)
        self._topic_counts.clear()
        self.computing = None
        self.shared.budget.add(self.owner, -self._charged)
        self._charged, self.owner = 0, UNOWNED

    # --- the log

    def replay(self, record: ShareRecord) -> None:
        """Apply a record that is in the log. That a group ends (the tombstone of its epoch) is its owner's matter."""
        self._has_unassigned = None
        match record:
            case ShareGroupEpochRecord(value=value):
                if value is not None:
                    self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareTargetEpochRecord(value=target_epoch):
                self.target_epoch = NO_TARGET if target_epoch is None else target_epoch
            case ShareTargetRecord(member_id=member_id, value=target):
                if target is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = target
                self.charge_member(member_id)
            case ShareMemberRecord(member_id=member_id, value=metadata):
                if metadata is None:
                    self._remove(member_id)
                else:
                    self._put(replace(self._member(member_id), metadata=metadata))
            case ShareCurrentRecord(member_id=member_id, value=current):
                if current is not None:
                    self._put(replace(self._member(member_id), current=current))
                elif member_id in self.members:
                    self._put(replace(self.members[member_id], current=GONE))
            case StatePartitionsRecord(value=states):
                self.states = states
                self.states_written_at = self.now
                self.charge()

    def _member(self, member_id: str) -> ShareMember:
        """The member, or a new one: after compaction, its assignment may come before what it said of itself."""
        return self.members.get(member_id) or ShareMember(member_id)

    def _put(self, member: ShareMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count_topics(member.metadata.topic_names, () if old is None else old.metadata.topic_names)
        self.charge_member(member.member_id)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.targets.pop(member_id, None)
            self._count_topics((), member.metadata.topic_names)
        self.forget_live(member_id)

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

    # --- the budget

    def belongs_to(self, owner: Owner) -> None:
        """What the group itself takes is the owner's, if it has none yet."""
        if self.owner == UNOWNED and owner != UNOWNED:
            self.owner = owner
            self.charge()

    def charge(self) -> None:
        """Report what the group itself takes."""
        if self.owner == UNOWNED:
            return
        size = SHARE_GROUP_BYTES + 2 * len(self.group_id)
        if self.states is not None:
            for topics in (self.states.initializing, self.states.initialized):
                size += partitions_bytes([topic.partitions for topic in topics.values()])
        self.shared.budget.add(self.owner, size - self._charged)
        self._charged = size

    def charge_member(self, member_id: str) -> None:
        """Report what the member takes in memory to the budget of the client that made it."""
        live, member = self.live.get(member_id), self.members.get(member_id)
        if live is None or member is None:
            return
        size = member_bytes(member, self.targets.get(member_id, {}))
        self.shared.budget.add(live.owner, size - live.size)
        live.size = size
