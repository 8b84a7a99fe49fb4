"""The state of a share partition, and how its start offset moves over what is done with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from kpybroker.core.share.archived import Archived, ArchivedLog, Reason
from kpybroker.core.share.runs import NO_DEADLINE, Run, cut, join, runs_from, runs_of, track_offsets
from kpybroker.core.share.values import RecordState, ShareSettings
from kpybroker.core.share_coordinator.values import StateBatch

NOTHING_AVAILABLE = 2**63
"""More than any offset."""


@dataclass(slots=True)
class GapWindow:
    """Between the batches of a persisted state there may be offsets without a state, which are still to be acquired.

    They are looked for from `start` on, as long as nothing after `end` was acquired (Kafka's
    ``persisterReadResultGapWindow``).
    """

    end: int
    start: int


@dataclass(slots=True, eq=False)
class ShareState:
    """`batches` are in flight, in order and disjoint. Some may end below `start_offset`, where the log moved it."""

    settings: ShareSettings
    state_epoch: int
    start_offset: int
    end_offset: int
    batches: list[Run] = field(default_factory=list)
    gap: GapWindow | None = None
    available_from: int = NOTHING_AVAILABLE
    """Nothing is available before this offset (Kafka's ``findNextFetchOffset`` only says whether something may be)."""
    delivery_complete_count: int = 0
    earliest_deadline: float = NO_DEADLINE
    """No lock runs out before this; often later than this, once the lock it was for has ended."""
    archived: ArchivedLog | None = None
    """Why the last ones were archived; None before there are any."""

    def floor(self, offset: int) -> int:
        """The index of the last batch that begins at `offset` or before; -1 if there is none."""
        return bisect_right(self.batches, offset, key=_first) - 1

    def between(self, first: int, last: int) -> list[Run]:
        """The batches that begin between two offsets."""
        return self.batches[bisect_left(self.batches, first, key=_first) : bisect_right(self.batches, last, key=_first)]

    def touching(self, first: int, last: int) -> list[Run]:
        """The batches that have an offset between two."""
        begin = self.floor(first)
        if begin < 0 or self.batches[begin].last < first:
            begin += 1
        return self.batches[begin : bisect_right(self.batches, last, key=_first)]

    def put(self, batch: Run) -> None:
        """Add a batch of offsets that had no state."""
        self.batches.insert(self.floor(batch.first) + 1, batch)

    @property
    def is_gap_open(self) -> bool:
        """Whether offsets between the batches may still have to be acquired."""
        return self.gap is not None and self.gap.end == self.end_offset

    def close_gap_before(self, offset: int) -> None:
        """Everything before `offset` was offered to a member."""
        if self.gap is not None:
            if self.is_gap_open and offset <= self.gap.end:
                self.gap.start = offset
            else:
                self.gap = None

    @property
    def in_flight(self) -> int:
        """How many offsets count for the limit of records in flight."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def starts_inside(self, first: int, last: int) -> bool:
        """Whether the start offset is between the two, and not the first of them."""
        return first < self.start_offset <= last

    def count_from_start(self, first: int, last: int) -> int:
        """How many of these offsets are not below the start offset."""
        return max(0, last - max(self.start_offset, first) + 1)

    def offer(self, offset: int) -> None:
        """The offset is available from now on."""
        self.available_from = min(self.available_from, offset)

    def lock_until(self, now: float) -> float:
        """When a lock that begins now runs out."""
        deadline = now + self.settings.record_lock_duration_ms / 1000
        self.earliest_deadline = min(self.earliest_deadline, deadline)
        return deadline

    def released_state(self, run: Run) -> RecordState:
        """What a record is when its delivery ended without a decision: archived below the start, or after its last."""
        if run.last < self.start_offset or run.delivery_count >= self.settings.delivery_count_limit:
            return RecordState.ARCHIVED
        return RecordState.AVAILABLE

    def note_archived(self, run: Run, member_id: str, reason: Reason | None = None) -> None:
        """Keep why the run is archived; without a reason, as `released_state` has decided."""
        if reason is None:
            reason = Reason.BELOW_START if run.last < self.start_offset else Reason.DELIVERY_LIMIT
        if self.archived is None:
            self.archived = ArchivedLog()
        self.archived.add(Archived(run.first, run.last, reason, run.delivery_count, member_id))


def add_batch(batches: list[StateBatch], run: Run) -> None:
    """Add the run's state to what is written, to the last batch where it goes on."""
    if batches:
        first, last, delivery_state, delivery_count = batches[-1]
        if (last + 1, delivery_state, delivery_count) == (run.first, run.state, run.delivery_count):
            batches[-1] = StateBatch(first, run.last, delivery_state, delivery_count)
            return
    batches.append(StateBatch(run.first, run.last, int(run.state), run.delivery_count))


def cut_at_start(state: ShareState, batch: Run, run: Run) -> list[Run]:
    """A run of the batch, as two runs if the start offset is inside of it."""
    first, last = run.first, run.last
    if not state.starts_inside(first, last):
        return [run]
    track_offsets(batch)
    return cut(batch, first, state.start_offset - 1) + cut(batch, state.start_offset, last)


def archive(state: ShareState, first: int, last: int, was: RecordState, reason: Reason, *, counts: bool) -> bool:
    """Archive offsets of the state `was` at once, without a write; return whether there were any."""
    any_archived = False
    for batch in state.touching(first, last):
        if batch.parts is None:
            if batch.state is not was:
                continue
            if not first <= batch.first <= batch.last <= last:
                track_offsets(batch)
        for run in [batch] if batch.parts is None else cut(batch, first, last):
            if run.state is was:
                member_id = run.member_id
                run.archive()
                state.note_archived(run, member_id, reason)
                any_archived = True
                if counts:
                    state.delivery_complete_count += run.last - run.first + 1
        join(batch, first, last)
    return any_archived


def move_start(state: ShareState) -> bool:
    """Move the start offset over what is done with, and forget it; return whether it moved."""
    if not _can_move_start(state):
        return False
    last_done, count = _last_done(state)
    if last_done is None:
        return False
    batches = state.batches
    if last_done == batches[-1].last:
        state.start_offset = state.end_offset = max(state.start_offset, last_done + 1)
        state.delivery_complete_count = 0
        batches.clear()
        return True
    index = state.floor(last_done)
    if last_done == batches[index].last:
        following = batches[index + 1].first
        if state.gap is not None and state.is_gap_open:
            following = min(following, state.gap.start)
        state.start_offset = max(state.start_offset, following)
        index += 1
    else:
        state.start_offset = max(state.start_offset, last_done + 1)
    del batches[:index]
    state.delivery_complete_count -= count
    return True


def _can_move_start(state: ShareState) -> bool:
    index = state.floor(state.start_offset)
    if index < 0:
        return False  # nothing is in flight, or a gap begins here
    batch = state.batches[index]
    start = min(state.start_offset, batch.last)  # after all of them, where the log's start moved it
    return runs_from(batch, start)[0].is_done


def _last_done(state: ShareState) -> tuple[int | None, int]:
    """The last offset before which all is done with, and how many of them count in `delivery_complete_count`."""
    last_done, count = None, 0
    for batch in state.batches:
        if state.gap is not None and state.is_gap_open and batch.last >= state.gap.start:
            break
        for run in runs_of(batch):
            if not run.is_done:
                return last_done, count
            last_done = run.last
            count += state.count_from_start(run.first, run.last)
    return last_done, count


def _first(run: Run) -> int:
    return run.first
