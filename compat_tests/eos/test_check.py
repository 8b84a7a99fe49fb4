"""The checker finds every kind of damage in copies made by hand, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.eos.check import Copying, Seen, Stored, check

INPUT = [f"0:{n}" for n in range(12)]
TRANSACTION = 3
ABORTED = (1, 4)  # transactions that were tried twice
COMMITTED_AT = 1_000


def sound() -> Copying:
    """Transactions of three records, each with its marker; two of them aborted before they were committed."""
    log: list[Stored] = []
    committed: list[Stored] = []
    commit_called: dict[str, int] = {}
    offset = 0
    for number in range(len(INPUT) // TRANSACTION):
        values = INPUT[number * TRANSACTION : (number + 1) * TRANSACTION]
        for aborted in (True, False) if number in ABORTED else (False,):
            batch = [Stored(offset + n, value) for n, value in enumerate(values)]
            log += batch
            committed += [] if aborted else batch
            offset += len(batch) + 1
        commit_called |= dict.fromkeys(values, COMMITTED_AT * number)
    seen = [Seen(*stored, commit_called[stored.value] + 5) for stored in committed]
    return Copying(
        inputs={0: INPUT},
        log={0: log},
        committed={0: committed},
        observed={0: [seen, seen[:5]]},
        commit_called=commit_called,
        positions={0: len(INPUT)},
    )


def both(copying: Copying) -> tuple[list[Stored], list[Stored]]:
    log, committed = copying.log[0], copying.committed[0]
    assert isinstance(log, list)
    assert isinstance(committed, list)
    return log, committed


def reader(copying: Copying) -> list[Seen]:
    seen = copying.observed[0][0]
    assert isinstance(seen, list)
    return seen


def lose_one(copying: Copying) -> None:
    log, committed = both(copying)
    lost = committed.pop(4)
    log.remove(lost)
    reader(copying).pop(4)


def lose_the_last(copying: Copying) -> None:
    _, committed = both(copying)
    committed.pop()


def lose_a_partition(copying: Copying) -> None:
    copying.committed = {}


def duplicate_at_the_end(copying: Copying) -> None:
    log, committed = both(copying)
    again = Stored(log[-1].offset + 2, INPUT[2])
    log.append(again)
    committed.append(again)


def duplicate_by_showing_aborted(copying: Copying) -> None:
    """A broker that forgets an abort: every reader agrees, at the end too."""
    log, _ = both(copying)
    copying.committed = {0: list(log)}


def reorder(copying: Copying) -> None:
    _, committed = both(copying)
    first, second = committed[2], committed[6]
    committed[2], committed[6] = Stored(first.offset, second.value), Stored(second.offset, first.value)


def invent(copying: Copying) -> None:
    log, committed = both(copying)
    made_up = Stored(log[-1].offset + 1, "invented")
    log.append(made_up)
    committed.append(made_up)


def see_aborted(copying: Copying) -> None:
    log, committed = both(copying)
    (first, *_) = [stored for stored in log if stored not in committed]
    reader(copying).insert(3, Seen(*first, 10**9))


def see_open(copying: Copying) -> None:
    seen = reader(copying)
    seen[7] = seen[7]._replace(time_ns=COMMITTED_AT * (7 // TRANSACTION) - 1)


def see_what_is_gone(copying: Copying) -> None:
    reader(copying).insert(3, Seen(10_000, INPUT[3], 10**9))


def see_another_value(copying: Copying) -> None:
    seen = reader(copying)
    seen[5] = seen[5]._replace(value=INPUT[6])


def skip_one(copying: Copying) -> None:
    reader(copying).pop(6)


def skip_the_first(copying: Copying) -> None:
    reader(copying).pop(0)


def read_again(copying: Copying) -> None:
    seen = reader(copying)
    seen.insert(8, seen[6])


def read_out_of_order(copying: Copying) -> None:
    seen = reader(copying)
    seen[6], seen[7] = seen[7], seen[6]


def commit_too_little(copying: Copying) -> None:
    copying.positions = {0: len(INPUT) - TRANSACTION}


def commit_too_much(copying: Copying) -> None:
    copying.positions = {0: len(INPUT) + 1}


def commit_elsewhere(copying: Copying) -> None:
    _, committed = both(copying)
    committed[3] = committed[3]._replace(offset=9_999)


DAMAGE: dict[Callable[[Copying], None], str] = {
    lose_one: "is lost",
    lose_the_last: "is lost",
    lose_a_partition: "is lost",
    duplicate_at_the_end: "is there 2 times",
    duplicate_by_showing_aborted: "is there 2 times",
    reorder: "comes after",
    invent: "was never sent",
    see_aborted: "was read and is aborted",
    see_open: "before its transaction was committed",
    see_what_is_gone: "where the log has None",
    see_another_value: "where the log has",
    skip_one: "a reader got",
    skip_the_first: "a reader got",
    read_again: "a reader got",
    read_out_of_order: "a reader got",
    commit_too_little: "the group stands at",
    commit_too_much: "the group stands at",
    commit_elsewhere: "is committed at offset",
}


def test_a_sound_copy_has_no_problems() -> None:
    copying = sound()
    assert len(copying.log[0]) > len(copying.committed[0])
    assert check(copying) == []


@pytest.mark.parametrize("damaging", DAMAGE, ids=lambda function: str(function.__name__))
def test_every_kind_of_damage_is_found(damaging: Callable[[Copying], None]) -> None:
    copying = sound()
    damaging(copying)
    problems = check(copying)
    assert any(DAMAGE[damaging] in problem for problem in problems), problems


def test_partitions_are_looked_at_each_for_itself() -> None:
    copying = sound()
    copying.inputs = {0: INPUT, 1: ["1:0"]}
    assert check(copying) == ["partition 1: '1:0' is lost"]


def test_thousands_of_problems_are_reported_in_a_few_lines() -> None:
    copying = sound()
    copying.inputs = {0: [str(n) for n in range(5000)]}
    assert len(check(copying)) < 100
