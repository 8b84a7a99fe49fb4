"""Whether a share group kept its promises: pure, over a history.

Each record is delivered at least once, and accepted, rejected, or archived after its last attempt. It is never with two
members at one time, and never delivered again after it was accepted. Where a history leaves two explanations, one of
which is right, nothing is reported: holds count from the response of a fetch to the earliest moment at which they can
have ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from compat_tests.faults.share_groups.history import UNKNOWN, Acknowledgement, Delivery, Kind, Partition, ShareHistory

NS_PER_MS = 1_000_000
SHOWN_PER_WRONG = 3
Key = tuple[Partition, int]


class Wrong(StrEnum):
    """What may be wrong."""

    TWO_HOLDERS = "with two members at one time"
    DELIVERED_AGAIN = "delivered again after it was accepted"
    ACCEPTED_TWICE = "accepted by two members"
    NOT_HELD = "accepted from a member that did not hold it"
    UNDELIVERED = "never delivered"
    UNFINISHED = "dropped before its last attempt"
    TOO_OFTEN = "delivered too often"
    COUNT_BACK = "delivery count back"
    CHANGED = "not what the log has"
    UNDRAINED = "not drained"
    FAILURE = "failure"


class Problem(NamedTuple):
    """One thing that is wrong."""

    kind: Wrong
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


Found = Iterator[Problem]


class Hold(NamedTuple):
    """A time during which a member held a record without doubt."""

    delivery: Delivery
    from_ns: int
    to_ns: int


class _Records:
    """The history, by record."""

    def __init__(self, history: ShareHistory) -> None:
        self.history = history
        self.deliveries: dict[Key, list[Delivery]] = defaultdict(list)
        self.acknowledgements: dict[Key, list[Acknowledgement]] = defaultdict(list)
        for delivery in sorted(history.deliveries, key=lambda one: one.received_ns):
            self.deliveries[delivery.partition, delivery.offset].append(delivery)
        for one in sorted(history.acknowledgements, key=lambda one: one.sent_ns):
            self.acknowledgements[one.partition, one.offset].append(one)

    def holds(self, key: Key) -> list[Hold]:
        """What each delivery of the record surely gave to its member, in the order of their beginnings."""
        return [hold for one in self.deliveries[key] if (hold := self._hold(key, one)).from_ns < hold.to_ns]

    def _hold(self, key: Key, delivery: Delivery) -> Hold:
        ends = [delivery.asked_ns + self.history.lock_ms * NS_PER_MS]
        ends += [
            one.sent_ns
            for one in self.acknowledgements[key]
            if one.member == delivery.member and one.sent_ns >= delivery.received_ns
        ]
        ends += [span.from_ns for span in self.history.disturbances if span.to_ns > delivery.asked_ns]
        ends += [
            span.from_ns
            for member, span in (*self.history.lost, *self.history.given_up)
            if member == delivery.member and span.to_ns > delivery.asked_ns
        ]
        return Hold(delivery, delivery.received_ns, min(ends))

    def accepted(self, key: Key) -> list[Acknowledgement]:
        """What the broker confirmed as done for good."""
        return [
            one
            for one in self.acknowledgements[key]
            if one.kind is not Kind.RELEASE and one.done_ns is not None and not one.is_refused
        ]

    def is_too_late(self, key: Key, one: Acknowledgement) -> bool:
        """Whether the member's lock may have run out before, and another one may have finished the record since. Such
        an acknowledgement is not refused once the start offset has passed the record, and changes nothing.
        """
        others = (other for other in self.accepted(key) if other.member != one.member)
        finished = any(self._is_in_time(key, other) and other.sent_ns < (one.done_ns or 0) for other in others)
        return finished and not self._is_in_time(key, one)

    def _is_in_time(self, key: Key, one: Acknowledgement) -> bool:
        """Whether it was said before the member's lock may have run out."""
        lock_ns = self.history.lock_ms * NS_PER_MS
        return any(
            delivery.received_ns <= one.sent_ns < delivery.asked_ns + lock_ns
            for delivery in self.deliveries[key]
            if delivery.member == one.member
        )


def check(history: ShareHistory) -> list[Problem]:
    """Everything that is wrong; empty when all was kept."""
    records = _Records(history)
    return _shortened(problem for rule in RULES for problem in rule(records))


def _shortened(found: Iterable[Problem]) -> list[Problem]:
    by_kind: dict[Wrong, list[Problem]] = defaultdict(list)
    for problem in found:
        by_kind[problem.kind].append(problem)
    shown: list[Problem] = []
    for kind, problems in by_kind.items():
        shown += problems[:SHOWN_PER_WRONG]
        more = len(problems) - SHOWN_PER_WRONG
        if more > 0:
            shown.append(Problem(kind, f"... and {more} more like it"))
    return shown


def _at(key: Key) -> str:
    (topic, partition), offset = key
    return f"{topic}-{partition}@{offset}"


def _one_holder(records: _Records) -> Found:
    for key in records.deliveries:
        last: Hold | None = None
        for hold in records.holds(key):
            if last is not None and hold.from_ns < last.to_ns:
                members = f"{last.delivery.member} and {hold.delivery.member}"
                yield Problem(Wrong.TWO_HOLDERS, f"{_at(key)}, with {members}")
            if last is None or hold.to_ns > last.to_ns:
                last = hold


def _never_again(records: _Records) -> Found:
    for key, deliveries in records.deliveries.items():
        done = [one for one in records.accepted(key) if one.kind is Kind.ACCEPT]
        for one in done[:1]:
            for delivery in (each for each in deliveries if not each.was_replaced):
                if one.done_ns is not None and delivery.asked_ns > one.done_ns:
                    text = f"{_at(key)}, accepted by {one.member}, then with {delivery.member}"
                    yield Problem(Wrong.DELIVERED_AGAIN, text)
        members = sorted({one.member for one in done if not records.is_too_late(key, one)})
        if len(members) > 1:
            yield Problem(Wrong.ACCEPTED_TWICE, f"{_at(key)}, by {' and '.join(members)}")


def _only_holders_accept(records: _Records) -> Found:
    for key in records.acknowledgements:
        holds = records.holds(key)
        for one in records.accepted(key):
            had = [d for d in records.deliveries[key] if d.member == one.member and d.received_ns <= one.sent_ns]
            if not had:
                yield Problem(Wrong.NOT_HELD, f"{_at(key)}, from {one.member}, which never had it")
            else:
                yield from _held_by_another(key, holds, one)


def _no_thefts(records: _Records) -> Found:
    for one in records.history.thefts:
        key = (one.partition, one.offset)
        if not one.is_refused:
            yield from _held_by_another(key, records.holds(key), one)


def _held_by_another(key: Key, holds: Sequence[Hold], one: Acknowledgement) -> Found:
    for hold in holds:
        is_with_another = hold.delivery.member != one.member and hold.from_ns < one.sent_ns
        if is_with_another and one.done_ns is not None and one.done_ns < hold.to_ns:
            holder = hold.delivery.member
            yield Problem(Wrong.NOT_HELD, f"{_at(key)}, from {one.member}, while it was with {holder}")
            return


def _counts(records: _Records) -> Found:
    history = records.history
    for key, deliveries in records.deliveries.items():
        before: Delivery | None = None
        for one in deliveries:
            if one.times == UNKNOWN:
                continue
            if one.times > history.delivery_count_limit:
                yield Problem(Wrong.TOO_OFTEN, f"{_at(key)}, delivery {one.times} to {one.member}")
            is_later = before is not None and one.asked_ns > before.received_ns
            if before is not None and is_later and one.times <= before.times and not _forgot(history, before, one):
                yield Problem(Wrong.COUNT_BACK, f"{_at(key)}: {one.times} after {before.times}")
            before = one


def _forgot(history: ShareHistory, before: Delivery, after: Delivery) -> bool:
    """Whether a count may have been lost in between: that of a record with a member is not persisted."""
    return _is_disturbed(history, before.asked_ns, after.received_ns)


def _is_disturbed(history: ShareHistory, from_ns: int, to_ns: int) -> bool:
    return any(span.from_ns < to_ns and span.to_ns > from_ns for span in history.disturbances)


def _all_done(records: _Records) -> Found:
    """Each record came to an end. Attempts whose responses were lost count for the records that they may have had, but
    for those that were lost with their broker: no other one knows of them.
    """
    history = records.history
    if not history.is_drained:
        yield Problem(Wrong.UNDRAINED, "the group did not come to the end of its partitions")
        return
    unseen = sum(not _is_disturbed(history, span.from_ns, span.to_ns) for _, span in history.lost)
    for partition, log in history.log.items():
        for offset in (one for one in log if one >= history.deleted.get(partition, 0)):
            key = (partition, offset)
            deliveries = records.deliveries.get(key, [])
            ended = [one for one in records.acknowledgements.get(key, []) if one.kind is not Kind.RELEASE]
            if any(not one.is_refused for one in ended):
                continue
            attempts = max((one.times for one in deliveries), default=0) + unseen
            attempts += sum(one.times == UNKNOWN for one in deliveries)
            if attempts < history.delivery_count_limit:
                kind = Wrong.UNFINISHED if deliveries else Wrong.UNDELIVERED
                yield Problem(kind, f"{_at(key)}, after {attempts} of {history.delivery_count_limit} attempts")


def _same_records(records: _Records) -> Found:
    for key, deliveries in records.deliveries.items():
        partition, offset = key
        stored = records.history.log.get(partition, {}).get(offset)
        for one in deliveries:
            if one.value != stored:
                yield Problem(Wrong.CHANGED, f"{_at(key)}: {one.value[:40]!r} to {one.member}; it is {stored!r}")


def _failures(records: _Records) -> Found:
    for failure in records.history.failures:
        yield Problem(Wrong.FAILURE, failure)


RULES: Sequence[Callable[[_Records], Found]] = (
    _failures,
    _one_holder,
    _never_again,
    _only_holders_accept,
    _no_thefts,
    _counts,
    _all_done,
    _same_records,
)
