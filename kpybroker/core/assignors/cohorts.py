"""Cohorts: the members of one subscription, together. A large group has few of them.

So what is asked for each topic (who subscribes, who has least) costs a step per cohort, not per member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kpybroker.core.assignors.values import Member, Slices, TopicId, Topics
from kpybroker.wire.yield_budget import WorkBudget

TOPICS_PER_UNIT = 20
"""How many topic ids are hashed or compared in one unit of work."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """`members` are indexes into the sequence of members, ascending."""

    topics: frozenset[TopicId]
    members: list[int]


def cohorts_of(members: Sequence[Member], budget: WorkBudget) -> Slices[list[Cohort]]:
    """In the order of their first members."""
    cohorts: dict[frozenset[TopicId], Cohort] = {}
    for index, member in enumerate(members):
        cohort = cohorts.get(member.topics)
        if cohort is None:
            cohort = cohorts[member.topics] = Cohort(member.topics, [])
        cohort.members.append(index)
        if budget.is_spent(1 + len(member.topics) // TOPICS_PER_UNIT):
            yield
    return list(cohorts.values())


def subscribing_cohorts(
    cohorts: Sequence[Cohort], topics: Topics, budget: WorkBudget
) -> Slices[dict[TopicId, tuple[int, ...]]]:
    """The numbers of the cohorts that subscribe to each topic with partitions."""
    found: dict[TopicId, list[int]] = {}
    for number, cohort in enumerate(cohorts):
        for topic in cohort.topics:
            if topics.get(topic):
                found.setdefault(topic, []).append(number)
            if budget.is_spent(1):
                yield
    return {topic: tuple(numbers) for topic, numbers in found.items()}
