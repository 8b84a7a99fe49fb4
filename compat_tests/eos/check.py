"""Exactly once, as a check: what was copied from partition to partition, and what readers of committed data saw.

Values and one pure function, so that the check itself is tested on outputs made by hand (`test_check.py`). A partition
of the input is copied into the output partition of the same number; every value of the input is unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

PROBLEMS_SHOWN_PER_KIND = 10


class Stored(NamedTuple):
    offset: int
    value: str


class Seen(NamedTuple):
    """A record that a read_committed reader got while the copying went on; the time is of the monotonic clock."""

    offset: int
    value: str
    time_ns: int


@dataclass(slots=True)
class Copying:
    """All by partition. `log` is what an uncommitted read finds at the end, `committed` what a committed one finds.

    `observed` has one sequence for each reader of a partition, in the order in which it read. `commit_called` reports
    values when their copier first asked to commit them, where the copier reports it. `positions` are the group's
    offsets.
    """

    inputs: Mapping[int, Sequence[str]]
    log: Mapping[int, Sequence[Stored]]
    committed: Mapping[int, Sequence[Stored]]
    observed: Mapping[int, Sequence[Sequence[Seen]]] = field(default_factory=dict)
    commit_called: Mapping[str, int] = field(default_factory=dict)
    positions: Mapping[int, int] = field(default_factory=dict)


def check(copying: Copying) -> list[str]:
    """Everything that is wrong; nothing when each record was copied once, in order, and only seen when committed."""
    problems: list[str] = []
    for partition, inputs in sorted(copying.inputs.items()):
        committed = copying.committed.get(partition, ())
        log = {stored.offset: stored.value for stored in copying.log.get(partition, ())}
        kinds = [
            _against_input(inputs, [stored.value for stored in committed]),
            _outside_the_log(committed, log),
            _position(len(inputs), copying.positions.get(partition)),
        ]
        for seen in copying.observed.get(partition, ()):
            kinds += [_not_committed(seen, committed, log), _reader_order(seen, committed)]
            kinds += [_too_early(seen, copying.commit_called)]
        for kind in kinds:
            problems += _shortened([f"partition {partition}: {problem}" for problem in kind])
    return problems


def _shortened(problems: Sequence[str]) -> list[str]:
    more = len(problems) - PROBLEMS_SHOWN_PER_KIND
    return [*problems[:PROBLEMS_SHOWN_PER_KIND], f"... and {more} more like it"] if more > 0 else list(problems)


def _against_input(inputs: Sequence[str], output: Sequence[str]) -> Iterator[str]:
    places = {value: place for place, value in enumerate(inputs)}
    counts = Counter(output)
    for value in inputs:
        if value not in counts:
            yield f"{value!r} is lost"
    for value, count in counts.items():
        if value not in places:
            yield f"{value!r} was never sent"
        elif count > 1:
            yield f"{value!r} is there {count} times"
    last = -1
    for value in dict.fromkeys(output):  # a second copy is reported above
        place = places.get(value, last)
        if place < last:
            yield f"{value!r} comes after {inputs[last]!r}"
        last = place


def _outside_the_log(committed: Sequence[Stored], log: Mapping[int, str]) -> Iterator[str]:
    for offset, value in committed:
        if log.get(offset) != value:
            yield f"{value!r} is committed at offset {offset}, where the log has {log.get(offset)!r}"


def _position(count: int, position: int | None) -> Iterator[str]:
    if position is not None and position != count:
        yield f"the group stands at offset {position} of {count}"


def _not_committed(seen: Sequence[Seen], committed: Sequence[Stored], log: Mapping[int, str]) -> Iterator[str]:
    kept = dict(committed)
    for offset, value, _ in seen:
        if kept.get(offset) == value:
            continue
        if log.get(offset) == value:
            yield f"{value!r} at offset {offset} was read and is aborted"
        else:
            yield f"{value!r} was read at offset {offset}, where the log has {log.get(offset)!r}"


def _reader_order(seen: Sequence[Seen], committed: Sequence[Stored]) -> Iterator[str]:
    """A reader gets the committed records one by one, from the first on, and none twice."""
    place = {stored.offset: number for number, stored in enumerate(committed)}
    expected = 0
    for offset, value, _ in seen:
        if offset not in place:
            continue  # reported by `_not_committed`
        if place[offset] != expected:
            yield f"a reader got {value!r} at offset {offset} as number {expected}; it is number {place[offset]}"
        expected = place[offset] + 1


def _too_early(seen: Sequence[Seen], commit_called: Mapping[str, int]) -> Iterator[str]:
    for offset, value, time_ns in seen:
        called = commit_called.get(value)
        if called is not None and time_ns < called:
            yield f"{value!r} at offset {offset} was read {called - time_ns} ns before its transaction was committed"
