"""`uniform`: as many partitions to each member as to any other, by moving as few as that needs.

If all members subscribe to the same topics, one pass over them is exact: `homogeneous`. Otherwise partitions are moved
until no move improves the balance: `heterogeneous`. Kafka's UniformAssignor makes the same distinction.
"""

from __future__ import annotations

from kpybroker.core.assignors.cohorts import cohorts_of
from kpybroker.core.assignors.heterogeneous import assign_balanced
from kpybroker.core.assignors.homogeneous import assign_evenly
from kpybroker.core.assignors.values import Assignment, Members, Slices, Topics
from kpybroker.wire.yield_budget import WorkBudget


def assign_uniformly(members: Members, topics: Topics) -> Slices[Assignment]:
    """Kafka's `uniform`: an `Assignor`. Ties are decided by the order of member ids."""
    budget = WorkBudget()
    order = sorted(members)
    in_order = [members[member_id] for member_id in order]
    cohorts = yield from cohorts_of(in_order, budget)
    if not cohorts:
        return {}
    if len(cohorts) == 1:
        subscribed = {topic: topics[topic] for topic in sorted(cohorts[0].topics) if topics.get(topic)}
        shares = yield from assign_evenly(in_order, subscribed, budget)
    else:
        shares = yield from assign_balanced(in_order, cohorts, topics, budget)
    return dict(zip(order, shares, strict=True))
