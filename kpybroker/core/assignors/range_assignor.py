"""`range`: each topic's partitions in contiguous ranges, in one order of members for all topics.

So topics of the same size and the same subscribers are co-partitioned. Static members are first, by instance id, since
their member ids change when they restart; then the others, by member id. What members own does not count: it is sticky
only in that the same members get the same. Kafka's RangeAssignor.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpybroker.core.assignors.cohorts import Cohort, cohorts_of, subscribing_cohorts
from kpybroker.core.assignors.values import Assignment, Members, Slices, TopicId, Topics
from kpybroker.wire.yield_budget import WorkBudget

Ranges = list[frozenset[int]]


def assign_ranges(members: Members, topics: Topics) -> Slices[Assignment]:
    """Kafka's `range`: an `Assignor`."""
    budget = WorkBudget()
    order = _ordered(members)
    cohorts = yield from cohorts_of([members[member_id] for member_id in order], budget)
    subscribing = yield from subscribing_cohorts(cohorts, topics, budget)
    subscribers: dict[tuple[int, ...], list[int]] = {}
    ranges: dict[tuple[int, int], Ranges] = {}
    shares: list[dict[TopicId, frozenset[int]]] = [{} for _ in order]
    for topic, numbers in subscribing.items():
        if numbers not in subscribers:
            subscribers[numbers] = _merged(cohorts, numbers)
            if budget.is_spent(1 + len(subscribers[numbers]) // 10):
                yield
        takers = subscribers[numbers]
        size = topics[topic], len(takers)
        if size not in ranges:
            ranges[size] = _ranges(*size)
        for taker, indexes in zip(takers, ranges[size], strict=False):  # there may be fewer ranges
            shares[taker][topic] = indexes
            if budget.is_spent(1):
                yield
        if budget.is_spent(1):
            yield
    assignment: Assignment = {}
    for member_id, share in zip(order, shares, strict=True):
        owned = members[member_id].owned
        assignment[member_id] = owned if share == owned else share
        if budget.is_spent(1 + len(share)):
            yield
    return assignment


def _ordered(members: Members) -> list[str]:
    static = sorted((member.instance_id, member_id) for member_id, member in members.items() if member.instance_id)
    dynamic = sorted(member_id for member_id, member in members.items() if not member.instance_id)
    return [member_id for _, member_id in static] + dynamic


def _merged(cohorts: Sequence[Cohort], numbers: Sequence[int]) -> list[int]:
    if len(numbers) == 1:
        return cohorts[numbers[0]].members
    return sorted(index for number in numbers for index in cohorts[number].members)


def _ranges(partitions: int, takers: int) -> Ranges:
    """One range for each taker, the longer ones first; only as many as have a partition."""
    quota, extra = divmod(partitions, takers)
    ranges: Ranges = []
    start = 0
    while start < partitions:
        end = start + quota + (len(ranges) < extra)
        ranges.append(frozenset(range(start, end)))
        start = end
    return ranges
