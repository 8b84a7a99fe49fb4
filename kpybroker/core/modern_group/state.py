"""One group of a newer protocol: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, members, targets. Only `replay` of a kind assigns them, with the methods here. It never raises,
whatever the order of the records: a log may have been compacted, or written by another Kafka in between, and the later
record counts. *Derived*: how many members (and patterns) name a topic. *Live*: timers, who is charged; lost with the
partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.modern_group.members import ModernMember
from kpybroker.core.modern_group.records import FIRST_EPOCH, NO_TARGET, TargetEpoch
from kpybroker.core.modern_group.shared import Shared
from kpybroker.core.modern_group.timers import LiveMember, TimerKind
from kpybroker.core.modern_group.values import ModernGroupConfig

MemberT = TypeVar("MemberT", bound=ModernMember[Any, Any])
TargetT = TypeVar("TargetT")


class ModernGroup(ABC, Generic[MemberT, TargetT]):
    """A group; see the module."""

    __slots__ = (
        "_charged",
        "_topic_counts",
        "epoch",
        "group_id",
        "is_released",
        "live",
        "members",
        "metadata_checked_epoch",
        "metadata_hash",
        "owner",
        "shared",
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
        self.members: dict[str, MemberT] = {}
        self.targets: dict[str, TargetT] = {}
        self.written_up_to = 0  # the offset after the group's last record in the log
        # derived
        self._topic_counts: Counter[str] = Counter()  # members and patterns that name a topic
        # live
        self.is_released = False
        self.live: dict[str, LiveMember] = {}
        self.metadata_checked_epoch: int | None = None
        self.owner = UNOWNED
        self._charged = 0

    # --- of a kind

    @property
    @abstractmethod
    def config(self) -> ModernGroupConfig:
        """What holds for the group now."""

    @abstractmethod
    def new_member(self, member_id: str) -> MemberT:
        """A member of which no record is known."""

    @abstractmethod
    def without_assignment(self, member: MemberT) -> MemberT:
        """The member, whose assignment has a tombstone."""

    @abstractmethod
    def count(self, old: MemberT | None, new: MemberT | None) -> None:
        """Keep at hand what follows from a member that takes the place of another; None where there is none."""

    @abstractmethod
    def bytes_of(self, member: MemberT) -> int:
        """What the member takes in memory, its part of the target included."""

    def own_bytes(self) -> int:
        """What the group itself takes, where that is not counted elsewhere."""
        return 0

    # --- views

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def next_epoch(self) -> int:
        """Above that of the target as well, which is higher only in an odd log: else there would be no new target."""
        return max(self.epoch, self.target_epoch.epoch) + 1

    # --- live

    def live_member(self, member_id: str, owner: Owner) -> LiveMember:
        """What this coordinator knows of a member; made when it is first seen."""
        live = self.live.get(member_id)
        if live is None:
            live = self.live[member_id] = LiveMember(self.group_id, member_id, owner)
        return live

    def start_session(self, live: LiveMember, now: float, timeout_ms: int | None = None) -> None:
        """The member's session starts again; it is as long as the group's configuration says, if no one else does."""
        if timeout_ms is None:
            timeout_ms = self.config.session_timeout_ms
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
        self.shared.budget.add(self.owner, -self._charged)
        self._charged, self.owner = 0, UNOWNED

    # --- the log

    def set_target_epoch(self, value: TargetEpoch | None) -> None:
        """The record of the target's epoch."""
        self.target_epoch = NO_TARGET if value is None else value

    def set_target(self, member_id: str, value: TargetT | None) -> None:
        """The record of a member's part of the target."""
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = value
        self.charge_member(member_id)

    def set_metadata(self, member_id: str, value: object | None) -> None:
        """The record of what a member said of itself; its tombstone ends the member."""
        if value is None:
            self._remove(member_id)
        else:
            self._put(replace(self._known(member_id), metadata=value))

    def set_current(self, member_id: str, value: object | None) -> None:
        """The record of a member's assignment."""
        if value is not None:
            self._put(replace(self._known(member_id), current=value))
        elif member_id in self.members:
            self._put(self.without_assignment(self.members[member_id]))

    def _known(self, member_id: str) -> MemberT:
        """The member, or a new one: after compaction, its assignment may come before what it said of itself."""
        return self.members.get(member_id) or self.new_member(member_id)

    def _put(self, member: MemberT) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self.count(old, member)
        self.charge_member(member.member_id)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.targets.pop(member_id, None)
            self.count(member, None)
        self.forget_live(member_id)

    def count_topics(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """A member, a pattern or a topology names the topics, or does not any more."""
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
        size = self.own_bytes()
        self.shared.budget.add(self.owner, size - self._charged)
        self._charged = size

    def charge_member(self, member_id: str) -> None:
        """Report what the member takes in memory to the budget of the client that made it."""
        live, member = self.live.get(member_id), self.members.get(member_id)
        if live is None or member is None:
            return
        size = self.bytes_of(member)
        self.shared.budget.add(live.owner, size - live.size)
        live.size = size
