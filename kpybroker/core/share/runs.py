"""Records in flight as runs of offsets.

Kafka has a map from a batch's first offset to the batch, and in a batch either one state or a map with a state for each
offset, which stays once it is there. Here a batch is a `Run`. A batch that is tracked by offset has `parts`: runs that
cover it in order, cut where offsets differ. Ten thousand records that were acquired together cost as much as one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import inf

from kpybroker.core.share.values import RecordState

NO_MEMBER = ""
NO_DEADLINE = inf
ARCHIVED_BEFORE_THAT = NO_MEMBER
"""In `Run.pending`: the write's result does not matter any more."""


@dataclass(slots=True, eq=False)
class Run:
    """Neighbouring offsets of one state, or a batch with parts, whose own state is then not looked at.

    While a write of a new state is in flight, `pending` is the member that held the offsets before it.
    """

    first: int
    last: int
    state: RecordState
    delivery_count: int
    member_id: str = NO_MEMBER
    deadline: float = NO_DEADLINE
    pending: str | None = None
    parts: list[Run] | None = None

    @property
    def is_available(self) -> bool:
        """Whether a member may acquire it."""
        return self.state is RecordState.AVAILABLE and self.pending is None

    @property
    def is_done(self) -> bool:
        """Whether it is terminal, and persisted as that."""
        return self.state.is_terminal and self.pending is None

    def acquire(self, member_id: str, deadline: float) -> None:
        """Lock it for a member: a delivery more."""
        assert self.is_available, self
        self.state, self.member_id, self.deadline = RecordState.ACQUIRED, member_id, deadline
        self.delivery_count += 1

    def release(self, state: RecordState) -> None:
        """End the member's hold, without a pending write."""
        assert self.state is RecordState.ACQUIRED, self
        self.state, self.member_id, self.deadline = state, NO_MEMBER, NO_DEADLINE

    def begin(self, state: RecordState) -> None:
        """Begin a transition that a write must confirm. The lock goes on, for the case that it fails."""
        assert self.state is RecordState.ACQUIRED, self
        self.state, self.pending, self.member_id = state, self.member_id, NO_MEMBER

    def commit(self) -> None:
        """The write succeeded."""
        self.pending, self.deadline = None, NO_DEADLINE

    def revert(self, now: float, delivery_count_limit: int) -> None:
        """The write failed: the member holds it again, unless its lock ran out during the write."""
        member_id, self.pending = self.pending, None
        if member_id == ARCHIVED_BEFORE_THAT:
            self.deadline = NO_DEADLINE
        elif self.deadline > now:
            assert member_id is not None
            self.state, self.member_id = RecordState.ACQUIRED, member_id
        else:
            self.deadline = NO_DEADLINE
            self.state = RecordState.AVAILABLE if self.delivery_count < delivery_count_limit else RecordState.ARCHIVED

    def archive(self) -> None:
        """Make it terminal whatever is in flight."""
        self.state, self.member_id, self.deadline = RecordState.ARCHIVED, NO_MEMBER, NO_DEADLINE
        if self.pending is not None:
            self.pending = ARCHIVED_BEFORE_THAT


def runs_of(batch: Run) -> list[Run]:
    """The batch's runs in order: itself as long as all of it has one state."""
    return [batch] if batch.parts is None else batch.parts


def runs_from(batch: Run, offset: int) -> list[Run]:
    """The batch's runs in order, without those that end before the offset."""
    if batch.parts is None:
        return [batch]
    return batch.parts[max(0, bisect_right(batch.parts, offset, key=_first) - 1) :]


def track_offsets(batch: Run) -> None:
    """From now on offsets of the batch may differ."""
    if batch.parts is None:
        batch.parts = [_copy(batch, batch.first, batch.last)]


def cut(batch: Run, first: int, last: int) -> list[Run]:
    """The runs of a batch with parts from `first` to `last`, cut at these two where they lie inside of a run."""
    parts = batch.parts
    assert parts is not None
    if last < batch.first or first > batch.last or first > last:
        return []
    begin = 0 if first <= batch.first else _cut_before(parts, first)
    end = len(parts) if last >= batch.last else _cut_before(parts, last + 1)
    return parts[begin:end]


def _cut_before(parts: list[Run], offset: int) -> int:
    """Make a run begin at `offset`; return its index."""
    index = bisect_right(parts, offset, key=_first) - 1
    run = parts[index]
    if run.first == offset:
        return index
    parts.insert(index + 1, _copy(run, offset, run.last))
    run.last = offset - 1
    return index + 1


def join(batch: Run, first: int, last: int) -> None:
    """Make one run of equal neighbours between `first` and `last`, and at these."""
    parts = batch.parts
    if parts is None:
        return
    begin = max(0, bisect_right(parts, first - 1, key=_first) - 1)
    end = bisect_right(parts, last + 1, key=_first)
    joined = parts[begin : begin + 1]
    for run in parts[begin + 1 : end]:
        if _alike(joined[-1], run):
            joined[-1].last = run.last
        else:
            joined.append(run)
    parts[begin:end] = joined


def _alike(one: Run, other: Run) -> bool:
    return (
        one.pending is None
        and other.pending is None
        and one.state is other.state
        and one.delivery_count == other.delivery_count
        and one.deadline == other.deadline
        and one.member_id == other.member_id
    )


def _copy(run: Run, first: int, last: int) -> Run:
    return Run(first, last, run.state, run.delivery_count, run.member_id, run.deadline, run.pending)


def _first(run: Run) -> int:
    return run.first
