"""Ending deliveries: acknowledgements, sessions that end, locks that run out; and what the write makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kpybroker.core.share.archived import Reason
from kpybroker.core.share.runs import (
    ARCHIVED_BEFORE_THAT,
    NO_DEADLINE,
    Run,
    cut,
    join,
    runs_from,
    runs_of,
    track_offsets,
)
from kpybroker.core.share.state import ShareState, add_batch, archive, cut_at_start, move_start
from kpybroker.core.share.values import (
    Acknowledgement,
    AcknowledgeType,
    Outcome,
    RecordState,
    StateWrite,
)
from kpybroker.core.share_coordinator.values import StateBatch
from kpybroker.wire.errors import ErrorCode, KafkaError

STATE_OF_TYPE = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
NOT_IN_FLIGHT = "Batch record not found. The request batch offsets are not found in the cache."
FIRST_PAST_ACQUIRED = "Batch record not found. The first offset in request is past acquired records."
LAST_PAST_ACQUIRED = "Batch record not found. The last offset in request is past acquired records."
NO_RENEWALS = "Renewing acquisition locks is not enabled for the group."
OF_BATCH = (
    "The batch cannot be acknowledged. The batch is not in the acquired state.",
    "Member is not the owner of batch record",
)
OF_OFFSET = ("The offset cannot be acknowledged. The offset is not acquired.", "Member is not the owner of offset")
"""For offsets that no member holds, and for those of another one. All are the texts of Kafka's ``SharePartition``."""
REASON_OF_TYPE = {AcknowledgeType.GAP: Reason.NO_RECORD, AcknowledgeType.REJECT: Reason.REJECTED}


class Stretch(NamedTuple):
    """Neighbouring offsets that are acknowledged alike."""

    first: int
    last: int
    type: int


def acknowledge(state: ShareState, member_id: str, acknowledgements: Iterable[Acknowledgement], now: float) -> Outcome:
    """See `SharePartition.acknowledge`."""
    changed: list[Run] = []
    try:
        for one in acknowledgements:
            stretches = list(_stretches(one))
            if one.last >= state.start_offset:
                for batch in _batches_of(state, one):
                    if batch.last >= state.start_offset:
                        _acknowledge_batch(state, member_id, batch, stretches, changed, now)
    except KafkaError as refused:
        _revert(state, changed, now)
        return Outcome(refused.code, message=refused.message)
    return Outcome(write=_write(state, changed))


def _stretches(acknowledgement: Acknowledgement) -> Iterator[Stretch]:
    """One for all, or one for each change of the type; INVALID_REQUEST if a type is unknown."""
    first, last, types = acknowledgement
    if len(types) not in (1, last - first + 1) or not all(
        AcknowledgeType.GAP <= one <= AcknowledgeType.RENEW for one in types
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if len(types) == 1:
        yield Stretch(first, last, types[0])
        return
    for type_, group in groupby(types):
        next_first = first + sum(1 for _ in group)
        yield Stretch(first, next_first - 1, type_)
        first = next_first


def _batches_of(state: ShareState, acknowledgement: Acknowledgement) -> Sequence[Run]:
    """The batches that the acknowledgement is for, which have all of its offsets from the start offset on."""
    first, last, _ = acknowledgement
    floor = state.floor(first)
    if floor < 0:
        floor = state.floor(state.start_offset) if state.starts_inside(first, last) else -1
        if floor < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_IN_FLIGHT)
    batches = state.between(state.batches[floor].first, last)
    if batches[-1].last < last:
        text = FIRST_PAST_ACQUIRED if batches[-1].last < first else LAST_PAST_ACQUIRED
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return batches[0 if batches[0].last >= first else 1 :]


def _acknowledge_batch(
    state: ShareState, member_id: str, batch: Run, stretches: Sequence[Stretch], changed: list[Run], now: float
) -> None:
    first, last = max(stretches[0].first, state.start_offset), stretches[-1].last
    is_whole = first <= batch.first and batch.last <= last
    if batch.parts is None:
        _check_held(batch, member_id, OF_BATCH)
        if not is_whole or len(stretches) > 1:
            track_offsets(batch)
    for stretch in stretches:
        begin, end = max(first, stretch.first), stretch.last
        for run in runs_from(batch, begin):
            if run.first > end:
                break
            if run.last >= begin:
                _check_held(run, member_id, OF_OFFSET)  # before it is cut: what was changed so far is reverted as it is
                pieces = [batch] if batch.parts is None else cut(batch, max(begin, run.first), min(end, run.last))
                for piece in pieces:
                    _acknowledge_run(state, piece, stretch.type, changed, now)


def _acknowledge_run(state: ShareState, run: Run, type_: int, changed: list[Run], now: float) -> None:
    """A renewal counts at once, also of a request that is then refused for a record behind it."""
    if type_ != AcknowledgeType.RENEW:
        kind = AcknowledgeType(type_)
        _begin(state, run, STATE_OF_TYPE[kind], changed, REASON_OF_TYPE.get(kind))
    elif state.settings.renew_acknowledge_enabled:
        run.deadline = state.lock_until(now)
    else:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NO_RENEWALS)


def _check_held(run: Run, member_id: str, texts: tuple[str, str]) -> None:
    if run.state is not RecordState.ACQUIRED or run.member_id != member_id:
        text = texts[run.state is RecordState.ACQUIRED]
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, text)


def release_member(state: ShareState, member_id: str) -> Outcome:
    """See `SharePartition.release_member`."""
    changed: list[Run] = []
    for batch, run in _runs(state, lambda run: run.state is RecordState.ACQUIRED and run.member_id == member_id):
        for piece in cut_at_start(state, batch, run):
            _begin(state, piece, RecordState.AVAILABLE, changed)
    return Outcome(write=_write(state, changed))


def expire(state: ShareState, now: float) -> Outcome:
    """See `SharePartition.expire`. A run whose write is in flight is left to that."""
    if now < state.earliest_deadline:
        return Outcome()
    released: list[StateBatch] = []
    due = list(_runs(state, lambda run: run.deadline <= now and run.state is RecordState.ACQUIRED))
    for batch, run in due:
        for piece in cut_at_start(state, batch, run):
            member_id = piece.member_id
            piece.release(state.released_state(piece))
            add_batch(released, piece)
            if piece.state is RecordState.AVAILABLE:
                state.offer(piece.first)
            else:
                state.delivery_complete_count += state.count_from_start(piece.first, piece.last)
                state.note_archived(piece, member_id)
    _join(due)
    deadlines = (run.deadline for batch in state.batches for run in runs_of(batch) if run.deadline > now)
    state.earliest_deadline = min(deadlines, default=NO_DEADLINE)
    if not released:
        return Outcome()
    return Outcome(write=_state_write(state, released, is_timeout=True), wakes=True)


def written(state: ShareState, write: StateWrite, error: ErrorCode, now: float) -> Outcome:
    """See `SharePartition.written`."""
    if write.is_timeout:
        return Outcome(error, wakes=move_start(state))
    runs = [(batch, run) for ranges in write.batches for batch, run in _pending(state, ranges)]
    if error is not ErrorCode.NONE:
        _revert(state, [run for _, run in runs], now)
        _join(runs)
        return Outcome(error, wakes=any(run.is_available for _, run in runs))
    any_released = False
    for _, run in runs:
        run.commit()
        if run.is_available:
            state.offer(run.first)
            any_released = True
    _join(runs)
    return Outcome(wakes=move_start(state) or any_released)


def _runs(state: ShareState, wanted: Callable[[Run], bool]) -> Iterator[tuple[Run, Run]]:
    for batch in state.batches:
        for run in list(runs_of(batch)):
            if wanted(run):
                yield batch, run


def _pending(state: ShareState, written_batch: StateBatch) -> Iterator[tuple[Run, Run]]:
    """The runs whose write has ended. Some may be forgotten by now."""
    for batch in state.touching(written_batch.first, written_batch.last):
        for run in [batch] if batch.parts is None else cut(batch, written_batch.first, written_batch.last):
            if run.pending is not None:
                yield batch, run


def _join(runs: Sequence[tuple[Run, Run]]) -> None:
    for batch, found in groupby(runs, key=lambda pair: pair[0]):
        ranges = [run for _, run in found]
        join(batch, ranges[0].first, ranges[-1].last)


def _begin(state: ShareState, run: Run, wanted: RecordState, changed: list[Run], reason: Reason | None = None) -> None:
    """Begin the run's transition; a record that is released may be archived instead."""
    member_id = run.member_id
    run.begin(state.released_state(run) if wanted is RecordState.AVAILABLE else wanted)
    changed.append(run)
    if run.state.is_terminal:
        state.delivery_complete_count += state.count_from_start(run.first, run.last)
        if run.state is RecordState.ARCHIVED:
            state.note_archived(run, member_id, reason)


def _revert(state: ShareState, runs: Iterable[Run], now: float) -> None:
    for run in runs:
        was_terminal = run.state.is_terminal
        member_id = run.pending
        if state.archived is not None and member_id != ARCHIVED_BEFORE_THAT:
            state.archived.withdraw(run.first, run.last)
        run.revert(now, state.settings.delivery_count_limit)
        if run.state is RecordState.ARCHIVED and member_id:
            state.note_archived(run, member_id, Reason.DELIVERY_LIMIT)
        if run.is_available:
            state.offer(run.first)
        change = int(run.state.is_terminal) - int(was_terminal)
        state.delivery_complete_count += change * state.count_from_start(run.first, run.last)
    if state.batches:  # the log's start may have passed some that are available now
        first, last = state.batches[0].first, state.start_offset - 1
        archive(state, first, last, RecordState.AVAILABLE, Reason.BELOW_START, counts=False)


def _write(state: ShareState, changed: Iterable[Run]) -> StateWrite | None:
    batches: list[StateBatch] = []
    for run in changed:
        add_batch(batches, run)
    return _state_write(state, batches, is_timeout=False) if batches else None


def _state_write(state: ShareState, batches: Sequence[StateBatch], is_timeout: bool) -> StateWrite:
    return StateWrite(
        state.state_epoch, state.start_offset, state.delivery_complete_count, tuple(batches), is_timeout=is_timeout
    )
