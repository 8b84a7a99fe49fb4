"""The machine of a share partition: one group's state of one partition's records, at the partition's leader.

The shell

1. reads the log from `next_fetch_offset`, one fetch at a time, while `can_acquire`, and gives what it read to
   `acquire`, whose rows go into the response;
2. persists each `StateWrite` that a call returns, and reports the result by `written`;
3. calls `expire` at `next_deadline`, and `advance` when the log's start offset is above `start_offset`.

What it deliberately does not do: sessions, long polling, telling members apart by more than their id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpybroker.core.share import acknowledging
from kpybroker.core.share.acquiring import Acquisition, acquire
from kpybroker.core.share.archived import ArchivedLog, Reason
from kpybroker.core.share.runs import NO_DEADLINE, Run, runs_from, runs_of
from kpybroker.core.share.state import NOTHING_AVAILABLE, GapWindow, ShareState, archive, move_start
from kpybroker.core.share.values import (
    Acknowledgement,
    Acquired,
    Fetched,
    Outcome,
    PersistedState,
    RecordState,
    ShareSettings,
    StateWrite,
    client_error,
)
from kpybroker.wire.errors import ErrorCode, KafkaError


class SharePartition:
    """Times are seconds of a monotonic clock, and never go back."""

    __slots__ = ("_state",)

    def __init__(self, start: PersistedState, settings: ShareSettings) -> None:
        """Raise KafkaError UNKNOWN_SERVER_ERROR, as Kafka, if the state's batches contradict themselves."""
        self._state = _loaded(start, settings)

    @property
    def settings(self) -> ShareSettings:
        """What counts from now on; may be replaced at any time."""
        return self._state.settings

    @settings.setter
    def settings(self, settings: ShareSettings) -> None:
        self._state.settings = settings

    @property
    def state_epoch(self) -> int:
        """The epoch of the group at which the state was initialized."""
        return self._state.state_epoch

    @property
    def start_offset(self) -> int:
        """The first offset that is not yet done with (accepted, rejected or given up)."""
        return self._state.start_offset

    @property
    def end_offset(self) -> int:
        """The last offset that was ever acquired; the next one to read if there is none."""
        return self._state.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many offsets from the start offset on are done with: the lag leaves them out."""
        return self._state.delivery_complete_count

    @property
    def in_flight(self) -> int:
        """How many offsets count for `partition_max_record_locks`: from the start offset to the end offset."""
        return self._state.in_flight

    @property
    def batch_count(self) -> int:
        """How many batches are in flight."""
        return len(self._state.batches)

    @property
    def next_deadline(self) -> float | None:
        """When `expire` must be called next; it may find nothing then."""
        earliest = self._state.earliest_deadline
        return None if earliest == NO_DEADLINE else earliest

    def runs(self) -> Iterator[Run]:
        """All that is in flight, in order, for those who look at it. Do not change it."""
        for batch in self._state.batches:
            yield from runs_of(batch)

    @property
    def archived(self) -> ArchivedLog | None:
        """Why the last ones were archived; None before there are any. May be set to what is known from before."""
        return self._state.archived

    @archived.setter
    def archived(self, archived: ArchivedLog | None) -> None:
        self._state.archived = archived

    def next_fetch_offset(self) -> int:
        """Where to read the log: the first available offset, or what follows all that was acquired."""
        state = self._state
        has_room_after = bool(state.batches) and state.start_offset <= state.batches[-1].last
        if has_room_after and (state.available_from <= state.end_offset or state.is_gap_open):
            available = _first_available(state)
            if available is not None:
                return available
        state.available_from = NOTHING_AVAILABLE
        return state.end_offset + 1 if has_room_after else state.end_offset

    def can_acquire(self) -> bool:
        """Whether a fetch may be made: something was released, or the limit of records in flight is not reached."""
        state = self._state
        if self.next_fetch_offset() != state.end_offset + 1:
            return True
        if state.in_flight >= state.settings.partition_max_record_locks and all(run.is_done for run in self.runs()):
            move_start(state)  # all was archived when it was acquired: no write follows that would do it
        return state.in_flight < state.settings.partition_max_record_locks

    def acquire(
        self, member_id: str, fetched: Fetched, max_records: int, batch_size: int, strict: bool, now: float
    ) -> list[Acquired]:
        """Lock available records of what was read for the member, by increasing offset.

        `max_records` is rounded up to whole record batches unless `strict` (acquire mode ``record_limit``); rows of
        new records have about `batch_size` offsets, cut between record batches.
        """
        wish = Acquisition(member_id, fetched.batches, batch_size, strict, self._state.lock_until(now))
        return acquire(self._state, wish, fetched, max_records)

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], now: float) -> Outcome:
        """Accept, release, reject or renew what the member holds, all or nothing (a renewal stays).

        INVALID_RECORD_STATE if it does not hold one of them, INVALID_REQUEST for offsets after all that was acquired
        or a type that is unknown. `validation.validate` is called before, on what a client sent.
        """
        return acknowledging.acknowledge(self._state, member_id, acknowledgements, now)

    def release_member(self, member_id: str) -> Outcome:
        """Release all that the member holds: its session ended, or its connection was lost."""
        return acknowledging.release_member(self._state, member_id)

    def expire(self, now: float) -> Outcome:
        """Release what is locked until `now` or earlier."""
        return acknowledging.expire(self._state, now)

    def advance(self, log_start_offset: int) -> bool:
        """The log now starts here: what is available below is archived. Return whether waiting fetches may go on."""
        state = self._state
        if log_start_offset <= state.start_offset:
            return False
        if state.batches:
            below = [run for run in self.runs() if run.first < log_start_offset and run.state.is_terminal]
            state.delivery_complete_count -= sum(
                state.count_from_start(run.first, min(run.last, log_start_offset - 1)) for run in below
            )
            archive(
                state,
                state.start_offset,
                log_start_offset - 1,
                RecordState.AVAILABLE,
                Reason.BELOW_START,
                counts=False,
            )
            state.end_offset = max(state.end_offset, log_start_offset)
            if state.gap is not None:
                state.gap.start = max(state.gap.start, log_start_offset)
        else:
            state.end_offset, state.delivery_complete_count = log_start_offset, 0
        state.start_offset = log_start_offset
        return True

    def written(self, write: StateWrite, error: ErrorCode, now: float) -> Outcome:
        """A write ended: what it changed is final, or reverted if it failed (`error` is then the response's).

        With an error, pass the persister's; the outcome has the one that Kafka sends to the client.
        """
        return acknowledging.written(self._state, write, client_error(error), now)


def _loaded(start: PersistedState, settings: ShareSettings) -> ShareState:
    """What was in flight is available again: who held it is not persisted."""
    state = ShareState(settings, start.state_epoch, start.start_offset, start.start_offset)
    gap_start, next_offset = None, start.start_offset
    for first, last, delivery_state, delivery_count in start.batches:
        if not start.start_offset <= first <= last:
            text = f"The state has offsets {first} to {last} and the start offset {start.start_offset}."
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        if gap_start is None and first > next_offset:
            gap_start = next_offset
        next_offset = last + 1
        state.put(Run(first, last, RecordState(delivery_state), delivery_count))
        if state.batches[-1].state.is_terminal:
            state.delivery_complete_count += last - first + 1
    if state.batches:
        state.available_from = state.start_offset
        state.end_offset = state.batches[-1].last
        state.gap = None if gap_start is None else GapWindow(state.end_offset, gap_start)
        move_start(state)
    return state


def _first_available(state: ShareState) -> int | None:
    """The first offset that is available, or was not acquired yet between batches that were persisted."""
    gap_start = state.gap.start if state.gap is not None and state.is_gap_open else None
    begin = 0 if gap_start is not None else max(0, state.floor(state.available_from))
    for batch in state.batches[begin:]:
        if gap_start is not None:
            if batch.first > gap_start:
                return gap_start
            gap_start = max(batch.last + 1, gap_start)
        for run in runs_from(batch, state.available_from):
            if run.is_available:
                state.available_from = run.first
                return run.first
    return None
