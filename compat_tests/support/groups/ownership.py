"""What members of a group said of themselves, and whether it can be: no partition has two owners, nothing is lost.

A client's callback for assigned partitions runs after the coordinator has given them, and that for revoked ones before
the coordinator hears of it. So of all members' own words, in the order of one clock, a partition has one owner at a
time. The exception is a member that was fenced: it learns of that later than the rest, and says `lost`.

How long such a member owned its partitions is known where its heartbeats are (`Sessions`). Kafka's guarantee, exactly:
a member owns a partition from the time it says so, until it says that it does not, joins again or ends, and no longer
than its session: `session.timeout.ms` from the time it sent the last heartbeat that its coordinator accepted. Until
then the coordinator gives the partition to no one else; a coordinator that takes over gives each member a whole session
more. Later the member may go on without knowing better, and read what others read, but what it commits is refused: an
accepted commit of a partition that another member has got since is a fault (`stale_commits`). Heartbeats that a deposed
coordinator accepted do not count; who knows the heartbeats leaves those out.

What counts for the coordinator is what a member of the new protocol reports to it, not what its application knows. A
client that repeats all it has to say, because a heartbeat failed, reports what it has acknowledged: without partitions
that its application was given a moment ago. If they are to go to another member, they are free with that (`Report`).
librdkafka 2.16 does so, and two of its members own a partition until the first one's next heartbeat, exchange for
exchange the same on Kafka 4.3.1.

Times are those of CLOCK_MONOTONIC in nanoseconds, as `time.monotonic_ns()` and Java's `System.nanoTime()` on Linux:
members may be in several processes of one machine. Not here: how members are run (`logged_members`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


class Renewal(NamedTuple):
    """A member sent a heartbeat that its coordinator accepted. `is_join`: as a new member, which owns nothing."""

    sent_ns: int
    is_join: bool = False


class Report(NamedTuple):
    """What a member of the new protocol said that it has in a heartbeat, and was then given; None: nothing was said.

    `is_certain`: its coordinator accepted it. Without that it may have counted, or not.
    """

    sent_ns: int
    reported_ns: int
    owned: frozenset[Partition] | None
    given: frozenset[Partition] | None
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Sessions:
    """The renewals of each member, in order, and how long a session lasts after one; its reports, in order.

    Without `renewals` a member that was not fenced owned its partitions for as long as it says.
    """

    renewals: Mapping[str, Sequence[Renewal]] | None
    length_ns: int = 0
    reports: Mapping[str, Sequence[Report]] = field(default_factory=dict)

    def pieces(self, tenure: Tenure) -> Iterator[Tenure]:
        """The parts of the tenure in which no one else may have the partition."""
        cut = self._cut(tenure)
        if cut is None:
            return
        start_ns = cut.start_ns
        for from_ns, to_ns in self.releases(cut.member, cut.partition):
            if start_ns < from_ns < cut.end_ns:
                yield cut._replace(start_ns=start_ns, end_ns=from_ns)
            start_ns = max(start_ns, to_ns)
        if start_ns < cut.end_ns:
            yield cut._replace(start_ns=start_ns)

    def releases(self, member: str, partition: Partition) -> Iterator[tuple[int, int]]:
        """The times between which the partition was free, by what the member reported, until it was given to it again.

        It is free when the member does not report it, and it is not, or may not be, in its assignment.
        """
        is_given, free_ns = False, None
        for report in self.reports.get(member, ()):
            if report.given is not None:
                is_given = partition in report.given
                if is_given and free_ns is not None:
                    yield free_ns, report.reported_ns
                    free_ns = None
            is_free = report.owned is not None and partition not in report.owned
            if is_free and free_ns is None and not (is_given and report.is_certain):
                free_ns = report.sent_ns
        if free_ns is not None:
            yield free_ns, FOREVER_NS

    def was_released(self, commit: Commit) -> bool:
        """Whether the partition was free, to the coordinator, at some time between the tenure's start and this."""
        found = self.releases(commit.member, commit.partition)
        return any(from_ns < commit.asked_ns and to_ns > commit.since_ns for from_ns, to_ns in found)

    def _cut(self, tenure: Tenure) -> Tenure | None:
        """The part of the tenure within the member's session, if there is one."""
        if self.renewals is None:
            return None if tenure.is_lost else tenure
        renewals = self.renewals.get(tenure.member, ())
        at = bisect_right(renewals, tenure.start_ns, key=lambda one: one.sent_ns)
        if at == 0:
            return None
        latest_ns, end_ns = renewals[at - 1].sent_ns, tenure.end_ns
        for renewal in renewals[at:]:
            if renewal.is_join:
                end_ns = min(end_ns, renewal.sent_ns)
            if renewal.sent_ns >= end_ns:
                break
            latest_ns = renewal.sent_ns
        end_ns = min(end_ns, latest_ns + self.length_ns)
        return tenure._replace(end_ns=end_ns, is_lost=False) if end_ns > tenure.start_ns else None


class Commit(NamedTuple):
    """A member's offset that was accepted, of a partition that it owned from `since_ns` on, asked after `asked_ns`."""

    member: str
    partition: Partition
    offset: int
    since_ns: int
    asked_ns: int
    accepted_ns: int


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


def owned_tenures(events: Iterable[Event], sessions: Sessions | None = None) -> list[Tenure]:
    """What no one else may have at the time, in order of the start: as far as `sessions` reach, else as members say,
    without those that were fenced.
    """
    found = tenures(events)
    if sessions is None:
        owned = [one for one in found if not one.is_lost]
    else:
        owned = [piece for one in found for piece in sessions.pieces(one)]
    return sorted(owned, key=lambda one: one.start_ns)


def double_owners(events: Iterable[Event], sessions: Sessions | None = None) -> list[str]:
    """Each case of a partition that two members owned at a time, in words (`owned_tenures`)."""
    problems = []
    latest: dict[Partition, Tenure] = {}
    for tenure in owned_tenures(events, sessions):
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


def commits(events: Iterable[Event]) -> Iterator[Commit]:
    """Every offset that was accepted of members that commit, and wait, what they have handed out so far."""
    owned: dict[str, dict[Partition, tuple[int, int]]] = defaultdict(dict)  # since when, and the next offset
    latest_ns: dict[str, int] = {}
    for event in sorted(events, key=lambda event: event.time_ns):
        has = owned[event.member]
        if event.kind is Kind.ASSIGNED:
            has |= dict.fromkeys(event.partitions, (event.time_ns, -1))
        elif event.kind in (Kind.REVOKED, Kind.LOST):
            for partition in event.partitions:
                has.pop(partition, None)
        elif event.kind in ENDS_ALL:
            has.clear()
        elif event.kind is Kind.RECORD and event.partitions[0] in has:
            has[event.partitions[0]] = (has[event.partitions[0]][0], event.offset + 1)
        elif event.kind is Kind.COMMITTED:
            for partition, (since_ns, offset) in has.items():
                if offset >= 0:
                    asked_ns = latest_ns[event.member]
                    yield Commit(event.member, partition, offset, since_ns, asked_ns, event.time_ns)
        latest_ns[event.member] = event.time_ns


def stale_commits(events: Collection[Event], sessions: Sessions) -> list[str]:
    """Each accepted commit of a member that another one had got the partition after, by the time it asked."""
    by_partition: dict[Partition, list[Tenure]] = defaultdict(list)
    for tenure in owned_tenures(events, sessions):
        by_partition[tenure.partition].append(tenure)
    problems = []
    for commit in commits(events):
        if sessions.was_released(commit):
            continue
        (topic, index), owners = commit.partition, by_partition[commit.partition]
        first = bisect_right(owners, commit.since_ns, key=lambda one: one.start_ns)
        for other in owners[first:]:
            if other.start_ns > commit.asked_ns:
                break
            if other.member != commit.member:
                problems.append(
                    f"{topic}-{index}: {commit.member}, which had it from {commit.since_ns}, committed {commit.offset} "
                    f"after {commit.asked_ns}, when {other.member} had it from {other.start_ns}"
                )
                break
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


def problems_of(
    events: Collection[Event], expected: Mapping[str, int] | Collection[str], sessions: Sessions | None = None
) -> list[str]:
    """All that is wrong: two owners, records without owning or in disorder, records lost or never written."""
    counts = read_counts(events)
    lost = [f"{value} was read by no one" for value in expected if not counts[value]]
    foreign = [f"{value} was read and never written" for value in counts if value not in expected]
    return [*double_owners(events, sessions), *read_without_owning(events), *disorder(events), *lost, *foreign]
