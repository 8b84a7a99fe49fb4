"""The checker of share groups' histories: a history that keeps every promise passes, and each broken one is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.faults.share_groups.check import NS_PER_MS, Wrong, check
from compat_tests.faults.share_groups.history import Acknowledgement, Delivery, Kind, ShareHistory, Span

PART = ("jobs", 0)
LOCK_MS, LIMIT = 1000, 3


def ms(value: int) -> int:
    return value * NS_PER_MS


def delivered(member: str, offset: int, at: int, count: int = 1, value: bytes | None = None) -> Delivery:
    """Asked at `at`, received a millisecond later."""
    content = b"%d" % offset if value is None else value
    return Delivery(member, PART, offset, content, count, ms(at), ms(at + 1))


def said(member: str, offset: int, at: int, kind: Kind = Kind.ACCEPT, *, done: bool = True) -> Acknowledgement:
    return Acknowledgement(member, PART, offset, kind, ms(at), ms(at + 1) if done else None)


def history(*events: Delivery | Acknowledgement, offsets: int = 1) -> ShareHistory:
    """A drained one, of a log of so many records."""
    return ShareHistory(
        LOCK_MS,
        LIMIT,
        log={PART: {offset: b"%d" % offset for offset in range(offsets)}},
        deliveries=[one for one in events if isinstance(one, Delivery)],
        acknowledgements=[one for one in events if isinstance(one, Acknowledgement)],
        is_drained=True,
    )


def kinds(found: ShareHistory) -> set[Wrong]:
    return {problem.kind for problem in check(found)}


THREE_ATTEMPTS = tuple(delivered("a", 0, at, count) for at, count in ((0, 1), (2000, 2), (4000, 3)))
KEPT = {
    "accepted": history(delivered("a", 0, 0), said("a", 0, 5)),
    "rejected": history(delivered("a", 0, 0), said("a", 0, 5, Kind.REJECT)),
    "released, then accepted by another": history(
        delivered("a", 0, 0), said("a", 0, 5, Kind.RELEASE), delivered("b", 0, 10, 2), said("b", 0, 20)
    ),
    "lock expired": history(delivered("a", 0, 0), delivered("b", 0, 1000, 2), said("b", 0, 1010)),
    "archived after its last attempt": history(*THREE_ATTEMPTS),
    "accepted, and the response was lost": history(delivered("a", 0, 0), said("a", 0, 5, done=False)),
    "given out while the acceptance was on its way": history(
        delivered("a", 0, 0), said("a", 0, 1002, done=False), delivered("b", 0, 1003, 2), said("b", 0, 1100)
    ),
    "thefts that are refused, without a response, or too late": replace(
        history(delivered("a", 0, 0), said("a", 0, 50)),
        thefts=[said("b", 0, 20)._replace(is_refused=True), said("b", 0, 30, done=False), said("b", 0, 70)],
    ),
    "again after acceptance, by a leader that was none any more": history(
        delivered("a", 0, 0), said("a", 0, 5), delivered("b", 0, 7, 2)._replace(leader=1, was_replaced=True)
    ),
    "accepted too late, of a record that another has finished": history(
        delivered("a", 0, 0), delivered("b", 0, 1000, 2), said("b", 0, 1100), said("a", 0, 2500)
    ),
}
BROKEN = {
    "two at one time": (
        history(delivered("a", 0, 0), delivered("b", 0, 500, 2), said("b", 0, 1200)),
        Wrong.TWO_HOLDERS,
    ),
    "one member twice": (
        history(delivered("a", 0, 0), delivered("a", 0, 500, 2), said("a", 0, 510)),
        Wrong.TWO_HOLDERS,
    ),
    "again after acceptance": (
        history(delivered("a", 0, 0), said("a", 0, 5), delivered("b", 0, 7, 2)),
        Wrong.DELIVERED_AGAIN,
    ),
    "two acceptances": (
        history(delivered("a", 0, 0), delivered("b", 0, 1000, 2), said("a", 0, 2500), said("b", 0, 2600)),
        Wrong.ACCEPTED_TWICE,
    ),
    "two acceptances in time": (
        history(
            *(delivered("a", 0, 0), said("a", 0, 5, Kind.RELEASE), delivered("b", 0, 8, 2)),
            *(said("b", 0, 20), said("a", 0, 19)),
        ),
        Wrong.ACCEPTED_TWICE,
    ),
    "a stranger's acceptance": (history(delivered("a", 0, 0), said("b", 0, 5)), Wrong.NOT_HELD),
    "a former holder's acceptance": (
        history(delivered("a", 0, 0), delivered("b", 0, 1000, 2), said("a", 0, 1010)),
        Wrong.NOT_HELD,
    ),
    "a theft": (
        replace(history(delivered("a", 0, 0), said("a", 0, 50)), thefts=[said("b", 0, 20)]),
        Wrong.NOT_HELD,
    ),
    "never delivered": (history(delivered("a", 0, 0), said("a", 0, 5), offsets=2), Wrong.UNDELIVERED),
    "dropped": (history(delivered("a", 0, 0), delivered("a", 0, 2000, 2)), Wrong.UNFINISHED),
    "refused is not accepted": (
        history(delivered("a", 0, 0), said("a", 0, 5)._replace(is_refused=True)),
        Wrong.UNFINISHED,
    ),
    "too often": (history(*THREE_ATTEMPTS, delivered("a", 0, 6000, 4)), Wrong.TOO_OFTEN),
    "a count that does not rise": (
        history(delivered("a", 0, 0), said("a", 0, 5, Kind.RELEASE), delivered("b", 0, 10), said("b", 0, 20)),
        Wrong.COUNT_BACK,
    ),
    "another value": (history(delivered("a", 0, 0, value=b"x"), said("a", 0, 5)), Wrong.CHANGED),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_was_kept_passes(name: str) -> None:
    assert check(KEPT[name]) == []


@pytest.mark.parametrize("name", BROKEN)
def test_what_was_broken_is_found_and_nothing_else(name: str) -> None:
    broken, kind = BROKEN[name]
    assert kinds(broken) == {kind}


def test_a_killed_broker_may_end_locks_and_forget_counts_and_nothing_more() -> None:
    moved = history(delivered("a", 0, 0), delivered("b", 0, 500), said("b", 0, 510))
    moved.disturbances.append(Span(ms(100), ms(400)))
    assert check(moved) == []
    moved.deliveries.append(delivered("a", 0, 600))
    assert kinds(moved) == {Wrong.DELIVERED_AGAIN, Wrong.COUNT_BACK}


def test_a_lost_response_may_have_been_an_attempt_and_the_end_of_the_members_locks() -> None:
    dropped = history(delivered("a", 0, 0), delivered("b", 0, 500, 2))
    assert kinds(dropped) == {Wrong.TWO_HOLDERS, Wrong.UNFINISHED}
    dropped.lost.append(("a", Span(ms(10), ms(20))))
    assert check(dropped) == []
    dropped.disturbances.append(Span(ms(15), ms(30)))
    assert kinds(dropped) == {Wrong.UNFINISHED}, "the broker that knew of it is gone"


def test_of_many_like_it_some_are_shown() -> None:
    assert len(check(replace(history(offsets=9), is_drained=True))) == 4


def test_failures_and_a_group_that_is_not_drained_are_problems() -> None:
    stuck = replace(history(), is_drained=False, failures=["member a did not end"])
    assert kinds(stuck) == {Wrong.FAILURE, Wrong.UNDRAINED}
