"""The checker finds each kind of problem in a history of a group made by hand, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.faults.check import Kind
from compat_tests.faults.groups.check import GROUP_KINDS, check_groups
from compat_tests.faults.groups.history import Beat, BeatKind, EpochLook, GroupHistory, GroupProtocol
from compat_tests.faults.history import CommitLook, Partition, StateLook
from compat_tests.support.groups.ownership import Event
from compat_tests.support.groups.ownership import Kind as Said
from kpybroker.wire.errors import ErrorCode

P: Partition = ("t", 0)
OFFSETS: Partition = ("__consumer_offsets", 0)
S = 1_000_000_000
HANDED_OVER_S = 10
"""From a, which leaves, to b."""
END_S = 20
MOVED_S = 15
"""The coordinator, from broker 1 to 2."""


def beat(member: str, second: float, asked: int, epoch: int, kind: BeatKind = BeatKind.CONSUMER) -> Beat:
    broker = 1 if second < MOVED_S else 2
    return Beat(kind, member, broker, int(second * S), int((second + 0.1) * S), asked, epoch, ErrorCode.NONE)


def said(member: str, second: float, kind: Said, offset: int = -1) -> Event:
    partitions = (P,) if kind in (Said.ASSIGNED, Said.REVOKED, Said.LOST, Said.RECORD) else ()
    return Event(member, int(second * S), kind, partitions, offset)


@pytest.fixture(name="group")
def sound() -> GroupHistory:
    """Ten records, five by each member; a commit after each."""
    group = GroupHistory("g", GroupProtocol.CONSUMER, OFFSETS)
    heartbeats = [beat("a", 0, 0, 2), *(beat("a", n + 0.5, 2, 2) for n in range(9))]
    heartbeats += [beat("b", 2, 0, 3), *(beat("b", n + 0.5, 3, 3) for n in range(2, END_S))]
    group.beats = heartbeats
    for member, first_s in (("a", 1), ("b", HANDED_OVER_S + 1)):
        group.events.append(said(member, first_s, Said.ASSIGNED))
        for n in range(5):
            offset = n if member == "a" else 5 + n
            group.events += [
                said(member, first_s + n + 0.2, Said.RECORD, offset),
                said(member, first_s + n + 0.4, Said.COMMITTED),
            ]
            group.commit_looks[P].append(CommitLook(int((first_s + n + 0.6) * S), 1, 0, offset + 1))
    group.events += [said("a", HANDED_OVER_S, Said.REVOKED), said("a", HANDED_OVER_S + 0.1, Said.CLOSING)]
    group.epoch_looks = [EpochLook(n * S, 1, 0, 2 + n // 3, 2 + n // 4, {"id-b": 2 + n // 4}) for n in range(END_S)]
    group.commits_found[P] = 10
    return group


def looks() -> list[StateLook]:
    """Broker 1 leads until it moves, then 2."""
    return [
        StateLook(int((n - 0.02) * S), int((n - 0.01) * S), n, 1 + (n >= MOVED_S), int(n >= MOVED_S), 1, frozenset())
        for n in range(END_S + 5)
    ]


def kinds(group: GroupHistory) -> set[Kind]:
    return {problem.kind for problem in check_groups([group], {OFFSETS: looks()})}


def hand_out_before_it_is_released(group: GroupHistory) -> None:
    group.events.append(said("b", 9, Said.ASSIGNED))


def hand_out_before_the_session_ends(group: GroupHistory) -> None:
    """a is fenced, too early: its last heartbeat is of 8.5."""
    group.events = [
        event for event in group.events if event.kind is not Said.REVOKED and event.kind is not Said.CLOSING
    ]
    group.events.append(said("a", 18, Said.LOST))


def commit_when_fenced(group: GroupHistory) -> None:
    group.events = [
        event for event in group.events if event.kind is not Said.REVOKED and event.kind is not Said.CLOSING
    ]
    group.beats = [one for one in group.beats if one.member == "b" or one.sent_ns < 2 * S]
    group.events += [said("a", 12.1, Said.RECORD, 5), said("a", 12.3, Said.COMMITTED)]


def read_what_is_not_owned(group: GroupHistory) -> None:
    group.events.append(said("b", 5, Said.RECORD, 9))


def read_in_disorder(group: GroupHistory) -> None:
    group.events.append(said("b", 15.9, Said.RECORD, 7))


def lower_the_groups_epoch(group: GroupHistory) -> None:
    group.epoch_looks[9] = group.epoch_looks[9]._replace(group_epoch=3)


def lower_the_assignments_epoch(group: GroupHistory) -> None:
    group.epoch_looks[9] = group.epoch_looks[9]._replace(assignment_epoch=3)


def lower_a_members_epoch(group: GroupHistory) -> None:
    group.epoch_looks[9] = group.epoch_looks[9]._replace(member_epochs={"id-b": 3})


def forget_an_epoch_with_an_election(group: GroupHistory) -> None:
    group.epoch_looks.append(EpochLook(0, 2, 1, 5, 6, {}))


def respond_with_a_lower_epoch(group: GroupHistory) -> None:
    group.beats = [*group.beats, beat("b", 9.5, 3, 2)]


def join_with_no_epoch(group: GroupHistory) -> None:
    group.beats = [*group.beats, beat("c", 9.5, 0, 0)]


def let_generations_fall(group: GroupHistory) -> None:
    group.protocol = GroupProtocol.CLASSIC
    group.beats = [*group.beats, beat("c", 3.1, 7, 7, BeatKind.SYNC), beat("c", 4.1, 6, 6, BeatKind.SYNC)]


def report_an_older_commit(group: GroupHistory) -> None:
    group.commit_looks[P].append(CommitLook(int(END_S * S), 1, 0, 4))


def lose_a_commit(group: GroupHistory) -> None:
    group.commits_found[P] = 9


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (hand_out_before_it_is_released, Kind.TWO_OWNERS),
        (hand_out_before_the_session_ends, Kind.TWO_OWNERS),
        (commit_when_fenced, Kind.STALE_COMMIT),
        (read_what_is_not_owned, Kind.UNOWNED),
        (read_in_disorder, Kind.REREAD),
        (lower_the_groups_epoch, Kind.EPOCH_BACK),
        (lower_the_assignments_epoch, Kind.EPOCH_BACK),
        (lower_a_members_epoch, Kind.EPOCH_BACK),
        (forget_an_epoch_with_an_election, Kind.EPOCH_BACK),
        (respond_with_a_lower_epoch, Kind.EPOCH_BACK),
        (join_with_no_epoch, Kind.EPOCH_BACK),
        (let_generations_fall, Kind.EPOCH_BACK),
        (report_an_older_commit, Kind.COMMIT_BACK),
        (lose_a_commit, Kind.COMMIT_BACK),
    ],
)
def test_each_kind_of_problem_is_found(group: GroupHistory, damage: Callable[[GroupHistory], None], kind: Kind) -> None:
    damage(group)
    assert kinds(group) == {kind}


def test_nothing_is_found_in_a_sound_history(group: GroupHistory) -> None:
    assert check_groups([group], {OFFSETS: looks()}) == []


def test_every_kind_of_groups_has_a_history() -> None:
    (mark,) = test_each_kind_of_problem_is_found.pytestmark  # type: ignore[attr-defined]
    assert {kind for _, kind in mark.args[1]} >= GROUP_KINDS


def test_before_the_end_nothing_is_missed_there(group: GroupHistory) -> None:
    group.commits_found.clear()
    assert check_groups([group], {OFFSETS: looks()}, is_over=False) == []
    assert kinds(group) == {Kind.COMMIT_BACK}


@pytest.mark.parametrize(
    "not_of_the_coordinator",
    [lambda one: one._replace(broker=3), lambda one: one._replace(reported_ns=(MOVED_S + 1) * S)],
    ids=["another broker", "handled when it was deposed, perhaps"],
)
def test_a_heartbeat_that_a_deposed_coordinator_accepted_keeps_no_partition(
    group: GroupHistory, not_of_the_coordinator: Callable[[Beat], Beat]
) -> None:
    hand_out_before_the_session_ends(group)
    group.beats = [
        not_of_the_coordinator(one) if one.member == "a" and one.sent_ns > 4 * S else one for one in group.beats
    ]
    assert kinds(group) == set()


def test_a_heartbeat_that_was_refused_keeps_no_partition(group: GroupHistory) -> None:
    hand_out_before_the_session_ends(group)
    group.beats = [
        one._replace(error=ErrorCode.UNKNOWN_MEMBER_ID) if one.member == "a" and one.sent_ns > 4 * S else one
        for one in group.beats
    ]
    assert kinds(group) == set()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"owned": frozenset(), "given": frozenset()}, set()),
        ({"owned": frozenset(), "given": frozenset(), "error": ErrorCode.NOT_COORDINATOR}, set()),
        ({"owned": frozenset(), "error": None}, set()),
        ({"owned": frozenset(), "given": frozenset(), "broker": 3}, set()),
        ({"owned": frozenset(), "error": ErrorCode.FENCED_MEMBER_EPOCH}, {Kind.TWO_OWNERS}),
        ({"owned": frozenset(), "given": frozenset({P})}, {Kind.TWO_OWNERS}),
        ({"given": frozenset()}, {Kind.TWO_OWNERS}),
    ],
    ids=["accepted", "refused", "without a response", "deposed", "fenced", "given again", "not reported"],
)
def test_a_member_that_reports_that_it_has_nothing_owns_nothing(
    group: GroupHistory, change: dict[str, Any], found: set[Kind]
) -> None:
    hand_out_before_it_is_released(group)
    joined, *rest = group.beats
    given = [joined._replace(owned=frozenset(), given=frozenset({P}))]
    group.beats = given + [
        one._replace(**change) if one.member == "a" and one.sent_ns == int(8.5 * S) else one for one in rest
    ]
    assert kinds(group) == found


def test_a_deposed_coordinator_may_report_old_epochs(group: GroupHistory) -> None:
    group.epoch_looks.append(EpochLook(END_S * S, 2, 1, 8, 8, {"id-b": 8}))
    group.epoch_looks.append(EpochLook((END_S + 1) * S, 1, 0, 8, 6, {}))
    assert kinds(group) == set()


def test_a_group_that_is_rolled_may_begin_again(group: GroupHistory) -> None:
    rolled = replace(group, protocol=GroupProtocol.ROLLED)
    lower_the_groups_epoch(rolled)
    assert kinds(rolled) == set()
