"""Even shares for members that subscribe to the same topics: Kafka's UniformHomogeneousAssignmentBuilder.

Every member gets the quota, some one more. A member keeps what it owns up to that; what is free then fills the others.
Who gets one more is decided so that the fewest partitions move: those that own more than the quota, first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from kpybroker.core.assignors.values import Member, Partitions, Slices, TopicId, Topics
from kpybroker.wire.yield_budget import WorkBudget

Free = dict[TopicId, set[int]]


def assign_evenly(members: Sequence[Member], topics: Topics, budget: WorkBudget) -> Slices[list[Partitions]]:
    """The partitions of each member; all subscribe to all of `topics`. There is at least one member."""
    free: Free = {}
    for topic, count in topics.items():
        free[topic] = set(range(count))
        if budget.is_spent(1 + count // 50):
            yield
    quota, extra = divmod(sum(topics.values()), len(members))
    shares: list[dict[TopicId, frozenset[int]]] = []
    rooms: list[int] = []
    for index, member in enumerate(members):
        limit = quota + 1 if extra else quota
        share = _kept(member.owned, free, limit)
        room = limit - sum(map(len, share.values()))
        if extra and room and len(members) - index > extra:
            room -= 1  # enough members follow for the partitions over quota
        elif extra:
            extra -= 1
        shares.append(share)
        rooms.append(room)
        if budget.is_spent(2 + sum(map(len, share.values()))):
            yield
    rest = _in_order(free)
    for share, room in zip(shares, rooms, strict=True):
        _fill(share, islice(rest, room))
        if budget.is_spent(1 + room):
            yield
    assert next(rest, None) is None, "partitions without a member"
    return [member.owned if share == member.owned else share for member, share in zip(members, shares, strict=True)]


def _kept(owned: Partitions, free: Free, limit: int) -> dict[TopicId, frozenset[int]]:
    """What a member keeps of `owned`, at most `limit`; it is free no more."""
    share: dict[TopicId, frozenset[int]] = {}
    for topic in sorted(owned.keys() & free.keys()):
        kept = owned[topic] & free[topic]
        if len(kept) > limit:
            kept = frozenset(sorted(kept)[:limit])
        if kept:
            share[topic] = kept
            free[topic] -= kept
            limit -= len(kept)
    return share


def _in_order(free: Free) -> Iterator[tuple[TopicId, int]]:
    for topic, indexes in free.items():
        for index in sorted(indexes):
            yield topic, index


def _fill(share: dict[TopicId, frozenset[int]], more: Iterator[tuple[TopicId, int]]) -> None:
    added: dict[TopicId, list[int]] = {}
    for topic, index in more:
        added.setdefault(topic, []).append(index)
    for topic, indexes in added.items():
        share[topic] = share.get(topic, frozenset()).union(indexes)
