"""What a history need not have kept is taken out of it, and nothing else."""

from __future__ import annotations

import pytest

from compat_tests.faults.check import Kind, check
from compat_tests.faults.history import (
    Acknowledged,
    History,
    Look,
    Outcome,
    Read,
    Reader,
    Record,
    StateLook,
    Stored,
    Transaction,
)
from compat_tests.faults.share_groups.check import Wrong
from compat_tests.faults.share_groups.check import check as check_share_group
from compat_tests.faults.share_groups.history import Acknowledgement, Delivery, ShareHistory
from compat_tests.faults.share_groups.history import Kind as Said
from kpybroker.core.leader_and_isr import NO_LEADER
from tests.simulation.checks.excuses import identity, of_share_group, without_deleted, without_lost, without_unsynced
from tests.simulation.checks.steps import _begins_within_a_batch, _Seen

PLACE = ("t", 0)


def record(number: int) -> Record:
    return Record("producer1", number)


def history(acknowledged: range, there: list[tuple[int, int]], read: range = range(0)) -> History:
    """Record n was acknowledged at offset n; `there` are offsets and numbers."""
    reader = Reader("reader", False, {PLACE: [Read(number, record(number)) for number in read]}, finished=True)
    return History(
        acknowledged={PLACE: [Acknowledged(record(number), number, 1, 2) for number in acknowledged]},
        readers=[reader],
        log={PLACE: [Stored(offset, record(number), 0) for offset, number in there]},
    )


def kinds(found: History) -> set[Kind]:
    return {problem.kind for problem in check(found)}


def test_what_was_deleted_need_not_be_there() -> None:
    found = history(range(6), [(4, 4), (5, 5)], read=range(6))
    assert kinds(found) == {Kind.LOST}
    without_deleted(found, {PLACE: 4})
    assert kinds(found) == set()


def test_what_was_not_deleted_has_to_be_there() -> None:
    found = history(range(6), [(5, 5)], read=range(6))
    without_deleted(found, {PLACE: 4})
    assert kinds(found) == {Kind.LOST}


def test_what_was_deleted_and_is_there_again_may_have_been_missed_and_no_more() -> None:
    """As after a power cut, when the log's start was not in its checkpoint yet."""
    found = history(range(6), [(number, number) for number in range(6)], read=range(4, 6))
    assert kinds(found) == {Kind.UNSEEN}
    without_deleted(found, {PLACE: 4})
    assert kinds(found) == set()
    without_deleted(found, {PLACE: 3})
    assert kinds(found) == {Kind.UNSEEN}


def test_what_was_not_synced_may_be_gone_after_a_power_cut_and_what_was_committed_may_not() -> None:
    for end, high_watermark, expected in ((5, 5, set()), (4, 4, {Kind.LOG_END_BACK, Kind.HIGH_WATERMARK_BACK})):
        found = History(looks={PLACE: [Look(1, 1, 0, 0, 5, 7), Look(3, 2, 1, 0, 6, 9)]})
        without_unsynced(found, 1)
        found.looks[PLACE].insert(1, Look(2, 1, 0, 0, high_watermark, end))
        assert kinds(found) == expected
        assert found.looks[PLACE][2].log_end == 9


def test_a_committed_transaction_may_miss_what_was_deleted_of_it_and_no_more() -> None:
    for there, expected in (([(4, 4), (5, 5)], set()), ([(4, 4)], {Kind.LOST})):
        found = history(range(6), there)
        found.readers.clear()
        found.committed[PLACE] = found.log[PLACE]
        found.transactions.append(Transaction(Outcome.COMMITTED, tuple((PLACE, record(n)) for n in range(6))))
        without_deleted(found, {PLACE: 4})
        assert kinds(found) == expected


def test_after_an_unclean_election_what_was_behind_the_end_of_its_leader_may_be_gone_or_another() -> None:
    found = history(range(6), [(0, 0), (1, 1), (2, 2), (3, 7), (4, 8)], read=range(5))
    found.readers[0].is_shared = True
    assert kinds(found) >= {Kind.LOST, Kind.CHANGED}
    without_lost(found, {PLACE: 3})
    found.readers[0].reads[PLACE] += [Read(3, record(7)), Read(4, record(8))]
    assert kinds(found) == set()


def test_what_was_before_the_end_of_an_unclean_leader_has_to_be_there() -> None:
    found = history(range(6), [(0, 0), (1, 1)])
    found.readers.clear()
    without_lost(found, {PLACE: 3})
    assert kinds(found) == {Kind.LOST}


def test_a_share_group_need_not_find_what_was_deleted() -> None:
    shared = ShareHistory(
        2000,
        5,
        deliveries=[Delivery("sharer1", PLACE, offset, identity(record(offset)), 1, 1, 2) for offset in range(3)],
    )
    found = of_share_group(shared, history(range(3), [(2, 2)]), "t", {})
    assert found.log == {PLACE: {2: identity(record(2))}}
    assert [one.offset for one in found.deliveries] == [2]


def test_a_share_group_need_not_have_got_what_was_deleted_and_is_there_again() -> None:
    there = history(range(4), [(number, number) for number in range(4)])
    shared = ShareHistory(2000, 5, is_drained=True)
    for deleted, missed in (({}, 4), ({PLACE: 2}, 2), ({PLACE: 4}, 0)):
        problems = check_share_group(of_share_group(shared, there, "t", deleted))
        assert [problem.kind for problem in problems] == [Wrong.UNDELIVERED] * missed


def test_what_was_deleted_is_still_no_ones_twice() -> None:
    deliveries = [Delivery(name, PLACE, 0, identity(record(0)), 1, 10, 20) for name in ("sharer1", "sharer2")]
    shared = ShareHistory(2000, 5, deliveries=deliveries, is_drained=True)
    found = of_share_group(shared, history(range(1), [(0, 0)]), "t", {PLACE: 1})
    assert Wrong.TWO_HOLDERS in {problem.kind for problem in check_share_group(found)}


@pytest.mark.parametrize(
    ("leaders", "is_wrong"),
    [
        ({100: 1, 400: 2}, True),
        ({100: 2, 400: 2}, True),
        ({100: 2, 400: 1}, True),
        ({100: 1, 400: 1}, False),
        ({100: 1, 400: 3}, False),
        ({100: 1, 400: NO_LEADER}, True),
        ({}, True),
    ],
)
def test_a_leader_may_deliver_what_was_accepted_while_another_leads(leaders: dict[int, int], is_wrong: bool) -> None:
    """Leader 2 delivers to the second member between 200 and 300, and the tree is looked at before and after that."""
    first, second = (
        Delivery(f"sharer{number}", PLACE, 0, identity(record(0)), number, asked, asked + 100, leader=number)
        for number, asked in ((1, 10), (2, 200))
    )
    accepted = Acknowledgement("sharer1", PLACE, 0, Said.ACCEPT, 120, 130)
    shared = ShareHistory(1, 5, deliveries=[first, second], acknowledgements=[accepted], is_drained=True)
    found = history(range(1), [(0, 0)])
    found.states[PLACE] = [StateLook(at, at, 0, leader, 0, 0, frozenset()) for at, leader in leaders.items()]
    problems = check_share_group(of_share_group(shared, found, "t", {}))
    assert [problem.kind for problem in problems] == [Wrong.DELIVERED_AGAIN] * is_wrong


def test_a_log_start_falls_only_for_a_follower_without_records_that_begins_within_a_batch() -> None:
    empty = _Seen(3, False, 614, 614, 614, -1, 1)
    lower = empty._replace(log_start=612, high_watermark=612, log_end=612, truncations=2)
    assert _begins_within_a_batch(empty, lower)
    assert not _begins_within_a_batch(empty, lower._replace(truncations=1))
    assert not _begins_within_a_batch(empty, lower._replace(is_leader=True))
    assert not _begins_within_a_batch(empty._replace(log_end=620), lower)
    assert not _begins_within_a_batch(empty, lower._replace(log_end=615))
