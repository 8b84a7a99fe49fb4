"""Assignors for tests: not fair, not sticky, but the same for the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Generator

from kpybroker.core.assignors.values import Assignment, Members, Topics


def contiguous(members: Members, topics: Topics) -> Generator[None, None, Assignment]:
    """Each topic in equal runs, to its subscribers by id; never yields."""
    yield from ()
    return split(members, topics)


def slow(slices: int) -> Callable[[Members, Topics], Generator[None, None, Assignment]]:
    """The same, after so many slices."""

    def assign(members: Members, topics: Topics) -> Generator[None, None, Assignment]:
        for _ in range(slices):
            yield
        return split(members, topics)

    return assign


def split(members: Members, topics: Topics) -> Assignment:
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, count in topics.items():
        subscribed = sorted(member_id for member_id, member in members.items() if topic_id in member.topics)
        for index, member_id in enumerate(subscribed):
            low, high = index * count // len(subscribed), (index + 1) * count // len(subscribed)
            if low < high:
                assignment[member_id][topic_id] = frozenset(range(low, high))
    return {**assignment}


def everything_to_first(members: Members, topics: Topics) -> Generator[None, None, Assignment]:
    """All partitions to the first subscriber of each topic."""
    yield from ()
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, count in topics.items():
        first = min(member_id for member_id, member in members.items() if topic_id in member.topics)
        if count:
            assignment[first][topic_id] = frozenset(range(count))
    return {**assignment}
