"""What must be true of every history, whatever happened to the cluster. One pure function; tested by histories made by
hand, one for each kind of problem (`test_check.py`).

What Kafka itself does not promise is not asked for: a deposed leader that does not know it yet may respond with old
offsets, so what two brokers say is compared by leader epoch and not by time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from compat_tests.faults.history import (
    Absence,
    Acknowledged,
    CommitLook,
    History,
    Look,
    Outcome,
    Partition,
    Reader,
    Record,
    StateLook,
)

PROBLEMS_SHOWN_PER_KIND = 8


class Kind(StrEnum):
    LOST = "lost"
    MOVED = "moved"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    INVENTED = "invented"
    CHANGED = "changed"
    UNSEEN = "unseen"
    REREAD = "read again"
    ABORTED_READ = "aborted but read"
    TORN = "torn transaction"
    HIGH_WATERMARK_BACK = "high watermark back"
    LOG_END_BACK = "log end back"
    LOG_START_BACK = "log start back"
    EPOCH_BACK = "epoch back"
    TWO_LEADERS = "two leaders"
    NOT_IN_SYNC = "acknowledged without the ISR"
    BEHIND = "in the ISR, and behind"
    BELOW_MIN_ISR = "acknowledged below min ISR"
    COMMIT_BACK = "committed offset back"
    TWO_OWNERS = "two owners"
    STALE_COMMIT = "commit of a former owner"
    UNOWNED = "read without owning"
    FAILURE = "failure"


class Problem(NamedTuple):
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


Found = Iterator[Problem]


def check(history: History) -> list[Problem]:
    """Everything that is wrong; empty when all was kept."""
    return shortened(problem for rule in RULES for problem in rule(history))


def shortened(found: Iterable[Problem]) -> list[Problem]:
    """The first ones of each kind."""
    by_kind: dict[Kind, list[Problem]] = defaultdict(list)
    for problem in found:
        by_kind[problem.kind].append(problem)
    shown: list[Problem] = []
    for kind, problems in by_kind.items():
        shown += problems[:PROBLEMS_SHOWN_PER_KIND]
        more = len(problems) - PROBLEMS_SHOWN_PER_KIND
        if more > 0:
            shown.append(Problem(kind, f"... and {more} more like it"))
    return shown


def _at(partition: Partition, offset: int) -> str:
    return f"{partition[0]}-{partition[1]}@{offset}"


def _name(record: Record | None) -> str:
    return "invented bytes" if record is None else f"{record.producer}.{record.number}"


# --- records


def _acknowledged_is_there(history: History) -> Found:
    for partition, acknowledged in history.acknowledged.items():
        by_offset = {stored.offset: stored.record for stored in history.log[partition]}
        places = {stored.record: stored.offset for stored in history.log[partition]}
        for ack in acknowledged:
            if ack.record not in places:
                instead = _name(by_offset[ack.offset]) if ack.offset in by_offset else "nothing"
                yield Problem(
                    Kind.LOST, f"{_name(ack.record)}, acknowledged at {_at(partition, ack.offset)}; there is {instead}"
                )
            elif ack.offset >= 0 and by_offset.get(ack.offset) != ack.record:
                place = places[ack.record]
                yield Problem(
                    Kind.MOVED, f"{_name(ack.record)}, acknowledged at {_at(partition, ack.offset)}, is at {place}"
                )


def _log_order(history: History) -> Found:
    """No record twice, each producer's in their order, and leader epochs that do not fall."""
    for partition, log in history.log.items():
        last: dict[str, int] = {}
        seen: set[Record] = set()
        epoch = -1
        for offset, record, leader_epoch in log:
            if leader_epoch < epoch:
                yield Problem(Kind.EPOCH_BACK, f"{_at(partition, offset)} is of epoch {leader_epoch}, after {epoch}")
            epoch = max(epoch, leader_epoch)
            if record is None:
                yield Problem(Kind.INVENTED, f"{_at(partition, offset)} holds bytes that no one wrote")
                continue
            if record in seen:
                yield Problem(Kind.DUPLICATED, f"{_name(record)} is again at {_at(partition, offset)}")
                continue
            seen.add(record)
            before = last.get(record.producer, -1)
            if record.producer in history.idempotent and record.number < before:
                yield Problem(Kind.REORDERED, f"{_name(record)} at {_at(partition, offset)} comes after {before}")
            last[record.producer] = max(before, record.number)


def _readers(history: History) -> Found:
    for reader in history.readers:
        if not reader.finished:
            yield Problem(Kind.UNSEEN, f"{reader.name} did not come to the end")
        for partition in reader.reads:
            yield from _one_reader(history, reader, partition)


def _one_reader(history: History, reader: Reader, partition: Partition) -> Found:
    log = {stored.offset: stored.record for stored in history.log[partition]}
    visible = history.committed[partition] if reader.committed_only else history.log[partition]
    shown = {stored.offset: stored.record for stored in visible}
    position = -1
    seen = set()
    for offset, record in reader.reads[partition]:
        if offset <= position and not reader.is_shared:
            yield Problem(Kind.REREAD, f"{reader.name} got {_at(partition, offset)} after {position}")
        position = max(position, offset)
        seen.add(offset)
        if offset not in log:
            yield Problem(Kind.LOST, f"{_name(record)}, which {reader.name} read at {_at(partition, offset)}")
        elif log[offset] != record:
            yield Problem(
                Kind.CHANGED,
                f"{_at(partition, offset)} was {_name(record)} to {reader.name} and is {_name(log[offset])}",
            )
        elif offset not in shown:
            yield Problem(Kind.ABORTED_READ, f"{_name(record)}, read by {reader.name} at {_at(partition, offset)}")
    begin = reader.begins.get(partition, 0)
    for stored in visible:
        if stored.offset not in seen and stored.offset >= begin and (reader.finished or stored.offset < position):
            yield Problem(
                Kind.UNSEEN, f"{_name(stored.record)} at {_at(partition, stored.offset)} never came to {reader.name}"
            )


def _transactions(history: History) -> Found:
    committed = {(part, s.record) for part, log in history.committed.items() for s in log}
    for outcome, records in history.transactions:
        there = [key for key in records if key in committed]
        if outcome is Outcome.ABORTED and there:
            yield Problem(Kind.ABORTED_READ, f"{_name(there[0][1])} and {len(there) - 1} more of its transaction")
        elif outcome is Outcome.COMMITTED and len(there) != len(records):
            missing = next(key for key in records if key not in committed)
            yield Problem(Kind.LOST, f"{_name(missing[1])} in {missing[0]}, of a committed transaction")
        elif there and len(there) != len(records):
            yield Problem(Kind.TORN, f"{len(there)} of {len(records)} records of that of {_name(records[0][1])}")


# --- what leaders said


def _looks(history: History) -> Found:
    """Within one leader epoch nothing falls, and a new epoch has all that was committed in those before it."""
    for partition, looks in history.looks.items():
        by_epoch: dict[int, list[Look]] = defaultdict(list)
        for look in sorted(looks):
            by_epoch[look.leader_epoch].append(look)
        committed = 0
        for epoch, of_epoch in sorted(by_epoch.items()):
            where = f"{partition[0]}-{partition[1]} epoch {epoch}"
            leaders = {look.broker for look in of_epoch}
            if len(leaders) > 1:
                yield Problem(Kind.TWO_LEADERS, f"{where}: {sorted(leaders)} both responded as its leader")
                continue
            end = 0
            lowest = committed
            for look in of_epoch:
                if look.high_watermark < lowest:
                    yield Problem(Kind.HIGH_WATERMARK_BACK, f"{where}: {look.high_watermark} after {lowest}")
                if look.log_end < max(end, lowest):
                    yield Problem(Kind.LOG_END_BACK, f"{where}: {look.log_end} after {max(end, lowest)}")
                lowest, end = max(lowest, look.high_watermark), max(end, look.log_end)
            committed = lowest


def _log_starts(history: History) -> Found:
    """What was deleted stays deleted. Later epochs only: a deposed leader may not have heard of it."""
    for partition, trims in history.trims.items():
        looks = sorted(history.looks[partition])
        for time_ns, offset in trims:
            known = max((look.leader_epoch for look in looks if look.time_ns < time_ns), default=-1)
            for look in looks:
                if look.time_ns > time_ns and look.leader_epoch >= known and look.log_start < offset:
                    yield Problem(
                        Kind.LOG_START_BACK,
                        f"{partition[0]}-{partition[1]} epoch {look.leader_epoch} starts at {look.log_start}, "
                        f"below {offset}",
                    )
                    break


def _acknowledging_leaders(history: History) -> Found:
    """In one leader epoch one broker acknowledges: the epoch is that of the batch in the log."""
    for partition, acknowledged in history.acknowledged.items():
        epochs = {stored.offset: stored.leader_epoch for stored in history.log[partition]}
        brokers: dict[int, Acknowledged] = {}
        for ack in acknowledged:
            epoch = epochs.get(ack.offset)
            if ack.broker is None or epoch is None:
                continue
            first = brokers.setdefault(epoch, ack)
            if first.broker != ack.broker:
                yield Problem(
                    Kind.TWO_LEADERS,
                    f"{partition[0]}-{partition[1]} epoch {epoch}: {first.broker} acknowledged {_name(first.record)}, "
                    f"{ack.broker} {_name(ack.record)}",
                )


# --- what the controller decided


def _states(history: History) -> Found:
    for partition, states in history.states.items():
        last: StateLook | None = None
        for state in sorted(states):
            if last is not None and (state.leader_epoch, state.controller_epoch) != (
                max(state.leader_epoch, last.leader_epoch),
                max(state.controller_epoch, last.controller_epoch),
            ):
                yield Problem(Kind.EPOCH_BACK, f"{partition[0]}-{partition[1]}: {state} after {last}")
            last = state


def _in_sync(history: History) -> Found:
    """Acknowledged with acks=all means: every member of the ISR has it. One that stood still all the while has not.

    The ISR is that of the state znode where it was the same before the record was sent and after its acknowledgement,
    and the record is of that leader epoch: a leader that does not know the next one yet goes by its own ISR. So does
    one that has not heard yet that the ISR is as small as it proposed.
    """
    for partition, acknowledged in history.acknowledged.items():
        states = sorted(history.states[partition])
        epochs = {stored.offset: stored.leader_epoch for stored in history.log[partition]}
        for ack in acknowledged:
            state = _state_between(states, ack.sent_ns, ack.reported_ns)
            if state is None or epochs.get(ack.offset) != state.leader_epoch:
                continue
            isr = state.isr
            heard_ns = history.heard[partition].get(state.version, ack.reported_ns)
            if len(isr) < history.min_isr and heard_ns <= ack.sent_ns:
                yield Problem(
                    Kind.BELOW_MIN_ISR,
                    f"{_name(ack.record)} at {_at(partition, ack.offset)}, while the ISR was {sorted(isr)}",
                )
            for absence in history.absences:
                if absence.broker in isr and _covers(absence, ack):
                    yield Problem(
                        Kind.NOT_IN_SYNC,
                        f"{_name(ack.record)} at {_at(partition, ack.offset)}, while {absence.broker} of the ISR "
                        f"{sorted(isr)} stood still",
                    )


def _state_between(states: Sequence[StateLook], from_ns: int, to_ns: int) -> StateLook | None:
    """The state, where it was the same one all the while and that is known."""
    before = bisect_left(states, from_ns, key=lambda state: state.reported_ns) - 1
    after = bisect_right(states, to_ns, key=lambda state: state.asked_ns)
    if before < 0 or after >= len(states) or states[before].version != states[after].version:
        return None
    return states[before]


def _members_have_it(history: History) -> Found:
    """What a leader reported as committed, every member of the ISR has."""
    for partition, follower_looks in history.follower_looks.items():
        states = sorted(history.states[partition])
        looks = sorted(history.looks[partition])
        committed = list(accumulate((look.high_watermark for look in looks), max))
        for look in follower_looks:
            known = bisect_left(looks, look.asked_ns, key=lambda leader: leader.time_ns) - 1
            if known < 0 or look.log_end >= committed[known]:
                continue
            state = _state_between(states, look.asked_ns, look.reported_ns)
            if state is not None and look.broker in state.isr:
                yield Problem(
                    Kind.BEHIND,
                    f"{look.broker} of the ISR {sorted(state.isr)} ends at {_at(partition, look.log_end)}, "
                    f"when {committed[known]} was reported before",
                )


def _covers(absence: Absence, ack: Acknowledged) -> bool:
    return absence.from_ns < ack.sent_ns and ack.reported_ns < absence.to_ns


# --- groups


def _commits(history: History) -> Found:
    return commits_back("the group", history.commit_looks, history.commits_acknowledged, history.commits_found)


def commits_back(
    group: str,
    commit_looks: Mapping[Partition, Sequence[CommitLook]],
    commits_acknowledged: Mapping[Partition, Sequence[tuple[int, int]]],
    commits_found: Mapping[Partition, int],
) -> Found:
    """Committed offsets of a group that fell, or are not there at the end; acknowledged ones have (time, offset)."""
    for partition, looks in commit_looks.items():
        lowest = -1
        by_epoch = sorted(looks, key=lambda look: (look.leader_epoch, look.time_ns))
        for look in by_epoch:
            if look.offset < lowest:
                yield Problem(
                    Kind.COMMIT_BACK,
                    f"{group}, {partition[0]}-{partition[1]}: {look.offset} after {lowest}, by {look.broker} in epoch "
                    f"{look.leader_epoch}",
                )
            lowest = max(lowest, look.offset)
    for partition, acknowledged in commits_acknowledged.items():
        highest = max((offset for _, offset in acknowledged), default=-1)
        found = commits_found.get(partition, -1)
        if found < highest:
            yield Problem(
                Kind.COMMIT_BACK,
                f"{group}, {partition[0]}-{partition[1]}: {found} at the end; {highest} was acknowledged",
            )


def _failures(history: History) -> Found:
    for failure in history.failures:
        yield Problem(Kind.FAILURE, failure)


RULES: Sequence[Callable[[History], Found]] = (
    _failures,
    _acknowledged_is_there,
    _log_order,
    _readers,
    _transactions,
    _looks,
    _log_starts,
    _acknowledging_leaders,
    _states,
    _in_sync,
    _members_have_it,
    _commits,
)
