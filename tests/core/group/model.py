"""One consumer group as a specification: plain state, each rule once, times instead of timers.

It gives the reply to each request, at once or later, and the effects of time. It is slow and short on purpose, shares
no code with the state machine, and has no logs, other groups or failing appends. The state machine may choose the
leader of a generation: the model reads its `choice`, and checks that it was allowed. Which of several protocols with
equal votes is chosen depends on the order of a hash map, which has tests of its own: the model asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
NO_MEMBER = ""

Response = tuple[object, ...]
Partition = tuple[str, int]
Protocols = tuple[tuple[str, bytes], ...]


@dataclass
class Member:
    instance: str | None
    protocols: Protocols
    session_ms: int
    rebalance_ms: int
    ends_at: int  # when its session ends
    is_new: bool = True  # has not received its first generation
    joins: str | None = None  # the ticket it waits with
    syncs: str | None = None
    assignment: bytes = b""

    def wishes(self, wish: Member) -> None:
        self.protocols, self.session_ms, self.rebalance_ms = wish.protocols, wish.session_ms, wish.rebalance_ms


class Model:
    """`choice(generation)` is the chosen leader and protocol; `ordered` puts protocols in the order that decides a tie;
    `topics_of` reads a subscription.
    """

    def __init__(
        self,
        initial_delay_ms: int,
        max_size: int,
        retention_ms: int,
        choice: Callable[[int], tuple[str, str]],
        ordered: Callable[[tuple[str, ...]], tuple[str, ...]],
        topics_of: Callable[[bytes], frozenset[str]],
    ) -> None:
        self.initial_delay_ms = initial_delay_ms
        self.max_size = max_size
        self.retention_ms = retention_ms
        self.choice = choice
        self.ordered = ordered
        self.topics_of = topics_of
        self.now_ms = 0
        self.responses: dict[str, Response] = {}
        self.forget()

    def forget(self) -> None:
        """There is no such group."""
        self.exists = False
        self.state = "Empty"
        self.generation = 0
        self.leader: str | None = None
        self.protocol: str | None = None
        self.protocol_type: str | None = None
        self.topics: frozenset[str] | None = None  # that the present generation reads; None: not known
        self.members: dict[str, Member] = {}
        self.promised: dict[str, int] = {}  # ids of KIP-394, and when they expire
        self.unsynced: set[str] = set()
        self.join_ends_at: int | None = None
        self.sync_ends_at: int | None = None
        self.initial: tuple[int, int] | None = (
            None  # of a rebalance from Empty: this delay, and what may still be added
        )
        self.someone_came = False
        self.offsets: dict[Partition, tuple[int, int]] = {}  # offset, and when it was committed
        self.empty_since = 0

    # --- members and protocols

    def holder(self, instance: str) -> str | None:
        return next((m for m, member in self.members.items() if member.instance == instance), None)

    def refusal(self, member_id: str, instance: str | None) -> str | None:
        """Why a request of this member is refused."""
        if instance is not None and self.holder(instance) not in (None, member_id):
            return "FENCED_INSTANCE_ID"
        if instance is not None and self.holder(instance) is None:
            return "UNKNOWN_MEMBER_ID"
        return None if member_id in self.members else "UNKNOWN_MEMBER_ID"

    def supported(self) -> set[str]:
        sets = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*sets) if sets else set()

    def elected(self) -> str:
        """The protocol of a generation that begins now: among those that all support, the first with most votes."""
        common = self.supported()
        votes = Counter(next(n for n, _ in member.protocols if n in common) for member in self.members.values())
        return next(name for name in self.ordered(tuple(votes)) if votes[name] == max(votes.values()))

    @property
    def rebalance_ms(self) -> int:
        return max((member.rebalance_ms for member in self.members.values()), default=0)

    # --- JoinGroup

    def join(self, ticket: str, member_id: str, new_id: str, protocol_type: str, wish: Member, version: int) -> None:
        if not self.exists and member_id:
            return self.say(ticket, "UNKNOWN_MEMBER_ID", member_id)
        self.exists = True
        instance = wish.instance
        names = {name for name, _ in wish.protocols}
        fits = bool(names) and (
            self.state == "Empty"
            or (protocol_type == self.protocol_type and (bool(names & self.supported()) or not self.members))
        )
        if not self.has_room_for(member_id):
            self.say(ticket, "GROUP_MAX_SIZE_REACHED", NO_MEMBER)
            self.drop(member_id)
        elif not fits:
            self.say(ticket, "INCONSISTENT_GROUP_PROTOCOL", member_id)
        elif not member_id and instance is not None and (old_id := self.holder(instance)) is not None:
            self.replace(ticket, old_id, new_id, wish, version)
        elif not member_id and instance is None and version >= 4:
            self.promised[new_id] = self.now_ms + wish.session_ms
            self.say(ticket, "MEMBER_ID_REQUIRED", new_id)
        elif not member_id or member_id in self.promised:
            self.add(ticket, member_id or new_id, wish, protocol_type)
        elif (error := self.refusal(member_id, instance)) is not None:
            self.say(ticket, error, member_id)
        else:
            self.join_again(ticket, member_id, wish)
        self.maybe_complete()

    def has_room_for(self, member_id: str) -> bool:
        """In a rebalance the members count that have joined already: the last to join are refused."""
        member = self.members.get(member_id)
        if self.state == "PreparingRebalance":
            waiting = sum(other.joins is not None for other in self.members.values())
            return (member is not None and member.joins is not None) or waiting < self.max_size
        return self.state == "Empty" or member is not None or len(self.members) < self.max_size

    def add(self, ticket: str, member_id: str, member: Member, protocol_type: str) -> None:
        self.promised.pop(member_id, None)
        self.protocol_type = protocol_type if not self.members else self.protocol_type
        self.someone_came = self.someone_came or (self.state == "PreparingRebalance" and self.generation == 0)
        member.joins, member.ends_at = ticket, self.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
        self.members[member_id] = member
        if self.state != "PreparingRebalance":
            self.prepare()

    def join_again(self, ticket: str, member_id: str, wish: Member) -> None:
        member = self.members[member_id]
        leads_stable = self.state == "Stable" and member_id == self.leader
        if self.state != "PreparingRebalance" and not leads_stable and member.protocols == wish.protocols:
            with_members = self.state == "CompletingRebalance" and member_id == self.leader
            return self.say(ticket, *self.present_generation(member_id, with_members))
        if member.joins is not None:
            self.say(member.joins, "REBALANCE_IN_PROGRESS", member_id)
        member.wishes(wish)
        member.joins = ticket
        if self.state != "PreparingRebalance":
            self.prepare()

    def replace(self, ticket: str, old_id: str, new_id: str, wish: Member, version: int) -> None:
        """KIP-345: the next instance of a static member takes everything over; the last one is fenced."""
        member = self.members.pop(old_id)
        if member.joins is not None:
            self.say(member.joins, "FENCED_INSTANCE_ID", old_id)
        if member.syncs is not None:
            self.say(member.syncs, "FENCED_INSTANCE_ID")
            member.syncs = None
        self.members[new_id] = member
        led = self.leader == old_id
        self.leader = new_id if led else self.leader
        self.unsynced = {new_id if one == old_id else one for one in self.unsynced}
        before_ms = member.session_ms
        member.wishes(wish)
        member.joins, member.ends_at = ticket, self.now_ms + before_ms
        if self.state == "CompletingRebalance" or (self.state == "Stable" and self.protocol != self.elected()):
            self.prepare()
        elif self.state == "Stable":
            member.joins = None
            skips = led and version >= 9
            shown = self.leader if version >= 9 else (old_id if led else self.leader)
            head = self.present_generation(new_id, skips)
            self.say(ticket, *head[:3], shown, *head[4:6], skips)

    # --- a rebalance

    def prepare(self) -> None:
        if self.state == "CompletingRebalance":
            for member in self.members.values():
                member.assignment = b""
            self.respond_to_syncs("REBALANCE_IN_PROGRESS")
        self.unsynced, self.sync_ends_at = set(), None
        self.initial = None
        if self.state == "Empty":
            self.initial = (self.initial_delay_ms, max(self.rebalance_ms - self.initial_delay_ms, 0))
        self.join_ends_at = self.now_ms + (self.rebalance_ms if self.initial is None else self.initial_delay_ms)
        self.state = "PreparingRebalance"
        self.maybe_complete()

    def maybe_complete(self) -> None:
        all_joined = all(member.joins is not None for member in self.members.values())
        if self.state == "PreparingRebalance" and self.initial is None and all_joined and not self.promised:
            self.complete()

    def complete(self) -> None:
        for member_id, member in list(self.members.items()):
            if member.joins is None and member.instance is None:
                self.drop(member_id)
        if self.members and not any(member.joins is not None for member in self.members.values()):
            self.initial = None
            self.join_ends_at = self.now_ms + max(self.rebalance_ms, 100)
            return
        self.generation += 1
        self.join_ends_at = self.initial = None
        if self.members:
            self.begin_generation(*self.choice(self.generation))
            return
        self.state, self.protocol, self.leader, self.empty_since = "Empty", None, None, self.now_ms
        self.topics = frozenset() if self.protocol_type == "consumer" else None

    def begin_generation(self, leader: str, protocol: str) -> None:
        if self.leader is not None and self.members[self.leader].joins is not None:
            assert leader == self.leader, "a leader that has joined stays the leader"
        assert self.members[leader].joins is not None, "the leader has not joined"
        assert protocol == self.elected(), f"{protocol} instead of {self.elected()}"
        self.state, self.leader, self.protocol = "CompletingRebalance", leader, protocol
        self.unsynced = set(self.members)
        self.sync_ends_at = self.now_ms + self.rebalance_ms
        read = [self.topics_of(dict(member.protocols)[protocol]) for member in self.members.values()]
        self.topics = frozenset().union(*read) if self.protocol_type == "consumer" else None
        for member_id, member in self.members.items():
            if member.joins is not None:
                self.say(member.joins, *self.present_generation(member_id, member_id == leader))
                member.joins = None
            member.is_new, member.ends_at = False, self.now_ms + member.session_ms

    def present_generation(self, member_id: str, with_members: bool) -> Response:
        members = frozenset(self.members) if with_members else frozenset()
        return ("NONE", member_id, self.generation, self.leader, self.protocol, members, False)

    # --- SyncGroup, Heartbeat, LeaveGroup

    def sync(self, ticket: str, member_id: str, instance: str | None, generation: int, parts: dict[str, bytes]) -> None:
        error = self.refusal(member_id, instance)
        if error is None and generation != self.generation:
            error = "ILLEGAL_GENERATION"
        if error is None and self.state == "PreparingRebalance":
            error = "REBALANCE_IN_PROGRESS"
        if error is not None:
            return self.say(ticket, error)
        member = self.members[member_id]
        self.unsynced.discard(member_id)
        if self.state == "Stable":
            member.ends_at = self.now_ms + member.session_ms
            self.say(ticket, "NONE", member.assignment)
        else:
            if member.syncs is not None:
                self.say(member.syncs, "REBALANCE_IN_PROGRESS")
            member.syncs = ticket
            if member_id == self.leader:
                for other_id, other in self.members.items():
                    other.assignment = parts.get(other_id, b"")
                self.respond_to_syncs("NONE")
                self.state = "Stable"
        if not self.unsynced:
            self.sync_ends_at = None

    def respond_to_syncs(self, error: str) -> None:
        for member in self.members.values():
            if member.syncs is not None:
                self.say(member.syncs, error, *([member.assignment] if error == "NONE" else []))
                member.syncs, member.ends_at = None, self.now_ms + member.session_ms

    def heartbeat(self, ticket: str, member_id: str, instance: str | None, generation: int) -> None:
        error = self.refusal(member_id, instance)
        if error is None and generation != self.generation:
            error = "ILLEGAL_GENERATION"
        if error is None:
            self.members[member_id].ends_at = self.now_ms + self.members[member_id].session_ms
            error = "REBALANCE_IN_PROGRESS" if self.state == "PreparingRebalance" else "NONE"
        self.say(ticket, error)

    def leave(self, ticket: str, leaving: list[tuple[str, str | None]]) -> None:
        self.say(ticket, "NONE", tuple(self.leave_one(*one) for one in leaving))

    def leave_one(self, member_id: str, instance: str | None) -> str:
        if not member_id:
            holder = None if instance is None else self.holder(instance)
            if holder is None:
                return "UNKNOWN_MEMBER_ID"
            self.lose(holder)
        elif member_id in self.promised:
            self.promised.pop(member_id)
            self.maybe_complete()
        elif (error := self.refusal(member_id, instance)) is not None:
            return error
        else:
            self.lose(member_id)
        return "NONE"

    def lose(self, member_id: str) -> None:
        """Remove a member: respond to the requests it waits in, and rebalance the others."""
        member = self.members[member_id]
        if member.joins is not None:
            self.say(member.joins, "UNKNOWN_MEMBER_ID", NO_MEMBER)
        if member.syncs is not None:
            self.say(member.syncs, "UNKNOWN_MEMBER_ID")
        self.drop(member_id)
        self.maybe_complete() if self.state == "PreparingRebalance" else self.prepare()

    def drop(self, member_id: str) -> None:
        if member_id == self.leader:
            self.leader = None  # any member that joins may be the next
        self.members.pop(member_id, None)
        self.promised.pop(member_id, None)
        self.unsynced.discard(member_id)

    # --- offsets

    def commit(
        self, ticket: str, member_id: str, instance: str | None, generation: int, partition: Partition, offset: int
    ) -> None:
        if not self.exists and generation >= 0:
            return self.say(ticket, "ILLEGAL_GENERATION")
        self.exists = True
        error = None
        if generation >= 0 or self.state != "Empty":
            named = generation >= 0 or member_id or instance is not None
            error = self.refusal(member_id, instance) if named else "UNKNOWN_MEMBER_ID"
            if error is None and generation != self.generation:
                error = "ILLEGAL_GENERATION"
            if error is None and self.state == "CompletingRebalance":
                error = "REBALANCE_IN_PROGRESS"
        if error is not None:
            return self.say(ticket, error)
        if self.state != "Empty":
            self.members[member_id].ends_at = self.now_ms + self.members[member_id].session_ms
        self.offsets[partition] = (offset, self.now_ms)
        self.say(ticket, "NONE")

    def clean_up(self) -> None:
        """KIP-211: retention runs from the end of the last member, from the commit, or not at all."""
        since_commit = self.protocol_type is None or (self.state == "Stable" and self.topics is not None)
        if since_commit or self.state == "Empty":
            read = self.topics or frozenset() if self.state == "Stable" else frozenset()
            self.offsets = {
                (topic, index): (offset, when)
                for (topic, index), (offset, when) in self.offsets.items()
                if topic in read or self.now_ms - (when if since_commit else self.empty_since) < self.retention_ms
            }
        if self.state == "Empty" and not self.offsets:
            self.forget()

    def delete_offsets(self, ticket: str, partitions: Sequence[Partition], keeps_group: bool) -> None:
        if not self.exists:
            return self.say(ticket, "GROUP_ID_NOT_FOUND")
        if self.state != "Empty" and self.protocol_type != "consumer":
            return self.say(ticket, "NON_EMPTY_GROUP")
        is_read = [self.state != "Empty" and (self.topics is None or topic in self.topics) for topic, _ in partitions]
        for partition, keep in zip(partitions, is_read, strict=True):
            if not keep:
                self.offsets.pop(partition, None)
        self.say(ticket, "NONE", tuple("GROUP_SUBSCRIBED_TO_TOPIC" if keep else "NONE" for keep in is_read))
        if partitions and self.state == "Empty" and not self.offsets and not keeps_group:
            self.forget()

    def delete(self, ticket: str) -> None:
        if not self.exists:
            return self.say(ticket, "GROUP_ID_NOT_FOUND")
        if self.state != "Empty":
            return self.say(ticket, "NON_EMPTY_GROUP")
        self.forget()
        self.say(ticket, "NONE")

    # --- time

    def deadlines(self) -> list[int]:
        """All of them, the next one first. A member that waits in a join or sync has none, unless it is new."""
        times = [at for at in (self.join_ends_at, self.sync_ends_at) if at is not None]
        times += self.promised.values()
        times += [member.ends_at for member in self.members.values() if self.is_watched(member)]
        return sorted(times)

    def is_watched(self, member: Member) -> bool:
        return member.is_new or (member.joins is None and member.syncs is None)

    def tick(self, at_ms: int) -> None:
        """Apply the first deadline at `at_ms`; none is earlier."""
        self.now_ms = at_ms
        for member_id, member in self.members.items():
            if self.is_watched(member) and member.ends_at <= at_ms:
                return self.lose(member_id)
        for member_id, lapses in self.promised.items():
            if lapses <= at_ms:
                self.drop(member_id)
                return self.maybe_complete()
        if self.sync_ends_at is not None and self.sync_ends_at <= at_ms:
            for member_id in list(self.unsynced):
                self.drop(member_id)
            return self.prepare()
        assert self.join_ends_at is not None
        assert self.join_ends_at <= at_ms
        if self.initial is not None and self.someone_came and self.initial[1] > 0:
            self.someone_came = False
            spent, left = self.initial
            delay = min(self.initial_delay_ms, left)
            self.initial, self.join_ends_at = (delay, max(left - spent, 0)), at_ms + delay
        else:
            self.complete()

    def say(self, ticket: str, *response: object) -> None:
        assert ticket not in self.responses, f"{ticket} gets two responses"
        self.responses[ticket] = response
