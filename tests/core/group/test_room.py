"""A full budget refuses what would grow, with an error that clients survive, and nothing that works."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from kpybroker.core.budget import Owner, StateBudget, StateLimits
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.values import (
    CommitOffsets,
    CommitResult,
    GroupState,
    Heartbeat,
    Join,
    JoinResult,
    Leave,
    LeavingMember,
    Protocols,
    Sync,
    SyncResult,
)
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.errors import ErrorCode
from tests.core.group.harness import Harness, charged_bytes, join_of, subscription

MIB = 1024 * 1024
HERE, THERE = Owner(address="10.0.0.1"), Owner(address="10.0.0.2")
OFFSET = {("t", 0): OffsetAndMetadata(5, 0, "", 1)}
RANGE: Protocols = (("range", subscription("t")),)


class Bounded(Harness):
    """Without a wait for more members, and with a budget."""

    def __init__(self, **limits: int) -> None:
        super().__init__()
        self.config = replace(self.config, group_initial_rebalance_delay_ms=0)
        self.budget = StateBudget(StateLimits(**limits))
        self.machine = GroupMachine(self.config, self.budget)
        self.owner = HERE

    def ask(self, ticket: str, request: Any) -> None:
        if isinstance(request, Join | Sync | CommitOffsets):
            request = replace(request, owner=self.owner)
        super(Harness, self).ask(ticket, request)

    def response(self, request: object) -> Any:
        ticket = f"t{len(self.asked)}"
        self.ask(ticket, request)
        self.advance(10)
        return self.replies.get(ticket)

    def join(self, group_id: str, protocols: Protocols = RANGE, *, version: int = 3, member_id: str = "") -> Any:
        fields = {
            "session_timeout_ms": 1_800_000,
            "rebalance_timeout_ms": 60_000,
            "new_member_id": self.next_member("m"),
        }
        return self.response(join_of(group_id, member_id, None, protocols, version, **fields))


def full(bounded: Bounded) -> None:
    """Let the first owner take all that it may have."""
    left = bounded.budget._limits.address - bounded.budget.held(HERE)
    bounded.budget.add(HERE, left)


def grown(attack: Any) -> int:
    """What an attack on a machine without a budget leaves in memory."""
    tracemalloc.start()
    try:
        attack()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


BUILDERS: dict[str, Any] = {
    "metadata": lambda bounded, number: bounded.join(f"g{number}", (("range", bytes(MIB)),)),
    "protocols": lambda bounded, number: bounded.join(
        f"g{number}", tuple((f"p{n}-{number}", b"") for n in range(3000))
    ),
    "pending members": lambda bounded, number: bounded.join("g", version=4),
    "groups without members": lambda bounded, number: bounded.join(f"g{number}", ()),
    "groups with long names": lambda bounded, number: bounded.join(f"{number}" * 5000, ()),
    "members of one group": lambda bounded, number: bounded.join("g", (("range", b"%d" % number),)),
    "offsets": lambda bounded, number: bounded.response(
        CommitOffsets(
            f"g{number}",
            "",
            None,
            -1,
            {("topic", index): OffsetAndMetadata(index + 1000, 0, f"{number}-{index}", 1) for index in range(100)},
        )
    ),
    "metadata of offsets": lambda bounded, number: bounded.response(
        CommitOffsets("g", "", None, -1, {("topic", number): OffsetAndMetadata(1, 0, f"{number:4000}", 1)})
    ),
}
COUNTS = {"metadata": 20, "protocols": 20, "offsets": 30}


@pytest.mark.parametrize("name", BUILDERS)
def test_estimates_are_not_below_what_is_in_memory(name: str) -> None:
    """And not far above it: a legitimate group is not refused for memory that it does not take."""
    bounded = Bounded()
    bounded.output, bounded.log = Nothing(), Nothing()
    taken = grown(lambda: [BUILDERS[name](bounded, number) for number in range(COUNTS.get(name, 1000))])
    bounded.asked.clear()
    print(f"{name}: {taken / bounded.budget.total:.2f} of the estimate")
    assert 0.1 < taken / bounded.budget.total < 1.3


class Nothing(list[Any]):
    """The transcript and the log of a harness, which these tests do not read."""

    def append(self, line: object) -> None:
        pass


@pytest.mark.parametrize("name", BUILDERS)
def test_an_attack_stops_at_the_limit_of_its_address(name: str) -> None:
    bounded = Bounded(address=4 * MIB)
    for number in range(10_000):
        before = bounded.budget.held(HERE)
        response = BUILDERS[name](bounded, number)
        if bounded.budget.held(HERE) == before:
            break
    assert bounded.budget.held(HERE) <= 4 * MIB
    code = next(iter(response.errors.values())) if isinstance(response, CommitResult) else response.error
    assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bounded.owner = THERE
    assert bounded.join("another").error is ErrorCode.NONE
    charged = charged_bytes(bounded.machine, HERE) + charged_bytes(bounded.machine, THERE)
    assert bounded.budget.total == charged


def working_group(bounded: Bounded) -> JoinResult:
    joined: JoinResult = bounded.join("works")
    synced: SyncResult = bounded.response(
        Sync("works", joined.generation_id, joined.member_id, None, None, None, {joined.member_id: b"all"})
    )
    assert (joined.error, synced.error) == (ErrorCode.NONE, ErrorCode.NONE)
    commit = CommitOffsets(
        "works", joined.member_id, None, joined.generation_id, {("t", 0): OffsetAndMetadata(1, 0, "", 1)}
    )
    assert bounded.response(commit).errors == {("t", 0): ErrorCode.NONE}
    return joined


def test_a_group_that_works_goes_on_when_its_address_is_full() -> None:
    bounded = Bounded(address=4 * MIB)
    joined = working_group(bounded)
    full(bounded)
    assert bounded.join("new").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "new" not in bounded.machine.groups
    assert bounded.response(Heartbeat("works", joined.generation_id, joined.member_id, None)) is ErrorCode.NONE
    again: JoinResult = bounded.join("works", member_id=joined.member_id)
    assert (again.error, again.generation_id) == (ErrorCode.NONE, joined.generation_id + 1)
    sync = Sync("works", again.generation_id, joined.member_id, None, None, None, {joined.member_id: b"all"})
    assert bounded.response(sync).error is ErrorCode.NONE
    offset = OffsetAndMetadata(77, 0, "", 1)
    commit = CommitOffsets("works", joined.member_id, None, again.generation_id, {("t", 0): offset})
    assert bounded.response(commit).errors == {("t", 0): ErrorCode.NONE}
    assert bounded.response(replace(commit, offsets={("t", 1): offset})).errors == {
        ("t", 1): ErrorCode.COORDINATOR_NOT_AVAILABLE
    }


def test_an_assignment_for_which_there_is_no_room_is_refused_and_can_be_sent_again() -> None:
    bounded = Bounded(address=4 * MIB)
    joined = bounded.join("g")
    sync = Sync("g", joined.generation_id, joined.member_id, None, None, None, {joined.member_id: bytes(4 * MIB)})
    assert bounded.response(sync).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bounded.machine.groups["g"].state is GroupState.COMPLETING_REBALANCE
    assert bounded.response(replace(sync, assignments={joined.member_id: b"less"})).error is ErrorCode.NONE


def test_what_was_in_the_log_is_never_refused() -> None:
    """After a restart, members rejoin with what they support, of which the log has one protocol."""
    bounded = Bounded(address=4 * MIB)
    joined = working_group(bounded)
    bounded.do_reload()
    full(bounded)
    assert bounded.response(Heartbeat("works", joined.generation_id, joined.member_id, None)) is ErrorCode.NONE
    both = (*RANGE, ("cooperative-sticky", subscription("t") * 2))
    again: JoinResult = bounded.join("works", both, member_id=joined.member_id)
    assert (again.error, again.generation_id) == (ErrorCode.NONE, joined.generation_id + 1)
    commit = CommitOffsets(
        "works", joined.member_id, None, again.generation_id, {("t", 0): OffsetAndMetadata(5, 0, "", 1)}
    )
    sync = Sync("works", again.generation_id, joined.member_id, None, None, None, {joined.member_id: b"all"})
    assert bounded.response(sync).error is ErrorCode.NONE
    assert bounded.response(commit).errors == {("t", 0): ErrorCode.NONE}


def test_all_of_a_members_memory_returns_when_it_leaves_though_its_session_was_long() -> None:
    bounded = Bounded()
    bounded.output = Nothing()

    def join_and_leave() -> None:
        for number in range(60):
            joined = bounded.join(f"g{number}", (("range", bytes(MIB)), *((f"p{n}", b"x") for n in range(1000))))
            bounded.response(Leave(f"g{number}", (LeavingMember(joined.member_id),)))
            bounded.replies.clear()

    assert grown(join_and_leave) < 4 * MIB
    assert all(not group.protocol_counts for group in bounded.machine.groups.values())


@pytest.mark.parametrize("version", [3, 4])
def test_stale_timers_do_not_pile_up(version: int) -> None:
    """Sessions of half an hour, and a rebalance timeout of a minute, of members that leave at once."""
    bounded = Bounded()
    bounded.output = Nothing()
    for _ in range(5_000):
        joined = bounded.join("g", version=version)
        bounded.response(Leave("g", (LeavingMember(joined.member_id),)))
    assert len(bounded.machine._timers) <= 1_100
