"""What assignors take and give.

An assignor is a generator, because a large group takes a while: it yields after each slice of work (about 2 ms), so
that the caller can let others run, and returns the whole assignment. Until then its arguments must not change.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

MemberId = str
TopicId = bytes
"""16 bytes, as everywhere in this tree."""

Topics = Mapping[TopicId, int]
"""How many partitions each topic has. A topic that is not in it has none, so it may be subscribed to."""

Partitions = Mapping[TopicId, frozenset[int]]
"""Indexes by topic. A topic without partitions may be missing."""

Assignment = dict[MemberId, Partitions]
"""For every member, also for one that gets nothing. A member whose partitions are what it owned gets the very object
`owned`, so `is` finds who is affected; else a topic of which it gets nothing is left out."""

T = TypeVar("T")
Slices = Generator[None, None, T]
"""Work that yields between slices, and then returns."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member as assignors see it.

    `topics` is all it subscribes to, by name and by pattern. `owned` is its part of the previous *target* assignment,
    as in Kafka: not what it still holds while it revokes. It may name topics that are gone or no longer subscribed to.
    """

    instance_id: str | None = None
    topics: frozenset[TopicId] = frozenset()
    owned: Partitions = field(default_factory=dict)


Members = Mapping[MemberId, Member]


class Assignor(Protocol):
    """Divides the partitions of the subscribed topics among the members. The same arguments give the same result."""

    def __call__(self, members: Members, topics: Topics) -> Slices[Assignment]: ...


def run_to_end(slices: Slices[T]) -> T:
    """The result, without letting others run: for tests, and for callers that know the work is short."""
    try:
        while True:
            next(slices)
    except StopIteration as end:
        result: T = end.value
        return result
