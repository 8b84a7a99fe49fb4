"""`simple`: every partition to as many members of a share group as it takes to give all of them work.

If the group has more members than partitions, a partition has several, as many as any other; else each has one. A
member has as many partitions as any other, or one more. If members subscribe to different topics, that holds for the
subscribers of each topic by itself, as in Kafka's SimpleAssignor. What members own counts: as much of it stays as that
leaves. Racks count for nothing.

Where a partition wants one more member and all that have room for it have it already, Kafka's leaves that partition,
and all that it looks at after it, as they are. Here one more partition moves, so that the division is always even.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kpybroker.core.assignors.cohorts import cohorts_of
from kpybroker.core.assignors.values import Assignment, Member, Members, Partitions, Slices, TopicId
from kpybroker.wire.yield_budget import WorkBudget

SIMPLE_ASSIGNOR: Final = "simple"

Assignable = Mapping[TopicId, Collection[int]]
"""The partitions of each topic that may be assigned: those whose state is initialized."""
Slot = tuple[TopicId, int]
"""A partition."""


def assign_simply(members: Members, assignable: Assignable) -> Slices[Assignment]:
    """Kafka's `simple`. Ties are decided by the order of member ids, topic ids and partitions."""
    budget = WorkBudget()
    order = sorted(members)
    in_order = [members[member_id] for member_id in order]
    cohorts = yield from cohorts_of(in_order, budget)
    shares: list[dict[TopicId, set[int]]] = [{} for _ in order]
    topics = sorted(frozenset[TopicId]().union(*(cohort.topics for cohort in cohorts)) & assignable.keys())
    pools = [topics] if len(cohorts) == 1 else [[topic] for topic in topics]
    for pool in pools:
        takers = [index for index, member in enumerate(in_order) if pool and pool[0] in member.topics]
        slots = [(topic, partition) for topic in pool for partition in sorted(assignable[topic])]
        if takers and slots:
            spread = _Spread([in_order[index] for index in takers], slots)
            yield from spread.run(budget)
            for index, taken in zip(takers, spread.taken, strict=True):
                for topic, partition in (slots[slot] for slot in taken):
                    shares[index].setdefault(topic, set()).add(partition)
                if budget.is_spent(1 + len(taken)):
                    yield
    assignment: Assignment = {}
    for member_id, member, share in zip(order, in_order, shares, strict=True):
        frozen: Partitions = {topic: frozenset(partitions) for topic, partitions in share.items()}
        assignment[member_id] = member.owned if frozen == member.owned else frozen
        if budget.is_spent(1 + len(share)):
            yield
    return assignment


class _Spread:
    """Members that subscribe to the same topics, and all partitions of these. `taken` has the slots of each member."""

    def __init__(self, takers: Sequence[Member], slots: Sequence[Slot]) -> None:
        self._takers = takers
        self._slots = slots
        total_members, total_slots = len(takers), len(slots)
        self.sharing = -(-total_members // total_slots)
        ends = [-(-self.sharing * total_slots * (index + 1) // total_members) for index in range(total_members)]
        self._wanted = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        self.taken: list[set[int]] = [set() for _ in takers]
        self._holders: list[set[int]] = [set() for _ in slots]

    def run(self, budget: WorkBudget) -> Slices[None]:
        yield from self._keep(budget)
        yield from self._release(budget)
        yield from self._fill(budget)

    def _keep(self, budget: WorkBudget) -> Slices[None]:
        """What members own, where it is still one of the slots."""
        numbers = {slot: number for number, slot in enumerate(self._slots)}
        for index, member in enumerate(self._takers):
            for topic, partitions in member.owned.items():
                for partition in partitions:
                    if (number := numbers.get((topic, partition))) is not None:
                        self.taken[index].add(number)
                        self._holders[number].add(index)
                if budget.is_spent(1 + len(partitions)):
                    yield

    def _release(self, budget: WorkBudget) -> Slices[None]:
        """What members have too many of, first those that too many have; then what is still shared by too many."""
        for index, taken in enumerate(self.taken):
            excess = len(taken) - self._wanted[index]
            if excess > 0:
                crowded = sorted(taken, key=lambda slot: (-len(self._holders[slot]), slot))
                for slot in crowded[:excess]:
                    self._drop(index, slot)
                if budget.is_spent(1 + len(crowded)):
                    yield
        for slot, holders in enumerate(self._holders):
            while len(holders) > self.sharing:
                self._drop(max(holders, key=lambda index: (len(self.taken[index]), index)), slot)
            if budget.is_spent(1):
                yield

    def _fill(self, budget: WorkBudget) -> Slices[None]:
        """Each slot to as many members as it is to have: those that have fewer than they are to have, in turn."""
        unfilled = deque(index for index, taken in enumerate(self.taken) if len(taken) < self._wanted[index])
        for slot, holders in enumerate(self._holders):
            passed = []
            while len(holders) < self.sharing and unfilled:
                index = unfilled.popleft()
                if index in holders:
                    passed.append(index)
                else:
                    self._take(index, slot)
                    if len(self.taken[index]) < self._wanted[index]:
                        unfilled.append(index)
            unfilled.extendleft(reversed(passed))
            while len(holders) < self.sharing:
                index = unfilled[0]
                self._exchange(index, slot)
                if len(self.taken[index]) == self._wanted[index]:
                    unfilled.popleft()
            if budget.is_spent(2 + len(passed)):
                yield
        assert not unfilled, "a member has less than its part"

    def _exchange(self, index: int, slot: int) -> None:
        """The member has the slot, and room: one that has no room takes the slot, and gives it another.

        There is one: fewer members than there are have the slot, and one without room has more than this one.
        """
        giver, given = next(
            (other, min(taken - self.taken[index]))
            for other, taken in enumerate(self.taken)
            if slot not in taken and not taken <= self.taken[index]
        )
        self._drop(giver, given)
        self._take(giver, slot)
        self._take(index, given)

    def _take(self, index: int, slot: int) -> None:
        self.taken[index].add(slot)
        self._holders[slot].add(index)

    def _drop(self, index: int, slot: int) -> None:
        self.taken[index].remove(slot)
        self._holders[slot].remove(index)
