"""One group: its members, its state, and the rules that need nothing but the group itself.

    Empty ----------> PreparingRebalance --> CompletingRebalance --> Stable
      ^                 |   ^        ^               |                  |
      +-----------------+   |        +---------------+                  |
      (all have left)       +-------------------------------------------+
    any --> Dead (deleted, or its partition has moved)

Two layers. *Durable*: `stored` (the last generation in the log) and `offsets`; only `replay` in `machine.py` assigns
them. *Live*: everything else; it starts from `stored` when a partition is loaded, and is dropped with it. The tickets
of waiting JoinGroup and SyncGroup requests are in `join_tickets` and `sync_tickets`, so "awaiting join" is `member_id
in join_tickets`.

A group of a newer protocol has the same offsets, and its members in `consumer` (KIP-848) or `streams` (KIP-1071); the
rest of this is then as of a group without members.

Only `add`, `remove`, `replace_static_member` and `set_protocols` change `members`, `static_members`, `protocol_counts`
and `leader_id`, which must agree. They also report to the budget what their owners hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from kpybroker.core.budget import UNOWNED, Owner, StateBudget
from kpybroker.core.consumer_group.members import CONSUMER_GROUP_BYTES
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import CONSUMER_GROUP_TYPE
from kpybroker.core.group.members import Member, PendingMember, RebalanceTimer
from kpybroker.core.group.records import StoredGroup, StoredMember
from kpybroker.core.group.sizes import GROUP_BYTES, PENDING_MEMBER_BYTES, stored_bytes
from kpybroker.core.group.subscription import all_topics
from kpybroker.core.group.values import (
    CONSUMER_PROTOCOL_TYPE,
    VALID_PREVIOUS,
    DescribedMember,
    GroupOverview,
    GroupState,
    JoinedMember,
    Protocols,
)
from kpybroker.core.machine import Ticket
from kpybroker.core.offsets.store import GroupOffsets
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.values import STREAMS_GROUP_TYPE
from kpybroker.wire.map_order import scala_hash_map_order
from kpybroker.wire.yield_budget import WorkBudget


class Group:
    """One consumer group: the durable state from the log, and the live state of its members."""

    __slots__ = (
        "_budget",
        "_charged",
        "_free_bytes",
        "consumer",
        "generation_id",
        "group_id",
        "has_consumer_commits",
        "has_transactional_commits",
        "join_tickets",
        "leader_id",
        "members",
        "new_member_added",
        "offsets",
        "owner",
        "pending_members",
        "pending_sync",
        "protocol_counts",
        "protocol_name",
        "protocol_type",
        "rebalance_timer",
        "state",
        "state_timestamp_ms",
        "static_members",
        "stays_without_offsets",
        "stored",
        "stored_bytes",
        "streams",
        "subscribed_topics",
        "sync_deadline",
        "sync_tickets",
        "written_up_to",
    )

    def __init__(self, group_id: str, budget: StateBudget | None = None) -> None:
        self.group_id = group_id
        self._budget = StateBudget() if budget is None else budget
        self._charged = 0
        self._free_bytes = 0  # what was here before there was an owner
        self.owner = UNOWNED
        self.stored: StoredGroup | None = None
        self.stored_bytes = 0
        self.consumer: ConsumerGroup | None = None
        self.streams: StreamsGroup | None = None
        self.offsets = GroupOffsets()
        self.written_up_to = 0  # the offset after the group's last record in the log
        self.state = GroupState.EMPTY
        self.state_timestamp_ms: int | None = None
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # group.instance.id -> member id
        self.pending_members: dict[str, PendingMember] = {}
        self.pending_sync: set[str] = set()
        self.protocol_counts: Counter[str] = Counter()
        self.join_tickets: dict[str, Ticket] = {}
        self.sync_tickets: dict[str, Ticket] = {}
        self.subscribed_topics: frozenset[str] | None = None
        self.new_member_added = False
        self.rebalance_timer: RebalanceTimer | None = None
        self.sync_deadline: float | None = None
        self.has_consumer_commits = False
        self.has_transactional_commits = False
        self.stays_without_offsets = False  # until the next cleanup, as in Kafka 4

    # --- the state machine

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Enter a state and note when (`now_ms`); an illegal transition is a bug."""
        assert self.state in VALID_PREVIOUS[state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, of whichever protocol."""
        return self.state is GroupState.EMPTY if self.modern is None else self.modern.is_empty

    @property
    def modern(self) -> ConsumerGroup | StreamsGroup | None:
        """The members' side of a group of a newer protocol; None for a classic group."""
        return self.streams if self.consumer is None else self.consumer

    @property
    def can_rebalance(self) -> bool:
        """Whether PreparingRebalance may be entered from the present state."""
        return self.state in VALID_PREVIOUS[GroupState.PREPARING_REBALANCE]

    def next_generation(self, now_ms: int) -> None:
        """Leave PreparingRebalance: to CompletingRebalance if there are members, else to Empty."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)
        self.has_consumer_commits = self.has_transactional_commits = False
        self.pending_sync.clear()
        self.rebalance_timer = None

    # --- the other kind

    def begin_modern(self, modern: ConsumerGroup | StreamsGroup) -> None:
        """The group is one of a newer protocol from now on. Its members, if it had any, are in `modern`."""
        assert not self.join_tickets
        assert not self.sync_tickets
        self.end_modern()
        if isinstance(modern, StreamsGroup):
            self.streams = modern
        else:
            self.consumer = modern
        self.set_stored(None)
        for member_id in [*self.members, *self.pending_members]:
            self.remove(member_id)
        self.protocol_type = self.protocol_name = self.leader_id = self.subscribed_topics = None
        self.generation_id = 0
        self.rebalance_timer = self.sync_deadline = None
        self.state = GroupState.EMPTY

    def end_modern(self) -> None:
        """The group is not one of a newer protocol, or not any more."""
        if (modern := self.modern) is not None:
            modern.release()
            self.consumer = self.streams = None

    # --- membership

    def add(self, member: Member) -> None:
        """Add a member; the first one leads. A static member's instance id must be free."""
        instance_id = member.group_instance_id
        if instance_id is not None:
            assert instance_id not in self.static_members
            self.static_members[instance_id] = member.member_id
        self.members[member.member_id] = member
        self.protocol_counts.update(name for name, _ in member.protocols)
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._remove_pending(member.member_id)
        member.size = member.measure()
        self._budget.add(member.owner, member.size)

    def add_pending(self, member_id: str, deadline: float, owner: Owner) -> None:
        """Expect a member with this id until `deadline`."""
        self._remove_pending(member_id)
        size = PENDING_MEMBER_BYTES + 2 * len(member_id)
        self.pending_members[member_id] = PendingMember(deadline, owner, size)
        self._budget.add(owner, size)

    def _remove_pending(self, member_id: str) -> None:
        pending = self.pending_members.pop(member_id, None)
        if pending is not None:
            self._budget.add(pending.owner, -pending.size)

    def remove(self, member_id: str) -> Member | None:
        """Forget a member, joined or pending. Its waiting requests must have got their replies before."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._uncount(member.protocols)
            self._budget.add(member.owner, -member.size)
            # A stale timer may keep the member for as long as its session was.
            member.protocols, member.assignment, member.size, member.protocols_size = (), b"", 0, 0
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if member_id == self.leader_id:
            self.leader_id = next(iter(self.members), None)
        self._remove_pending(member_id)
        self.pending_sync.discard(member_id)
        return member

    def _uncount(self, protocols: Protocols) -> None:
        counts = self.protocol_counts
        counts.subtract(name for name, _ in protocols)
        for name, _ in protocols:
            if counts[name] <= 0:
                del counts[name]

    def replace_static_member(self, instance_id: str, old_member_id: str, new_member_id: str) -> Member:
        """Give a static member a new id and keep everything else, except its place in the member order."""
        member = self.members.pop(old_member_id)
        member.member_id = new_member_id
        member.timer_at = None
        self.members[new_member_id] = member
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        if old_member_id in self.pending_sync:
            # Kafka keeps waiting for the old id, and rebalances a complete group when the wait ends.
            self.pending_sync.remove(old_member_id)
            self.pending_sync.add(new_member_id)
        self.static_members[instance_id] = new_member_id
        return member

    def set_protocols(
        self, member: Member, protocols: Protocols, owner: Owner = UNOWNED, protocols_size: int = -1
    ) -> None:
        """Replace what a member supports, and recount the protocols.

        A member from the log has no owner, and gets one when it grows.
        """
        self._uncount(member.protocols)
        member.protocols, member.protocols_size = protocols, protocols_size
        self.protocol_counts.update(name for name, _ in protocols)
        before, member.size = member.size, member.measure()
        if member.owner == UNOWNED and member.size > before:
            member.owner, before = owner, 0
        self._budget.add(member.owner, member.size - before)

    # --- the budget

    def belongs_to(self, owner: Owner) -> None:
        """What the group itself grows by from now on is the owner's, if it has none yet."""
        if self.owner == UNOWNED and owner != UNOWNED:
            self.owner = owner
            self._free_bytes = 0 if self.is_new else self._own_bytes()
            self.charge()

    @property
    def is_new(self) -> bool:
        """Whether nothing of the group is in the log."""
        return self.written_up_to == 0

    def charge(self) -> None:
        """Report what the group itself takes: its last generation in the log, and its offsets."""
        if self.owner == UNOWNED:
            return
        charged = max(self._own_bytes() - self._free_bytes, 0)
        self._budget.add(self.owner, charged - self._charged)
        self._charged = charged

    def _own_bytes(self) -> int:
        size = GROUP_BYTES + len(self.group_id) + self.stored_bytes + self.offsets.size
        return size if self.consumer is None else size + CONSUMER_GROUP_BYTES

    def set_stored(self, stored: StoredGroup | None) -> None:
        """The log has another generation."""
        self.stored = stored
        self.stored_bytes = stored_bytes(stored)

    def release(self) -> None:
        """The group is gone, and so is all that was charged for it."""
        self.end_modern()
        for member in self.members.values():
            self._budget.add(member.owner, -member.size)
            member.size = 0
        for member_id in list(self.pending_members):
            self._remove_pending(member_id)
        self._budget.add(self.owner, -self._charged)
        self._charged, self.owner = 0, UNOWNED

    def elect_joined_leader(self) -> bool:
        """If the leader has not rejoined, a member that has becomes leader. False where none has."""
        if self.leader_id is None:
            return False
        if self.leader_id in self.join_tickets:
            return True
        joined = next((member_id for member_id in self.members if member_id in self.join_tickets), None)
        if joined is None:
            return False
        self.leader_id = joined
        return True

    @property
    def all_members_joined(self) -> bool:
        """Whether every member waits in a JoinGroup and no member id is pending."""
        return len(self.join_tickets) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of the members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- protocols

    @property
    def has_common_protocol(self) -> bool:
        """Whether there is a protocol that every member supports; there is unless the log is odd."""
        return any(count == len(self.members) for count in self.protocol_counts.values())

    def supports_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a joining member fits: the same protocol type, and a protocol that every member supports."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(self.protocol_counts[name] == size for name in names)

    def select_protocol(self) -> str:
        """The protocol with most votes among those that every member supports; with a tie, the first one in the order
        of Scala's hash map, as in GroupMetadata.selectProtocol.
        """
        size = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(scala_hash_map_order(tuple(votes)), key=votes.__getitem__)

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Topics that the members of a consumer group subscribe to; None where they cannot be known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        name = self.protocol_name
        return None if name is None else all_topics(member.metadata(name) for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member may subscribe to the topic; True where subscriptions are unknown."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    # --- views

    def member_metadata(self) -> tuple[JoinedMember, ...]:
        """What the leader receives to compute an assignment from."""
        assert self.protocol_name is not None
        name = self.protocol_name
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(name))
            for member in self.members.values()
        )

    def described_members(self) -> tuple[DescribedMember, ...]:
        """Members for DescribeGroups; metadata and assignments only of a stable group."""
        shown = self.protocol_name if self.state is GroupState.STABLE else None
        return tuple(
            DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=b"" if shown is None else member.metadata(shown),
                assignment=b"" if shown is None else member.assignment,
            )
            for member in self.members.values()
        )

    def overview(self) -> GroupOverview:
        """The group's row of ListGroups."""
        if self.consumer is not None:
            return GroupOverview(self.group_id, CONSUMER_PROTOCOL_TYPE, self.consumer.state.value, CONSUMER_GROUP_TYPE)
        if self.streams is not None:
            return GroupOverview(self.group_id, STREAMS_GROUP_TYPE, self.streams.state.value, STREAMS_GROUP_TYPE)
        return GroupOverview(self.group_id, self.protocol_type or "", self.state.value)

    # --- to and from the log

    def to_stored(self, assignment: dict[str, bytes]) -> StoredGroup:
        """The group's generation as a record; a member without an assignment is a bug in the caller."""
        name = self.protocol_name
        assert name is not None or not self.members
        return StoredGroup(
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol_name=name,
            leader=self.leader_id,
            state_timestamp_ms=-1 if self.state_timestamp_ms is None else self.state_timestamp_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(name),
                    assignment=assignment[member.member_id],
                )
                for member in self.members.values()
                if name is not None
            ),
        )

    def activate(self, budget: WorkBudget) -> Iterator[None]:
        """Start live state from the log's: Stable if the last generation had members, else Empty. In slices."""
        stored = self.stored
        if stored is None:
            return
        self.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        self.state_timestamp_ms = None if stored.state_timestamp_ms == -1 else stored.state_timestamp_ms
        self.generation_id = stored.generation_id
        self.protocol_type = stored.protocol_type or None
        self.protocol_name = stored.protocol_name
        self.leader_id = stored.leader
        for member in stored.distinct_members:
            self.add(
                Member(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    protocols=((stored.protocol_name or "", member.subscription),),
                    assignment=member.assignment,
                )
            )
            if budget.is_spent():
                yield
        self.subscribed_topics = self.compute_subscribed_topics()
