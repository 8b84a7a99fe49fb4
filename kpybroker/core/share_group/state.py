"""One share group: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, members, targets, the partitions with a state. Only `replay` assigns them. It never raises, whatever
the order of the records. *Derived* from them: how many members name a topic, and whether an assignment is due. *Live*:
timers, the computation that runs elsewhere, when the record of states was last written; lost with the partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.modern_group.members import partitions_bytes
from kpybroker.core.modern_group.shared import Shared
from kpybroker.core.modern_group.state import ModernGroup
from kpybroker.core.modern_group.values import ModernGroupConfig
from kpybroker.core.share_group.members import GONE, SHARE_GROUP_BYTES, ShareMember, ShareMemberMetadata, member_bytes
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
from kpybroker.core.share_group.values import ShareGroupState, ShareSurroundings


class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """A share group; see the module."""

    __slots__ = (
        "_has_unassigned",
        "computing",
        "now",
        "settings",
        "states",
        "states_written_at",
    )

    def __init__(self, group_id: str, shared: Shared, settings: ShareSurroundings) -> None:
        super().__init__(group_id, shared)
        self.settings = settings
        self.states: StatePartitions | None = None
        # derived
        self._has_unassigned: bool | None = None  # None: not looked at since the last record
        # live
        self.computing: object | None = None
        self.now = 0.0  # monotonic: of the call that replays its own records
        self.states_written_at = 0.0

    # --- views

    @property
    def state(self) -> ShareGroupState:
        """The group's state."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def config(self) -> ModernGroupConfig:
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

    def topics_changed(self) -> None:
        """A topic that the group subscribes to was made, altered or deleted."""
        self.metadata_checked_epoch = None
        self._has_unassigned = None

    def release(self) -> None:
        """The group is gone, or its partition is; and so is all that it shares with others."""
        super().release()
        self.computing = None

    # --- the log

    def replay(self, record: ShareRecord) -> None:
        """Apply a record that is in the log. That a group ends (the tombstone of its epoch) is its owner's matter."""
        self._has_unassigned = None
        match record:
            case ShareGroupEpochRecord(value=value):
                if value is not None:
                    self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareTargetEpochRecord(value=target_epoch):
                self.set_target_epoch(target_epoch)
            case ShareTargetRecord(member_id=member_id, value=target):
                self.set_target(member_id, target)
            case ShareMemberRecord(member_id=member_id, value=metadata):
                self.set_metadata(member_id, metadata)
            case ShareCurrentRecord(member_id=member_id, value=current):
                self.set_current(member_id, current)
            case StatePartitionsRecord(value=states):
                self.states = states
                self.states_written_at = self.now
                self.charge()

    def new_member(self, member_id: str) -> ShareMember:
        """A member of which no record is known."""
        return ShareMember(member_id)

    def without_assignment(self, member: ShareMember) -> ShareMember:
        """The member, whose assignment has a tombstone."""
        return replace(member, current=GONE)

    def count(self, old: ShareMember | None, new: ShareMember | None) -> None:
        """Keep how many members name a topic."""
        names = [() if one is None else one.metadata.topic_names for one in (new, old)]
        self.count_topics(*names)

    # --- the budget

    def own_bytes(self) -> int:
        """What the group itself takes: the partitions that have a state."""
        size = SHARE_GROUP_BYTES + 2 * len(self.group_id)
        if self.states is not None:
            for topics in (self.states.initializing, self.states.initialized):
                size += partitions_bytes([topic.partitions for topic in topics.values()])
        return size

    def bytes_of(self, member: ShareMember) -> int:
        """What the member takes in memory, its assignments included."""
        return member_bytes(member, self.targets.get(member.member_id, {}))
