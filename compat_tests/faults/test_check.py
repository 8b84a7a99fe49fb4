"""The checker finds each kind of problem in histories made by hand, one a kind, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.faults.check import Kind, check
from compat_tests.faults.groups.check import GROUP_KINDS
from compat_tests.faults.history import (
    Absence,
    Acknowledged,
    CommitLook,
    FollowerLook,
    History,
    Look,
    Outcome,
    Partition,
    Read,
    Reader,
    Record,
    StateLook,
    Stored,
    Transaction,
    Trim,
    record_of,
)

P: Partition = ("t", 0)
IN_SYNC = frozenset({1, 2, 3})
SECOND_EPOCH_AT = 6
ABORTED_AT = (10, 11)


@pytest.fixture(name="history")
def sound() -> History:
    """Ten acknowledged records in two epochs, led by 1 and 2; then an aborted and a committed transaction."""
    history = History(idempotent={"a"})
    for n in range(10):
        epoch = int(n >= SECOND_EPOCH_AT)
        history.log[P].append(Stored(n, Record("a", n), epoch))
        history.acknowledged[P].append(Acknowledged(Record("a", n), n, 100 * n, 100 * n + 50, 1 + epoch))
        history.looks[P].append(Look(100 * n + 60, 1 + epoch, epoch, 0, n + 1, n + 2))
        history.heard[P].setdefault(7 + epoch, 100 * n - 35)
        history.states[P].append(StateLook(100 * n + 65, 100 * n + 70, 7 + epoch, 1 + epoch, epoch, 1, IN_SYNC))
        history.follower_looks[P].append(FollowerLook(100 * n + 75, 100 * n + 85, 3, n + 1))
        history.commit_looks[P].append(CommitLook(100 * n + 80, 1, 0, n))
    transactions = []
    for first, outcome in ((10, Outcome.ABORTED), (13, Outcome.COMMITTED)):
        records = [Stored(first + k, Record("tx", first + k), 1) for k in range(2)]
        history.log[P] += records
        transactions.append(Transaction(outcome, tuple((P, stored.record) for stored in records if stored.record)))
    history.transactions += transactions
    history.committed[P] = [stored for stored in history.log[P] if stored.offset not in ABORTED_AT]
    for name, committed_only in (("everything", False), ("committed", True)):
        shown = history.committed[P] if committed_only else history.log[P]
        reads = {P: [Read(stored.offset, stored.record) for stored in shown]}
        history.readers.append(Reader(name, committed_only, reads, finished=True))
    history.commits_acknowledged[P] += [(100, 1), (900, 9)]
    history.commits_found[P] = 9
    return history


def lose_the_tail(history: History) -> None:
    del history.log[P][9]
    del history.committed[P][9]
    for reader in history.readers:
        del reader.reads[P][9]


def lose_what_was_only_read(history: History) -> None:
    lose_the_tail(history)
    del history.acknowledged[P][9]
    history.readers[0].reads[P].append(Read(20, Record("b", 0)))


def put_another_in_its_place(history: History) -> None:
    history.log[P][4] = Stored(4, Record("b", 0), 0)


def move(history: History) -> None:
    history.acknowledged[P][4] = history.acknowledged[P][4]._replace(offset=5)


def write_twice(history: History) -> None:
    history.log[P].append(Stored(16, Record("a", 9), 1))


def turn_two_round(history: History) -> None:
    log = history.log[P]
    log[2], log[3] = log[2]._replace(record=log[3].record), log[3]._replace(record=log[2].record)


def write_what_no_one_sent(history: History) -> None:
    history.log[P].append(Stored(16, None, 1))


def read_nothing(history: History) -> None:
    history.readers[0].reads[P] = []


def change_what_was_read(history: History) -> None:
    history.readers[0].reads[P][3] = Read(3, Record("b", 7))


def skip_in_reading(history: History) -> None:
    del history.readers[0].reads[P][3]


def never_come_to_the_end(history: History) -> None:
    history.readers[1].finished = False


def read_twice(history: History) -> None:
    history.readers[0].reads[P].insert(4, Read(2, Record("a", 2)))


def read_what_was_aborted(history: History) -> None:
    history.readers[1].reads[P].insert(10, Read(10, Record("tx", 10)))


def commit_what_was_aborted(history: History) -> None:
    history.committed[P].insert(10, history.log[P][10])


def lose_of_a_committed_transaction(history: History) -> None:
    del history.committed[P][-2:]
    del history.readers[1].reads[P][-2:]


def tear_a_transaction(history: History) -> None:
    history.transactions[1] = history.transactions[1]._replace(outcome=Outcome.UNKNOWN)
    del history.committed[P][-1]
    del history.readers[1].reads[P][-1]


def let_the_high_watermark_fall(history: History) -> None:
    history.looks[P][4] = history.looks[P][4]._replace(high_watermark=2)


def let_it_fall_with_the_election(history: History) -> None:
    history.looks[P][SECOND_EPOCH_AT] = history.looks[P][SECOND_EPOCH_AT]._replace(high_watermark=5)


def let_the_end_fall(history: History) -> None:
    look = history.looks[P][4]
    history.looks[P][4] = look._replace(log_end=look.log_end - 1)
    history.looks[P][3] = history.looks[P][3]._replace(log_end=look.log_end)


def bring_back_what_was_deleted(history: History) -> None:
    history.trims[P].append(Trim(450, 3))


def let_epochs_fall_in_the_log(history: History) -> None:
    history.log[P][8] = history.log[P][8]._replace(leader_epoch=0)


def let_epochs_fall_in_the_tree(history: History) -> None:
    history.states[P][8] = history.states[P][8]._replace(leader_epoch=0)


def let_controllers_epochs_fall(history: History) -> None:
    history.states[P][3] = history.states[P][3]._replace(controller_epoch=2)


def respond_as_two_leaders(history: History) -> None:
    history.looks[P][3] = history.looks[P][3]._replace(broker=3)


def acknowledge_as_two_leaders(history: History) -> None:
    history.acknowledged[P][3] = history.acknowledged[P][3]._replace(broker=3)


def acknowledge_while_one_stands_still(history: History) -> None:
    history.absences.append(Absence(3, 290, 360))


def acknowledge_below_min_isr(history: History) -> None:
    for n in (2, 3):
        history.states[P][n] = history.states[P][n]._replace(isr=frozenset({1}))


def be_in_the_isr_without_what_is_committed(history: History) -> None:
    history.follower_looks[P][3] = history.follower_looks[P][3]._replace(log_end=3)


def tell_an_older_commit(history: History) -> None:
    history.commit_looks[P][5] = history.commit_looks[P][5]._replace(offset=2)


def forget_a_commit_with_an_election(history: History) -> None:
    history.commit_looks[P][9] = history.commit_looks[P][9]._replace(leader_epoch=1, offset=4)


def lose_a_commit(history: History) -> None:
    history.commits_found[P] = 8


def fail(history: History) -> None:
    history.failures.append("a broker ended by itself")


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lose_the_tail, Kind.LOST),
        (lose_what_was_only_read, Kind.LOST),
        (put_another_in_its_place, Kind.LOST),
        (move, Kind.MOVED),
        (write_twice, Kind.DUPLICATED),
        (turn_two_round, Kind.REORDERED),
        (write_what_no_one_sent, Kind.INVENTED),
        (change_what_was_read, Kind.CHANGED),
        (skip_in_reading, Kind.UNSEEN),
        (read_nothing, Kind.UNSEEN),
        (never_come_to_the_end, Kind.UNSEEN),
        (read_twice, Kind.REREAD),
        (read_what_was_aborted, Kind.ABORTED_READ),
        (commit_what_was_aborted, Kind.ABORTED_READ),
        (lose_of_a_committed_transaction, Kind.LOST),
        (tear_a_transaction, Kind.TORN),
        (let_the_high_watermark_fall, Kind.HIGH_WATERMARK_BACK),
        (let_it_fall_with_the_election, Kind.HIGH_WATERMARK_BACK),
        (let_the_end_fall, Kind.LOG_END_BACK),
        (bring_back_what_was_deleted, Kind.LOG_START_BACK),
        (let_epochs_fall_in_the_log, Kind.EPOCH_BACK),
        (let_epochs_fall_in_the_tree, Kind.EPOCH_BACK),
        (let_controllers_epochs_fall, Kind.EPOCH_BACK),
        (respond_as_two_leaders, Kind.TWO_LEADERS),
        (acknowledge_as_two_leaders, Kind.TWO_LEADERS),
        (acknowledge_while_one_stands_still, Kind.NOT_IN_SYNC),
        (acknowledge_below_min_isr, Kind.BELOW_MIN_ISR),
        (be_in_the_isr_without_what_is_committed, Kind.BEHIND),
        (forget_a_commit_with_an_election, Kind.COMMIT_BACK),
        (tell_an_older_commit, Kind.COMMIT_BACK),
        (lose_a_commit, Kind.COMMIT_BACK),
        (fail, Kind.FAILURE),
    ],
)
def test_each_kind_of_problem_is_found(history: History, damage: Callable[[History], None], kind: Kind) -> None:
    damage(history)
    assert kind in {problem.kind for problem in check(history)}


def test_nothing_is_found_in_a_sound_history(history: History) -> None:
    assert check(history) == []


def test_every_kind_has_a_history() -> None:
    (mark,) = test_each_kind_of_problem_is_found.pytestmark  # type: ignore[attr-defined]
    assert {kind for _, kind in mark.args[1]} == set(Kind) - GROUP_KINDS


def test_a_deposed_leader_may_tell_old_offsets(history: History) -> None:
    history.commit_looks[P].append(CommitLook(2_000, 2, 1, 9))
    history.commit_looks[P].append(CommitLook(3_000, 1, 0, 9))
    history.looks[P].append(Look(2_000, 1, 0, 0, 6, 7))
    assert check(history) == []


def test_one_that_stood_still_for_a_part_of_the_time_or_out_of_the_isr_may_be_missing(history: History) -> None:
    history.absences += [Absence(3, 310, 360), Absence(3, 290, 340)]
    assert check(history) == []
    history.absences.append(Absence(3, 90, 960))
    history.states[P] = [state._replace(isr=frozenset({1, 2})) for state in history.states[P]]
    assert check(history) == []


def test_a_leader_that_did_not_hear_of_its_successor_goes_by_its_own_isr(history: History) -> None:
    first = SECOND_EPOCH_AT - 3
    history.states[P] = [
        state._replace(version=8, leader_epoch=1, isr=frozenset({2})) if number >= first else state
        for number, state in enumerate(history.states[P])
    ]
    found = [problem.text.split()[0] for problem in check(history) if problem.kind is Kind.BELOW_MIN_ISR]
    assert found == [f"a.{n}" for n in range(SECOND_EPOCH_AT, 10)]


@pytest.mark.parametrize(("heard_ns", "below"), [(250, ["a.3", "a.4"]), (350, ["a.4"]), (None, [])])
def test_a_leader_that_has_not_heard_of_a_smaller_isr_goes_by_the_last_one(
    history: History, heard_ns: int | None, below: list[str]
) -> None:
    acknowledge_below_min_isr(history)
    del history.heard[P][7]
    if heard_ns is not None:
        history.heard[P][7] = heard_ns
    found = check(history)
    assert {problem.kind for problem in found} <= {Kind.BELOW_MIN_ISR}
    assert [problem.text.split()[0] for problem in found] == below


def test_a_group_may_read_again(history: History) -> None:
    history.readers[0].is_shared = True
    read_twice(history)
    assert check(history) == []


def test_what_a_reader_does_not_read_is_not_missed_by_him(history: History) -> None:
    history.log["other", 0].append(Stored(0, Record("b", 0), 0))
    assert check(history) == []


def test_a_transaction_of_unknown_outcome_may_be_there_or_not(history: History) -> None:
    history.transactions = [one._replace(outcome=Outcome.UNKNOWN) for one in history.transactions]
    assert check(history) == []


def test_many_problems_of_a_kind_are_shortened(history: History) -> None:
    history.failures += [f"failure {n}" for n in range(100)]
    assert str(check(history)[-1]) == "failure: ... and 92 more like it"


@pytest.mark.parametrize("size", [0, 40])
def test_a_value_shows_whose_it_is(size: int) -> None:
    assert record_of(Record("a", 17).value(size)) == record_of(b"a.17") == Record("a", 17)


@pytest.mark.parametrize("value", [None, b"", b"a", b".1", b"a.b", b"a.1.x", b"\xff"])
def test_other_bytes_belong_to_no_one(value: bytes | None) -> None:
    assert record_of(value) is None
