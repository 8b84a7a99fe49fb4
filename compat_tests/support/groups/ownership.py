"""What members of a group said of themselves, and whether it can be: no partition has two owners, nothing is lost.

A client's callback for assigned partitions runs after the coordinator has given them, and that for revoked ones before
the coordinator hears of it. So of all members' own words, in the order of one clock, a partition has one owner at a
time. The exception is a member that was fenced: it learns of that later than the rest, and says `lost`.

Times are those of CLOCK_MONOTONIC in nanoseconds, as `time.monotonic_ns()` and Java's `System.nanoTime()` on Linux:
members may be in several processes of one machine. Not here: how members are run (`logged_members`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

Partition = tuple[str, int]


class Kind(Enum):
    """What happened to a member. After CLOSING it does nothing with its partitions; KILLED is said by who killed it."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"
    RECORD = "record"
    COMMITTED = "committed"
    REFUSED = "refused"
    CLOSING = "closing"
    CLOSED = "closed"
    KILLED = "killed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Event:
    """`partitions` are those of an assignment, or that of a record, which has an offset and a value too."""

    member: str
    time_ns: int
    kind: Kind
    partitions: tuple[Partition, ...] = ()
    offset: int = -1
    value: str = ""
    error: str = ""


class Tenure(NamedTuple):
    """A member owned the partition from one time until the other, as it says. `is_lost`: it was fenced."""

    member: str
    partition: Partition
    start_ns: int
    end_ns: int
    is_lost: bool


ENDS_ALL = frozenset((Kind.CLOSING, Kind.CLOSED, Kind.KILLED, Kind.FAILED))
FOREVER_NS = 1 << 63


def tenures(events: Iterable[Event]) -> Iterator[Tenure]:
    """Who owned what, and when."""
    since: dict[tuple[str, Partition], int] = {}

    def end(member: str, partitions: Iterable[Partition], time_ns: int, is_lost: bool) -> Iterator[Tenure]:
        for partition in partitions:
            if (start := since.pop((member, partition), None)) is not None:
                yield Tenure(member, partition, start, time_ns, is_lost)

    for event in sorted(events, key=lambda event: event.time_ns):
        if event.kind is Kind.ASSIGNED:
            for partition in event.partitions:
                since.setdefault((event.member, partition), event.time_ns)
        elif event.kind in (Kind.REVOKED, Kind.LOST):
            yield from end(event.member, event.partitions, event.time_ns, event.kind is Kind.LOST)
        elif event.kind in ENDS_ALL:
            held = [partition for member, partition in since if member == event.member]
            yield from end(event.member, held, event.time_ns, event.kind is Kind.FAILED)
    for member, partition in list(since):
        yield from end(member, [partition], FOREVER_NS, False)


def double_owners(events: Iterable[Event]) -> list[str]:
    """Each case of a partition that two members owned at a time, in words; none of a member that was fenced."""
    problems = []
    latest: dict[Partition, Tenure] = {}
    for tenure in sorted((one for one in tenures(events) if not one.is_lost), key=lambda one: one.start_ns):
        before = latest.get(tenure.partition)
        if before is not None and tenure.start_ns < before.end_ns:
            topic, index = tenure.partition
            problems.append(
                f"{topic}-{index}: {before.member} had it from {before.start_ns} until {before.end_ns}, "
                f"{tenure.member} from {tenure.start_ns} on"
            )
        if before is None or tenure.end_ns > before.end_ns:
            latest[tenure.partition] = tenure
    return problems


def read_without_owning(events: Iterable[Event]) -> list[str]:
    """Each record that a member handed out of a partition that it did not own by then, in words."""
    owned: set[tuple[str, Partition]] = set()
    problems = []
    for event in sorted(events, key=lambda event: event.time_ns):
        if event.kind is Kind.ASSIGNED:
            owned |= {(event.member, partition) for partition in event.partitions}
        elif event.kind in (Kind.REVOKED, Kind.LOST):
            owned -= {(event.member, partition) for partition in event.partitions}
        elif event.kind in ENDS_ALL:
            owned = {one for one in owned if one[0] != event.member}
        elif event.kind is Kind.RECORD and (event.member, event.partitions[0]) not in owned:
            topic, index = event.partitions[0]
            problems.append(f"{event.member} read {topic}-{index} at {event.offset} without owning it")
    return problems


def disorder(events: Iterable[Event]) -> list[str]:
    """Each record that one member handed out, in one tenure, out of the order of offsets, in words."""
    last: dict[tuple[str, Partition], int] = {}
    problems = []
    for event in sorted(events, key=lambda event: event.time_ns):
        keys = [(event.member, partition) for partition in event.partitions]
        if event.kind is Kind.ASSIGNED:
            for key in keys:
                last.pop(key, None)
        elif event.kind is Kind.RECORD:
            if event.offset <= last.get(keys[0], -1):
                problems.append(f"{event.member} read {keys[0][1]} at {event.offset} after {last[keys[0]]}")
            last[keys[0]] = event.offset
    return problems


def read_counts(events: Iterable[Event]) -> Counter[str]:
    """How often each value was handed out, by all members together."""
    return Counter(event.value for event in events if event.kind is Kind.RECORD)


def problems_of(events: Collection[Event], expected: Mapping[str, int] | Collection[str]) -> list[str]:
    """All that is wrong: two owners, records without owning or in disorder, records lost or never written."""
    counts = read_counts(events)
    lost = [f"{value} was read by no one" for value in expected if not counts[value]]
    foreign = [f"{value} was read and never written" for value in counts if value not in expected]
    return [*double_owners(events), *read_without_owning(events), *disorder(events), *lost, *foreign]
