"""Balanced shares for members that subscribe to different topics: Kafka's UniformHeterogeneousAssignmentBuilder.

Members keep what they own and still subscribe to. Partitions without an owner go to the subscriber with the fewest,
topic by topic, those with most partitions per subscriber first. Then each topic is balanced: its partitions move from
the owner with the most partitions to the subscriber with the fewest, while they differ by two or more; and again, until
no topic moves any. This is exact if the subscribers of each topic have the same subscription. Where subscriptions
overlap, a chain of moves that would improve the balance only at its end is not found, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from kpybroker.core.assignors.cohorts import Cohort, subscribing_cohorts
from kpybroker.core.assignors.values import Member, Partitions, Slices, TopicId, Topics
from kpybroker.wire.yield_budget import WorkBudget

ROUNDS_MAX = 16
"""Kafka's MAX_ITERATION_COUNT. Each round about halves an imbalance, but over a long chain of subscriptions that each
overlap with the next it would take very many."""

NO_OWNER = -1


Owners = dict[TopicId, list[int]]
"""The index of the member, or NO_OWNER, for each partition."""


def assign_balanced(
    members: Sequence[Member], cohorts: Sequence[Cohort], topics: Topics, budget: WorkBudget
) -> Slices[list[Partitions]]:
    """The partitions of each member."""
    subscribing = yield from subscribing_cohorts(cohorts, topics, budget)
    owners = yield from _kept(members, {topic: topics[topic] for topic in subscribing}, budget)
    loads = yield from _loads(owners, len(members), budget)
    by_load = _ByLoad(cohorts, loads)
    urgent = yield from _urgent(owners, subscribing, cohorts, budget)
    for topic in urgent:
        yield from _hand_out(owners[topic], by_load.takers(subscribing[topic]), budget)
    unmoved = visits = 0
    while unmoved < len(urgent) and visits < ROUNDS_MAX * len(urgent):
        topic = urgent[visits % len(urgent)]
        moves = yield from _balance(owners[topic], by_load.takers(subscribing[topic]), budget)
        unmoved = 0 if moves else unmoved + 1
        visits += 1
    return (yield from _shares(members, owners, budget))


class _ByLoad:
    """Who has least in each cohort. Heaps keep entries of former loads until these are on top."""

    def __init__(self, cohorts: Sequence[Cohort], loads: list[int]) -> None:
        self.loads = loads
        self.cohort_of = [0] * len(loads)
        self._heaps: list[list[tuple[int, int]]] = []
        for number, cohort in enumerate(cohorts):
            heap = [(loads[member], member) for member in cohort.members]
            heapify(heap)
            self._heaps.append(heap)
            for member in cohort.members:
                self.cohort_of[member] = number

    def least(self, cohort: int) -> tuple[int, int]:
        """The least load in a cohort, and the first member that has it."""
        heap = self._heaps[cohort]
        while self.loads[heap[0][1]] != heap[0][0]:
            heappop(heap)
        return heap[0]

    def add(self, member: int, count: int) -> None:
        self.loads[member] += count
        heappush(self._heaps[self.cohort_of[member]], (self.loads[member], member))

    def takers(self, cohorts: Sequence[int]) -> _Takers:
        return _Takers(self, cohorts)


class _Takers:
    """The subscribers of one topic. Loads change only by its methods while it is used."""

    def __init__(self, by_load: _ByLoad, cohorts: Sequence[int]) -> None:
        self.loads = by_load.loads
        self.cost = 1 + len(cohorts) // 3
        self._by_load = by_load
        self._heap = [by_load.least(cohort) for cohort in cohorts]
        heapify(self._heap)

    def least(self) -> tuple[int, int]:
        """The least load of a subscriber, and the first that has it."""
        heap = self._heap
        while self.loads[heap[0][1]] != heap[0][0]:
            heapreplace(heap, self._by_load.least(self._by_load.cohort_of[heap[0][1]]))
        return heap[0]

    def take(self, member: int) -> None:
        """One partition more."""
        self._by_load.add(member, 1)

    def give(self, member: int) -> None:
        """One partition less: its cohort may have a new least load."""
        self._by_load.add(member, -1)
        heappush(self._heap, self._by_load.least(self._by_load.cohort_of[member]))


def _urgent(
    owners: Owners, subscribing: Mapping[TopicId, Sequence[int]], cohorts: Sequence[Cohort], budget: WorkBudget
) -> Slices[list[TopicId]]:
    """Topics in the order in which they are handed out and balanced."""
    keys: list[tuple[float, int, TopicId]] = []
    for topic, of_topic in owners.items():
        subscribers = sum(len(cohorts[cohort].members) for cohort in subscribing[topic])
        keys.append((-len(of_topic) / subscribers, subscribers, topic))
        if budget.is_spent(1 + len(subscribing[topic]) // 20):
            yield
    return [topic for _, _, topic in sorted(keys)]


def _kept(members: Sequence[Member], topics: Topics, budget: WorkBudget) -> Slices[Owners]:
    owners: Owners = {topic: [NO_OWNER] * count for topic, count in topics.items()}
    for index, member in enumerate(members):
        for topic in member.owned.keys() & member.topics & owners.keys():
            of_topic = owners[topic]
            for partition in member.owned[topic]:
                if partition < len(of_topic) and of_topic[partition] == NO_OWNER:
                    of_topic[partition] = index
            if budget.is_spent(1 + len(member.owned[topic]) // 5):
                yield
        if budget.is_spent(1):
            yield
    return owners


def _loads(owners: Owners, members: int, budget: WorkBudget) -> Slices[list[int]]:
    loads = [0] * members
    for of_topic in owners.values():
        for owner in of_topic:
            if owner != NO_OWNER:
                loads[owner] += 1
        if budget.is_spent(1 + len(of_topic) // 20):
            yield
    return loads


def _hand_out(owners: list[int], takers: _Takers, budget: WorkBudget) -> Slices[None]:
    """Each partition that no one owns to the subscriber with the fewest."""
    for partition, owner in enumerate(owners):
        if owner == NO_OWNER:
            _, taker = takers.least()
            owners[partition] = taker
            takers.take(taker)
            if budget.is_spent(2):
                yield
    if budget.is_spent(1 + takers.cost + len(owners) // 20):
        yield


def _balance(owners: list[int], takers: _Takers, budget: WorkBudget) -> Slices[int]:
    """Move partitions of one topic while that improves the balance; how many."""
    owned: dict[int, list[int]] = {}
    for partition, owner in enumerate(owners):
        owned.setdefault(owner, []).append(partition)
    loads = takers.loads
    givers = [(-loads[owner], -owner) for owner in owned]
    heapify(givers)
    if budget.is_spent(1 + takers.cost + len(owners) // 5):
        yield
    moves = 0
    while givers:
        giver = -givers[0][1]
        load, taker = takers.least()
        if loads[giver] - load <= 1:
            break
        owners[owned[giver].pop()] = taker
        takers.give(giver)
        takers.take(taker)
        moves += 1
        if owned[giver]:
            heapreplace(givers, (-loads[giver], -giver))
        else:
            heappop(givers)
        if budget.is_spent(5):
            yield
    return moves


def _shares(members: Sequence[Member], owners: Owners, budget: WorkBudget) -> Slices[list[Partitions]]:
    shares: list[dict[TopicId, list[int]]] = [{} for _ in members]
    for topic, of_topic in owners.items():
        for partition, owner in enumerate(of_topic):
            shares[owner].setdefault(topic, []).append(partition)
        if budget.is_spent(1 + len(of_topic) // 5):
            yield
    result: list[Partitions] = []
    for member, share in zip(members, shares, strict=True):
        frozen = {topic: frozenset(partitions) for topic, partitions in share.items()}
        result.append(member.owned if frozen == member.owned else frozen)
        if budget.is_spent(1 + len(share)):
            yield
    return result
