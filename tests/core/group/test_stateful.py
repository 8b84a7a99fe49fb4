"""The group state machine against a simple model, in any order of joins, syncs, pauses, failed appends and moves.

Invariants: a ticket gets one reply at most (checked by the harness), and always in the end; the log replays to the
live durable state (also the harness); a generation has one leader, which receives the members, and every member gets
what that leader assigned; committed offsets equal those of a plain dictionary.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kpybroker.core.group.state import Group
from kpybroker.core.group.values import (
    CommitOffsets,
    CommitResult,
    FetchOffsets,
    FetchOffsetsResult,
    GroupState,
    Heartbeat,
    Join,
    JoinResult,
    Leave,
    LeavingMember,
    Sync,
    SyncResult,
)
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.errors import ErrorCode
from tests.core.group.harness import Harness, join_of, stable, subscription
from tests.support.examples import examples

GROUP = "g"
PROTOCOLS = {
    "both": (("range", subscription("t")), ("sticky", subscription("t"))),
    "other topics": (("range", subscription("t", "u")), ("sticky", subscription("t", "u"))),
    "range": (("range", subscription("t")),),
    "sticky": (("sticky", subscription("t")),),
}
WHO = st.integers(0, 11)
LONG_ENOUGH_MS = 3_600_000
APPEND_ERRORS = st.sampled_from(["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"])


class Groups(RuleBasedStateMachine):
    """One group. `who` picks one of the ids that the coordinator has given out, mostly of present members."""

    @initialize(delay=st.sampled_from([0, 3000]), size=st.sampled_from([2, 100]))
    def begin(self, delay: int, size: int) -> None:
        self.harness = Harness()
        self.harness.do_config(f"group_initial_rebalance_delay_ms={delay}", f"group_max_size={size}")
        self.tickets = 0
        self.joins: dict[str, Join] = {}
        self.syncs: dict[str, Sync] = {}
        self.assigned: dict[int, list[dict[str, bytes]]] = {}
        self.offsets: dict[PartitionKey, int] = {}
        self.pending: dict[int, dict[PartitionKey, tuple[int, int]]] = {}
        self.written_at: dict[PartitionKey, int] = {}
        self.commits = 0
        self.known: list[tuple[str, str | None]] = []

    def _ask(self, request: object) -> str:
        self.tickets += 1
        ticket = f"t{self.tickets}"
        if isinstance(request, Join):
            self.joins[ticket] = request
        if isinstance(request, Sync):
            self.syncs[ticket] = request
            self.assigned.setdefault(request.generation_id, []).append(dict(request.assignments))
        self.harness.ask(ticket, request)
        self.harness.check()
        return ticket

    @property
    def group(self) -> Group | None:
        return self.harness.machine.groups.get(GROUP)

    def _pick(self, who: int) -> tuple[str, str | None]:
        group = self.group
        present = [] if group is None else [(m.member_id, m.group_instance_id) for m in group.members.values()]
        choice = [*present, *present, *self.known[-3:]] or [("stranger", None)]
        return choice[who % len(choice)]

    # --- what clients do

    def _join(self, member_id: str, instance: str | None, protocols: str, version: int, new_id: str) -> str:
        wish = PROTOCOLS[protocols]
        timeouts = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": 7_000}
        return self._ask(join_of(GROUP, member_id, instance, wish, version, new_member_id=new_id, **timeouts))

    @rule(
        instance=st.sampled_from([None, None, "i", "j"]),
        protocols=st.sampled_from(sorted(PROTOCOLS)),
        version=st.sampled_from([3, 4, 9]),
    )
    def join_as_new(self, instance: str | None, protocols: str, version: int) -> None:
        member_id = self.harness.next_member(instance or "c")
        self.known.append((member_id, instance))
        self._join("", instance, protocols, version, member_id)

    @rule(who=WHO, protocols=st.sampled_from(sorted(PROTOCOLS)))
    def join_again(self, who: int, protocols: str) -> None:
        self._join(*self._pick(who), protocols, 9, "")

    @rule(who=WHO, text=st.sampled_from([b"one-", b"two-"]))
    def sync(self, who: int, text: bytes) -> None:
        group = self.group
        generation = 0 if group is None else group.generation_id
        member_ids = () if group is None else tuple(group.members)
        assignments = {member_id: text + member_id.encode() for member_id in member_ids}
        self._ask(Sync(GROUP, generation, *self._pick(who), None, None, assignments))

    @rule(keep_out=WHO, then_sync=st.sampled_from(["all", "followers", "none"]))
    def most_rejoin(self, keep_out: int, then_sync: str) -> None:
        """What clients do in a rebalance; one of them may be slow."""
        group = self.group
        if group is None or not group.members:
            return
        members = [(m.member_id, m.group_instance_id) for m in group.members.values()]
        slow = members[keep_out] if keep_out < len(members) else None
        for member in members:
            if member != slow and member[0] not in group.join_tickets:
                self._join(*member, "both", 9, "")
        self.harness.advance(7_000 if slow is None else 1)
        for member in members:
            syncs = then_sync == "all" or (then_sync == "followers" and member[0] != group.leader_id)
            if syncs and member != slow and member[0] in group.members:
                assignments = {member_id: b"all-" + member_id.encode() for member_id in group.members}
                self._ask(Sync(GROUP, group.generation_id, *member, None, None, assignments))

    @rule(who=WHO, lag=st.sampled_from([0, 0, 1]))
    def heartbeat(self, who: int, lag: int) -> None:
        group, member = self.group, self._pick(who)
        generation = 0 if group is None else group.generation_id
        is_member = group is not None and member[0] in group.members
        ticket = self._ask(Heartbeat(GROUP, generation - lag, *member))
        result = self.harness.replies[ticket]
        assert isinstance(result, ErrorCode)
        if not is_member:
            assert result in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        elif not lag:
            assert result in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        member = self._pick(who)
        self._ask(Leave(GROUP, (LeavingMember(*member),)))
        assert self.group is None or member[0] not in self.group.members

    # --- offsets

    @rule(index=st.integers(0, 1), producer_id=st.sampled_from([-1, -1, 7, 8]), who=WHO, fails=st.integers(0, 9))
    def commit(self, index: int, producer_id: int, who: int, fails: int) -> None:
        self.commits += 1
        member_id, instance, generation = "", None, -1
        if (group := self.group) is not None and group.members:
            member_id, instance = self._pick(who)
            generation = group.generation_id
        if fails == 9:
            self.harness.do_fail("NOT_ENOUGH_REPLICAS")
        partition = ("t", index)
        value = OffsetAndMetadata(self.commits, -1, "", self.harness.now.wall_ms)
        ticket = self._ask(CommitOffsets(GROUP, member_id, instance, generation, {partition: value}, producer_id, 0))
        self.harness.fail_next = None
        result = self.harness.replies[ticket]
        assert isinstance(result, CommitResult)
        if result.errors[partition] is not ErrorCode.NONE:
            return
        if producer_id >= 0:
            self.pending.setdefault(producer_id, {})[partition] = (len(self.harness.log), self.commits)
        else:
            self.offsets[partition] = self.commits
            self.written_at[partition] = len(self.harness.log)

    @rule(producer_id=st.sampled_from([7, 8]), fate=st.sampled_from(["commit", "abort"]))
    def end_transaction(self, producer_id: int, fate: str) -> None:
        self.harness.do_marker(str(producer_id), fate)
        self.harness.check()
        for partition, (written_at, offset) in self.pending.pop(producer_id, {}).items():
            if fate == "commit" and self.written_at.get(partition, -1) < written_at:
                self.offsets[partition] = offset
                self.written_at[partition] = written_at

    @rule(require_stable=st.booleans())
    def fetch(self, require_stable: bool) -> None:
        partitions = tuple(("t", index) for index in range(2))
        ticket = self._ask(FetchOffsets(GROUP, partitions, require_stable))
        result = self.harness.replies[ticket]
        assert isinstance(result, FetchOffsetsResult)
        for partition in partitions:
            found = result.offsets[partition]
            if require_stable and any(partition in offsets for offsets in self.pending.values()):
                assert found.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            else:
                assert (found.error, found.offset) == (ErrorCode.NONE, self.offsets.get(partition, -1))

    # --- failures and time

    @rule(milliseconds=st.sampled_from([1, 2_999, 3_000, 5_999, 6_001, 7_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)
        self.harness.check()

    @rule(error=APPEND_ERRORS)
    def next_append_fails(self, error: str) -> None:
        self.harness.do_fail(error)

    @rule()
    def coordinator_moves(self) -> None:
        self.harness.fail_next = None
        self.harness.do_reload()
        self.harness.check()
        assert all(ticket in self.harness.replies for ticket in self.harness.asked)

    # --- invariants

    @invariant()
    def the_group_is_sound(self) -> None:
        group = self.group
        if group is None:
            return
        members = group.members
        names = Counter(name for member in members.values() for name, _ in member.protocols)
        assert {name: count for name, count in group.protocol_counts.items() if count} == dict(names)
        static = {m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id is not None}
        assert static == group.static_members
        assert all(member_id == member.member_id for member_id, member in members.items())
        assert (group.leader_id in members) if members else group.leader_id is None
        assert set(group.join_tickets) <= set(members)
        assert set(group.sync_tickets) <= set(members)
        assert group.pending_sync <= set(members)
        assert not group.join_tickets or group.state is GroupState.PREPARING_REBALANCE
        assert not group.sync_tickets or group.state is GroupState.COMPLETING_REBALANCE
        assert (group.rebalance_timer is not None) == (group.state is GroupState.PREPARING_REBALANCE)
        assert bool(members) or group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
        if group.state is GroupState.STABLE:
            assert group.stored is not None
            assert group.stored.generation_id == group.generation_id
            assert {m.member_id: m.assignment for m in group.stored.members} == {
                member_id: member.assignment for member_id, member in members.items()
            }

    @invariant()
    def generations_are_whole(self) -> None:
        """Replies to the joins of one generation agree."""
        leaders: dict[int, set[str]] = {}
        for ticket in self.joins:
            result = self.harness.replies.get(ticket)
            if not isinstance(result, JoinResult) or result.error is not ErrorCode.NONE:
                continue
            assert result.protocol_name in dict(self.joins[ticket].protocols)
            if result.members:
                assert result.leader == result.member_id
                assert result.member_id in {member.member_id for member in result.members}
                leaders.setdefault(result.generation_id, set()).add(result.member_id)

    @invariant()
    def assignments_are_the_leaders(self) -> None:
        for ticket, request in self.syncs.items():
            result = self.harness.replies.get(ticket)
            if isinstance(result, SyncResult) and result.error is ErrorCode.NONE and result.assignment:
                given = [assignments.get(request.member_id) for assignments in self.assigned[request.generation_id]]
                assert result.assignment in given or request.group_instance_id is not None

    def teardown(self) -> None:
        """Without requests, every wait and session ends, and the group is Empty or removed."""
        if not hasattr(self, "harness"):
            return
        self.harness.fail_next = None
        self.harness.advance(LONG_ENOUGH_MS)
        self.harness.check()
        assert all(ticket in self.harness.replies for ticket in self.harness.asked)
        assert self.group is None or self.group.state is GroupState.EMPTY
        assert not stable(self.harness, GROUP)


TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=examples(150), stateful_step_count=100, deadline=None, suppress_health_check=list(HealthCheck)
)
