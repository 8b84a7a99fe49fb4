"""The checker finds every kind of damage in histories made by hand, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.crash.history import Commit, History, Partition, Sent, Stored, check, decode_value, encode_value

P: Partition = ("t", 0)
Log = dict[Partition, list[Stored]]
IDEMPOTENT, PLAIN = 1, 2


def sound() -> tuple[History, Log]:
    """Two producers, one of them idempotent, whose records alternate; everything was acknowledged and read."""
    history = History(idempotent={IDEMPOTENT}, created={"t"}, deleted={"gone"})
    log: Log = {P: []}
    for offset in range(20):
        sent = Sent(PLAIN if offset % 2 else IDEMPOTENT, offset // 2)
        history.acknowledge(P, offset, sent)
        history.observe(P, offset, sent)
        log[P].append(Stored(offset, sent, leader_epoch=offset // 10))
    history.ends[P] += [0, 7, 7, 20]
    history.commits.append(Commit("group", 5, 7, 6))
    return history, log


def renumbered(records: list[Stored]) -> list[Stored]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


def lose_the_tail(history: History, log: Log) -> None:
    del log[P][15:]


def lose_one_in_the_middle(history: History, log: Log) -> None:
    del log[P][4]


def lose_one_and_close_the_gap(history: History, log: Log) -> None:
    del log[P][5]
    log[P] = renumbered(log[P])


def lose_one_that_was_only_read(history: History, log: Log) -> None:
    del history.acknowledged[P][19]
    history.ends[P].clear()
    del log[P][19]


def duplicate(history: History, log: Log) -> None:
    log[P].append(Stored(20, Sent(IDEMPOTENT, 9), 1))


def duplicate_later(history: History, log: Log) -> None:
    log[P] += [Stored(20, Sent(IDEMPOTENT, 10), 1), Stored(21, Sent(IDEMPOTENT, 3), 1)]


def reorder_unacknowledged(history: History, log: Log) -> None:
    log[P] += [Stored(20, Sent(IDEMPOTENT, 11), 1), Stored(21, Sent(IDEMPOTENT, 10), 1)]


def swap(history: History, log: Log) -> None:
    first, second = log[P][6], log[P][8]
    log[P][6], log[P][8] = first._replace(sent=second.sent), second._replace(sent=first.sent)


def move_to_another_offset(history: History, log: Log) -> None:
    log[P] = renumbered([*log[P][:1], Stored(0, Sent(PLAIN, 99)), *log[P][1:]])


def damage(history: History, log: Log) -> None:
    log[P].append(Stored(20, None, 1))


def begin_late(history: History, log: Log) -> None:
    history.acknowledged[P].pop(0)
    history.observed[P].pop(0)
    del log[P][0]


def lose_a_partition(history: History, log: Log) -> None:
    del log[P]


def go_back_in_epoch(history: History, log: Log) -> None:
    log[P][12] = log[P][12]._replace(leader_epoch=0)


def go_back_at_the_end(history: History, log: Log) -> None:
    history.ends[P].insert(2, 6)


def lose_the_end(history: History, log: Log) -> None:
    history.ends[P].append(21)


def lose_a_commit(history: History, log: Log) -> None:
    history.commits.append(Commit("group", 8, 8, 7))


def invent_a_commit(history: History, log: Log) -> None:
    history.commits.append(Commit("group", 8, 9, 10))


def forget_the_commits(history: History, log: Log) -> None:
    history.commits.append(Commit("group", 8, 8, -1001))


def acknowledge_one_offset_twice(history: History, log: Log) -> None:
    history.acknowledge(P, 3, Sent(PLAIN, 55))


def read_one_offset_differently(history: History, log: Log) -> None:
    history.observe(P, 3, Sent(PLAIN, 55))


def lose_a_topic(history: History, log: Log) -> None:
    history.created.add("lost")


def revive_a_topic(history: History, log: Log) -> None:
    history.deleted.add("t")


DAMAGE: dict[Callable[[History, Log], None], str] = {
    lose_the_tail: "is lost",
    lose_one_in_the_middle: "should be",
    lose_one_and_close_the_gap: "is at offset",
    lose_one_that_was_only_read: "was read here and is lost",
    duplicate: "twice",
    duplicate_later: "twice",
    reorder_unacknowledged: "comes after",
    swap: "comes after",
    move_to_another_offset: "is at offset",
    damage: "no one wrote",
    begin_late: "should be",
    lose_a_partition: "is lost",
    go_back_in_epoch: "leader epoch",
    go_back_at_the_end: "went back",
    lose_the_end: "went back",
    lose_a_commit: "committed offset",
    invent_a_commit: "committed offset",
    forget_the_commits: "committed offset",
    acknowledge_one_offset_twice: "was acknowledged for",
    read_one_offset_differently: "was read as",
    lose_a_topic: "is gone",
    revive_a_topic: "is back",
}


def test_a_sound_history_has_no_problems() -> None:
    history, log = sound()
    assert check(history, log, ["t"]) == []


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    history, log = sound()
    log[P].append(Stored(20, Sent(IDEMPOTENT, 10), 1))
    assert check(history, log, ["t"]) == []


def test_a_producer_without_idempotence_may_repeat_and_reorder() -> None:
    history, log = sound()
    log[P] += [Stored(20, Sent(PLAIN, 9), 1), Stored(21, Sent(PLAIN, 3), 1)]
    assert check(history, log, ["t"]) == []


@pytest.mark.parametrize("damaging", DAMAGE, ids=lambda function: str(function.__name__))
def test_every_kind_of_damage_is_found(damaging: Callable[[History, Log], None]) -> None:
    history, log = sound()
    damaging(history, log)
    problems = check(history, log, ["t"])
    assert any(DAMAGE[damaging] in problem for problem in problems), problems


def test_thousands_of_problems_are_reported_in_a_few_lines() -> None:
    history, log = sound()
    for offset in range(20, 5000):
        history.acknowledge(P, offset, Sent(IDEMPOTENT, offset))
    assert len(check(history, log, ["t"])) < 50


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_a_value_shows_whose_it_is_and_whether_it_is_whole(size: int) -> None:
    value = encode_value(Sent(3, 70_000), size)
    assert decode_value(value) == Sent(3, 70_000)
    assert decode_value(value[:-1]) is None
    assert decode_value(value + b"k") is None
    assert decode_value(bytes((*value[:-1], value[-1] ^ 1))) is None
    assert decode_value(None) is None
    assert decode_value(b"") is None
