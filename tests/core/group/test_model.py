"""The group state machine replies as the model does, for any order of requests and time.

Everything is compared after every step: each response, which requests still wait, state, generation, members, offsets.
What the model leaves out (failing appends, transactions, a coordinator that moves) is in `test_stateful.py`.
"""

from __future__ import annotations

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kpybroker.core.group.values import (
    CommitOffsets,
    CommitResult,
    DeleteGroup,
    DeleteOffsets,
    DeleteOffsetsResult,
    Heartbeat,
    JoinResult,
    Leave,
    LeaveResult,
    LeavingMember,
    Sync,
    SyncResult,
)
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.map_order import scala_hash_map_order
from tests.core.group.harness import Harness, join_of, subscription
from tests.core.group.model import Member, Model, Response
from tests.support.examples import examples

GROUP = "g"
T, TU = subscription("t"), subscription("t", "u")
TOPICS_OF = {T: frozenset("t"), TU: frozenset("tu"), b"": frozenset()}
PROTOCOLS = {
    "range, sticky": (("range", T), ("sticky", T)),
    "sticky, range": (("sticky", TU), ("range", TU)),
    "range": (("range", T),),
    "sticky": (("sticky", TU),),
    "none": (),
}
# Times that do not add up to each other, so that no two deadlines are equal by accident.
SESSIONS_MS, REBALANCES_MS = (6_007, 11_003), (5_009, 17_011, 17_011, 400_003)
RETENTION_MS = 9_001
LONG_ENOUGH_MS = 3_600_000

WHO = st.integers(0, 11)
WISH = st.tuples(
    st.sampled_from(["range, sticky"] * 4 + sorted(PROTOCOLS)),
    st.sampled_from(SESSIONS_MS),
    st.sampled_from(REBALANCES_MS),
)
PLACES = st.sampled_from([("t", 0), ("t", 1), ("u", 0)])


def plain(result: object) -> Response:
    """A reply of the state machine in the model's form."""
    match result:
        case JoinResult(ErrorCode.NONE):
            members = frozenset(member.member_id for member in result.members)
            generation, leader, protocol = result.generation_id, result.leader, result.protocol_name
            return ("NONE", result.member_id, generation, leader, protocol, members, result.skip_assignment)
        case JoinResult():
            return (result.error.name, result.member_id)
        case SyncResult(ErrorCode.NONE):
            return ("NONE", result.assignment)
        case ErrorCode():
            return (result.name,)
        case SyncResult():
            return (result.error.name,)
        case LeaveResult():
            return (result.error.name, tuple(error.name for _, error in result.members))
        case CommitResult():
            (error,) = result.errors.values()
            return (error.name,)
        case DeleteOffsetsResult(ErrorCode.NONE):
            return ("NONE", tuple(error.name for _, error in sorted(result.errors.items())))
        case DeleteOffsetsResult():
            return (result.error.name,)
    raise AssertionError(result)


def wish_of(member: Member) -> tuple[str, int, int]:
    name = next(name for name, protocols in PROTOCOLS.items() if protocols == member.protocols)
    return name, member.session_ms, member.rebalance_ms


class AgainstTheModel(RuleBasedStateMachine):
    @initialize(
        delay=st.sampled_from([0, 3_001]),
        size=st.sampled_from([2, 100, 100]),
        founders=st.lists(st.tuples(st.sampled_from([None, None, "i", "j", "k"]), WISH), max_size=4),
        settled=st.booleans(),
    )
    def begin(
        self, delay: int, size: int, founders: list[tuple[str | None, tuple[str, int, int]]], settled: bool
    ) -> None:
        """A group with some members, with or without an assignment."""
        self.harness = Harness()
        self.harness.do_config(
            f"group_initial_rebalance_delay_ms={delay}",
            f"group_max_size={size}",
            f"offsets_retention_ms={RETENTION_MS}",
        )
        self.model = Model(delay, size, RETENTION_MS, self._choice, scala_hash_map_order, TOPICS_OF.__getitem__)
        self.tickets = 0
        self.known: list[tuple[str, str | None]] = [("stranger", None), ("", "j")]
        for instance, wish in founders:
            self._join("", instance, wish, 3, "consumer")
        if founders and settled:
            self.settles()

    def _ask(self, request: object) -> str:
        self.tickets += 1
        ticket = f"t{self.tickets}"
        self.harness.ask(ticket, request)
        return ticket

    def _choice(self, generation: int) -> tuple[str, str]:
        """Leader and protocol of a generation, from its leader's JoinGroup reply."""
        for ticket in reversed(self.harness.replies):
            result = self.harness.replies[ticket]
            if isinstance(result, JoinResult) and result.generation_id == generation and result.members:
                assert result.protocol_name is not None
                return result.leader, result.protocol_name
        raise AssertionError(f"no leader has received generation {generation}")

    def _pick(self, who: int) -> tuple[str, str | None]:
        """Mostly a present member, sometimes a former one."""
        present = [(member_id, member.instance) for member_id, member in self.model.members.items()]
        choice = [*present, *present, *((one, None) for one in self.model.promised), *self.known[-3:]]
        return choice[who % len(choice)]

    # --- members

    def _join(
        self, member_id: str, instance: str | None, wish: tuple[str, int, int], version: int, protocol_type: str
    ) -> None:
        new_id = "" if member_id else self.harness.next_member(instance or "c")
        if new_id:
            self.known.append((new_id, instance))
        name, session_ms, rebalance_ms = wish
        if session_ms in SESSIONS_MS:
            session_ms += self.tickets  # sessions that begin together, as those of a generation do, do not end together
        ticket = self._ask(
            join_of(
                GROUP,
                member_id,
                instance,
                PROTOCOLS[name],
                version,
                new_member_id=new_id,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                protocol_type=protocol_type,
            )
        )
        member = Member(instance, PROTOCOLS[name], session_ms, rebalance_ms, ends_at=0)
        self.model.join(ticket, member_id, new_id, protocol_type, member, version)

    @rule(
        instance=st.sampled_from([None, None, "i", "j"]),
        wish=WISH,
        version=st.sampled_from([3, 4, 9]),
        protocol_type=st.sampled_from(["consumer"] * 5 + ["connect"]),
    )
    def joins_as_new(self, instance: str | None, wish: tuple[str, int, int], version: int, protocol_type: str) -> None:
        self._join("", instance, wish, version, protocol_type)

    @rule(who=WHO, wish=WISH)
    def joins_again(self, who: int, wish: tuple[str, int, int]) -> None:
        member_id, instance = self._pick(who)
        self._join(member_id, instance, wish, 9, self.model.protocol_type or "consumer")

    @rule(slow=WHO)
    def all_but_one_join_again(self, slow: int) -> None:
        """What clients do when a heartbeat asks them to rejoin."""
        for place, (member_id, member) in enumerate(list(self.model.members.items())):
            if place != slow and member.joins is None and member_id in self.model.members:
                self._join(member_id, member.instance, wish_of(member), 9, self.model.protocol_type or "")
        self.time_passes(0)

    @precondition(lambda self: self.model.members)
    @rule()
    def settles(self) -> None:
        """All join, and all receive an assignment."""
        self.all_but_one_join_again(-1)
        self.time_passes(3_001)
        if self.model.state == "CompletingRebalance":
            self.all_but_one_sync(-1, True)

    @rule(who=WHO, lag=st.sampled_from([0, 0, 0, 1]))
    def syncs(self, who: int, lag: int) -> None:
        self._sync(*self._pick(who), self.model.generation - lag)

    @precondition(lambda self: self.model.state == "CompletingRebalance")
    @rule(slow=WHO, leader_first=st.booleans())
    def all_but_one_sync(self, slow: int, leader_first: bool) -> None:
        members = sorted(self.model.members.items(), key=lambda item: (item[0] == self.model.leader) != leader_first)
        for place, (member_id, member) in enumerate(members):
            if place != slow:
                self._sync(member_id, member.instance, self.model.generation)

    def _sync(self, member_id: str, instance: str | None, generation: int) -> None:
        parts = {other: f"{generation} {other}".encode() for other in list(self.model.members)[:3]}
        ticket = self._ask(Sync(GROUP, generation, member_id, instance, None, None, parts))
        self.model.sync(ticket, member_id, instance, generation, parts)

    @rule(who=WHO, lag=st.sampled_from([0, 0, 0, 1]), instance=st.sampled_from(["its own", "its own", "i", None]))
    def heartbeats(self, who: int, lag: int, instance: str | None) -> None:
        member_id, own = self._pick(who)
        name = own if instance == "its own" else instance
        generation = self.model.generation - lag
        ticket = self._ask(Heartbeat(GROUP, generation, member_id, name))
        self.model.heartbeat(ticket, member_id, name, generation)

    @rule(silent=WHO, rounds=st.integers(1, 4))
    def all_but_one_keep_alive(self, silent: int, rounds: int) -> None:
        """Heartbeats within the shortest session, for longer than a session, a sync phase or the retention of offsets.

        They follow one another, so that no two sessions end at the same time; waiting members send none.
        """
        for _ in range(rounds):
            self.time_passes(2_990)
            for place, member_id in enumerate(list(self.model.members)):
                self.time_passes(1)
                member = self.model.members.get(member_id)
                if place != silent and member is not None and member.joins is None and member.syncs is None:
                    ticket = self._ask(Heartbeat(GROUP, self.model.generation, member_id, member.instance))
                    self.model.heartbeat(ticket, member_id, member.instance, self.model.generation)

    @precondition(lambda self: any(member.instance for member in self.model.members.values()))
    @rule(who=WHO)
    def an_instance_restarts_before_it_syncs(self, who: int) -> None:
        """It gets its assignment under its new id, and the group does not wait for the old one."""
        self.all_but_one_join_again(-1)
        self.time_passes(3_001)
        members, leader = list(self.model.members.items()), self.model.leader
        followers = [name for one, member in members if one != leader and (name := member.instance) is not None]
        if self.model.state != "CompletingRebalance" or not followers:
            return
        name = followers[who % len(followers)]
        for member_id, member in sorted(members, key=lambda item: item[0] != leader):
            if member.instance != name:
                self._sync(member_id, member.instance, self.model.generation)
        old_id = self.model.holder(name)
        assert old_id is not None
        self._join("", name, wish_of(self.model.members[old_id]), 9, self.model.protocol_type or "")
        new_id = self.model.holder(name)
        if new_id is not None and new_id != old_id:  # a full group refuses it
            self._sync(new_id, name, self.model.generation)
            self.all_but_one_keep_alive(-1, 6)

    @precondition(lambda self: self.model.promised)
    @rule(who=WHO)
    def a_promised_id_is_given_back(self, who: int) -> None:
        member_id = list(self.model.promised)[who % len(self.model.promised)]
        ticket = self._ask(Leave(GROUP, (LeavingMember(member_id),)))
        self.model.leave(ticket, [(member_id, None)])

    @rule(leaving=st.lists(st.tuples(WHO, st.sampled_from(["id", "id", "instance", "both"])), min_size=1, max_size=3))
    def leave(self, leaving: list[tuple[int, str]]) -> None:
        """One, or several at once, by id or as an administrator removes them."""
        picked = []
        for who, named in leaving:
            member_id, instance = self._pick(who)
            picked.append((member_id if named != "instance" else "", instance if named != "id" else None))
        ticket = self._ask(Leave(GROUP, tuple(LeavingMember(*one) for one in picked)))
        if not self.model.exists:
            self.model.say(ticket, "NONE", ("UNKNOWN_MEMBER_ID",) * len(picked))
        else:
            self.model.leave(ticket, picked)

    # --- offsets, and the group's end

    @rule(who=WHO, place=PLACES, lag=st.sampled_from([0, 0, 0, 1]), alone=st.booleans())
    def commits(self, who: int, place: tuple[str, int], lag: int, alone: bool) -> None:
        member_id, instance = ("", None) if alone else self._pick(who)
        generation = -1 if alone else self.model.generation - lag
        offset = self.tickets
        value = OffsetAndMetadata(offset, -1, "", self.harness.now.wall_ms)
        ticket = self._ask(CommitOffsets(GROUP, member_id, instance, generation, {place: value}))
        self.model.commit(ticket, member_id, instance, generation, place, offset)

    @rule(places=st.lists(PLACES, max_size=3, unique=True), keeps_group=st.booleans())
    def offsets_are_deleted(self, places: list[tuple[str, int]], keeps_group: bool) -> None:
        ticket = self._ask(DeleteOffsets(GROUP, tuple(sorted(places)), keeps_group))
        self.model.delete_offsets(ticket, sorted(places), keeps_group)

    @precondition(lambda self: self.model.state != "Empty" or self.model.offsets)
    @rule()
    def the_group_is_deleted(self) -> None:
        ticket = self._ask(DeleteGroup(GROUP))
        self.model.delete(ticket)

    @rule()
    def the_cleaner_comes(self) -> None:
        self.harness.do_cleanup(GROUP)
        self.model.clean_up()

    # --- time

    @rule(milliseconds=st.sampled_from([0, 1, 997, 3_001, 4_999, 6_007, 9_001, 17_011, 300_007]))
    def time_passes(self, milliseconds: int) -> None:
        end = self.harness.time_ms + milliseconds
        self.harness.advance(milliseconds)
        while (deadlines := self.model.deadlines()) and deadlines[0] <= end:
            assume(deadlines[0] not in deadlines[1:])  # which of two at one time comes first is said nowhere
            self.model.tick(max(deadlines[0], self.model.now_ms))
        self.model.now_ms = end

    # --- invariants

    @invariant()
    def both_say_the_same(self) -> None:
        self.harness.check()
        replies = {ticket: plain(result) for ticket, result in self.harness.replies.items()}
        assert replies == self.model.responses

    @invariant()
    def both_are_in_the_same_state(self) -> None:
        group, model = self.harness.machine.groups.get(GROUP), self.model
        assert (group is not None) == model.exists
        if group is None:
            return
        assert (group.state.value, group.generation_id) == (model.state, model.generation)
        assert set(group.members) == set(model.members)
        assert set(group.pending_members) == set(model.promised)
        assert {partition: kept.value.offset for partition, kept in group.offsets.committed.items()} == {
            partition: offset for partition, (offset, _) in model.offsets.items()
        }

    def teardown(self) -> None:
        """Without requests, every wait and every session ends."""
        if hasattr(self, "harness"):
            self.time_passes(LONG_ENOUGH_MS)
            self.both_say_the_same()
            self.both_are_in_the_same_state()
            assert self.harness.asked == set(self.harness.replies)
            assert self.model.state == "Empty"


TestAgainstTheModel = AgainstTheModel.TestCase
TestAgainstTheModel.settings = settings(
    max_examples=examples(200), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
