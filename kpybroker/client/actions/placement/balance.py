"""Who should lead what, so that every broker has about as much to do. Nothing is asked.

A partition's load is a number, whatever it counts; a broker's is that of the partitions it leads. The most loaded
broker gives away one partition after the other, each time the one that brings it and the other broker closest together,
until all are within `TOLERANCE` of the mean or no single change helps. So what is idle stays, a broker that is not too
busy keeps what it leads, and few partitions change. One that has a replica on the other broker already is preferred:
nothing is copied for it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kpybroker.client.actions.partitions import Partition, Place

TOLERANCE: Final = 0.1
"""By how much of the mean a broker may have more than the mean."""
GAIN_MIN: Final = 0.05
"""The most loaded broker must lose so much of its load, or nothing is worth a change."""


class Change(NamedTuple):
    """A partition that another broker should lead; its replicas from then on, the leader first."""

    partition: Partition
    leader: int
    replicas: list[int]

    @property
    def is_copied(self) -> bool:
        """Whether the new leader has no replica yet."""
        return self.leader not in self.partition.replicas


class Balance(NamedTuple):
    """What each broker leads before and after the changes, as a load."""

    before: dict[int, float]
    after: dict[int, float]
    changes: list[Change]


def balance(
    partitions: Mapping[Place, Partition], loads: Mapping[Place, float], brokers: Sequence[int], *, copies: bool
) -> Balance:
    """The changes; with `copies`, also to brokers without a replica. Brokers that are down get nothing."""
    plan = _Leaders(partitions, loads, brokers)
    before = dict(plan.held)
    steps_max = 2 * len(partitions)
    ways = (False, True) if copies else (False,)
    while steps_max and any(plan.relieve(hot, is_copied) for hot in plan.hot() for is_copied in ways):
        steps_max -= 1
    if max(plan.held.values(), default=0.0) > max(before.values(), default=0.0) * (1 - GAIN_MIN):
        return Balance(before, before, [])
    return Balance(before, plan.held, plan.changes())


class _Leaders:
    """The leaders as they would be. `_led[a, b]`: by load, what a leads and b has a replica of; all with None."""

    def __init__(
        self, partitions: Mapping[Place, Partition], loads: Mapping[Place, float], brokers: Sequence[int]
    ) -> None:
        self._partitions = partitions
        self._loads = loads
        self.held = dict.fromkeys(brokers, 0.0)
        self._of: dict[Place, int] = {}
        self._led: dict[tuple[int, int | None], list[tuple[float, Place]]] = {}
        for place, one in partitions.items():
            if one.leader in self.held and loads.get(place, 0.0) > 0:
                self._give(place, one.leader)

    def hot(self) -> list[int]:
        """The brokers with too much, the worst first."""
        mean = sum(self.held.values()) / max(1, len(self.held))
        return sorted(
            (one for one, load in self.held.items() if load > mean * (1 + TOLERANCE)), key=lambda one: -self.held[one]
        )

    def relieve(self, hot: int, is_copied: bool) -> bool:
        """Give one partition of this broker to the broker that it helps most; False where none helps."""
        for other in sorted(self.held, key=self.held.__getitem__):
            gap = self.held[hot] - self.held[other]
            if gap <= 0:
                return False
            found = self._best(self._led.get((hot, None if is_copied else other), []), gap)
            if found is not None:
                self._take(found, hot)
                self._give(found, other)
                return True
        return False

    @staticmethod
    def _best(led: Sequence[tuple[float, Place]], gap: float) -> Place | None:
        """Of those smaller than the gap, so that the larger of the two brokers shrinks, the closest to its half."""
        at = bisect_left(led, gap / 2, key=lambda one: one[0])
        around = [one for one in led[max(0, at - 1) : at + 1] if one[0] < gap]
        return min(around, key=lambda one: (abs(one[0] - gap / 2), one[1]))[1] if around else None

    def _keys(self, place: Place, leader: int) -> Iterator[tuple[int, int | None]]:
        yield leader, None
        for replica in self._partitions[place].replicas:
            if replica != leader and replica in self.held:
                yield leader, replica

    def _give(self, place: Place, leader: int) -> None:
        load = self._loads[place]
        self._of[place] = leader
        self.held[leader] += load
        for key in self._keys(place, leader):
            insort(self._led.setdefault(key, []), (load, place))

    def _take(self, place: Place, leader: int) -> None:
        load = self._loads[place]
        self.held[leader] -= load
        for key in self._keys(place, leader):
            led = self._led[key]
            del led[bisect_left(led, (load, place))]

    def changes(self) -> list[Change]:
        """The partitions that are led by another broker than before."""
        found = []
        for place, leader in sorted(self._of.items()):
            one = self._partitions[place]
            if leader != one.leader:
                left = [replica for replica in one.replicas if replica != leader]
                if leader not in one.replicas:  # it takes the place of the former leader
                    left = [replica for replica in left if replica != one.leader]
                found.append(Change(one, leader, [leader, *left]))
        return found
