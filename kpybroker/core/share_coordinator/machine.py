"""The share coordinator's state machine: every share partition of one partition of `__share_group_state`.

Rules, all of Kafka's ``ShareCoordinatorShard`` 4.3
- `handle` takes one `StateRequest`. Whatever it writes is one record, and its reply waits until that is committed. One
  that writes nothing waits until what it has read is.
- Only `replay` changes state. A snapshot replaces it, an update is put over it, and a tombstone removes it.
- The highest leader epoch that has read, and the highest state epoch that was initialized, fence what is older. A write
  is compared with both and changes neither.
- After `updates_per_snapshot` updates, the next change is written as a snapshot; and every state that has had none for
  long is (`snapshot_cold`), so that the log before the oldest of the latest snapshots is redundant.

Differs from Kafka in two ways. A record that is in the log and that replicas take too long to confirm stays in the
state: Kafka reverts it there, and keeps it in the log. A batch whose end is before its start is refused.

Not here: which partition a key belongs to, API versions, authorization, deleting what is redundant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from kpybroker.core.machine import Now, Outcome, Step, Ticket
from kpybroker.core.share_coordinator.batches import combine
from kpybroker.core.share_coordinator.records import ShareRecord, ShareSnapshot, ShareState, ShareUpdate
from kpybroker.core.share_coordinator.values import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_EPOCH,
    UNINITIALIZED_START_OFFSET,
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    SharePartitionKey,
    StateResult,
    SummaryResult,
    WriteState,
    coordinator_key,
)
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget

UNINITIALIZED_EPOCHS = 0
"""Of the summary of a state that there is not."""
COLD_BATCH_BYTES_MAX = 500_000
"""Of the snapshots of one write; Kafka puts all into one, which may be too large for the log."""
SNAPSHOT_OVERHEAD = 150
STATE_BATCH_BYTES = 20

NEGATIVE_PARTITION = "The partition id cannot be a negative number."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."
INVERTED_BATCH = "The last offset of a state batch is before its first offset."

# What a failed append means to a caller (CoordinatorOperationExceptionHelper).
_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

Asked = InitializeState | ReadState | WriteState | DeleteState
Result = StateResult | ReadResult | SummaryResult
ShareOutcome = Outcome[ShareRecord, "ShareStep"]


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """The `share.coordinator.*` keys that the state machine uses, with Kafka's defaults."""

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class StateRequest:
    """What is asked about one share partition; `topic_partitions` is how many its topic has, 0 if it does not exist."""

    group_id: str
    asked: Asked
    topic_partitions: int
    is_summary: bool = False
    """Whether a ReadState wants the summary."""

    @property
    def key(self) -> SharePartitionKey:
        """What it is about."""
        return SharePartitionKey(self.group_id, self.asked.topic_id, self.asked.partition)

    def result(self, error: ErrorCode, message: str | None = None) -> Result:
        """A result with this error, of the kind that the request has."""
        asked = self.asked
        if error is not ErrorCode.NONE and message is None:
            message = error.message
        if not isinstance(asked, ReadState):
            return StateResult(asked.topic_id, asked.partition, error, message)
        if self.is_summary:
            return SummaryResult(asked.topic_id, asked.partition, error, message)
        return ReadResult(asked.topic_id, asked.partition, error, message)

    def failed(self, error: ErrorCode) -> Result:
        """The result if its record could not be appended or committed, with Kafka's words for its caller."""
        code = _APPEND_ERRORS.get(error, error)
        what = {InitializeState: "initialize", ReadState: "read", WriteState: "write", DeleteState: "delete"}
        summary = " summary" if self.is_summary else ""
        return self.result(code, f"Unable to {what[type(self.asked)]} share group state{summary}: {error.message}")


class ShareStep(Step[ShareRecord]):
    """A step of the share coordinator's state machine; it adds nothing."""

    __slots__ = ()


class Tracked:
    """A share partition: its state, the epochs that fence, and how old its latest snapshot is."""

    __slots__ = ("leader_epoch_max", "snapshot_offset", "state", "state_epoch_max", "updates")

    def __init__(self, state: ShareState) -> None:
        self.state = state
        self.leader_epoch_max = state.leader_epoch
        self.state_epoch_max: int | None = None
        self.updates = 0
        self.snapshot_offset: int | None = None


class ShareCoordinatorMachine:
    """One partition of the topic. It has no timers: what is done by time are `snapshot_cold` and `redundant_offset`."""

    __slots__ = ("_config", "_end_offset", "_snapshot_end", "states")

    def __init__(self, config: ShareCoordinatorConfig) -> None:
        self._config = config
        self._end_offset = 0
        self._snapshot_end: int | None = None
        self.states: dict[SharePartitionKey, Tracked] = {}

    # --- requests

    def handle(self, request: StateRequest, ticket: Ticket, now: Now) -> ShareOutcome:
        """Handle one request; the reply to `ticket` is one result, here or in a later outcome."""
        step = ShareStep(now)
        refusal = self._refusal(request, step)
        if refusal is not None:
            self._reply_when_committed(step, ticket, request, refusal)
            return step.outcome
        asked = request.asked
        match asked:
            case InitializeState():
                self._write(step, ticket, request, self._initialized(request.key, asked, now))
            case WriteState():
                self._write(step, ticket, request, self._changed(request.key, asked, now))
            case ReadState():
                self._read(step, ticket, request, asked)
            case DeleteState():
                self._delete(step, ticket, request)
            case _:
                assert_never(asked)
        return step.outcome

    def _refusal(self, request: StateRequest, step: ShareStep) -> Result | None:
        """Kafka's checks, in its order."""
        asked, key = request.asked, request.key
        tracked = self.states.get(key)
        if asked.partition < 0:
            return request.result(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if tracked is None and isinstance(asked, WriteState):
            return request.result(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if tracked is None and isinstance(asked, ReadState) and not request.is_summary:
            step.warn(f"Read on uninitialized share partition {coordinator_key(key)}")
            return request.result(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if tracked is not None and not request.is_summary:
            fenced = _fenced_by(tracked, asked)
            if fenced is not None:
                step.warn(
                    f"A request about share partition {coordinator_key(key)} is refused with {fenced.name}: {asked}"
                )
                return request.result(fenced)
        if asked.partition >= request.topic_partitions:
            return request.result(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if isinstance(asked, WriteState) and any(batch.last < batch.first for batch in asked.state_batches):
            return request.result(ErrorCode.INVALID_REQUEST, INVERTED_BATCH)
        return None

    def _read(self, step: ShareStep, ticket: Ticket, request: StateRequest, asked: ReadState) -> None:
        tracked = self.states.get(request.key)
        result = _summary(asked, tracked) if request.is_summary else _state(asked, tracked)
        if (
            request.is_summary
            or tracked is None
            or asked.leader_epoch in (UNINITIALIZED_EPOCH, tracked.leader_epoch_max)
        ):
            self._reply_when_committed(step, ticket, request, result)
            return
        step.info(f"Share partition {coordinator_key(request.key)} is read by its leader of epoch {asked.leader_epoch}")
        state = tracked.state
        change = WriteState(
            asked.topic_id,
            asked.partition,
            state_epoch=state.state_epoch,
            leader_epoch=asked.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        record = self._changed(request.key, change, step.now, leader_epoch=asked.leader_epoch)
        self._write(step, ticket, request, record, result)

    def _delete(self, step: ShareStep, ticket: Ticket, request: StateRequest) -> None:
        if request.key in self.states:
            self._write(step, ticket, request, ShareSnapshot(request.key, None))
        else:
            step.warn(f"Attempted to delete non-existent share partition {coordinator_key(request.key)}.")
            self._reply_when_committed(step, ticket, request, request.result(ErrorCode.NONE))

    def _write(
        self, step: ShareStep, ticket: Ticket, request: StateRequest, record: ShareRecord, result: Result | None = None
    ) -> None:
        done = partial(_reply, ticket=ticket, request=request, result=result or request.result(ErrorCode.NONE))
        step.write((record,), done)

    def _reply_when_committed(self, step: ShareStep, ticket: Ticket, request: StateRequest, result: Result) -> None:
        """What was read may be uncommitted."""
        step.read(self._end_offset, partial(_reply, ticket=ticket, request=request, result=result))

    # --- records

    def _initialized(self, key: SharePartitionKey, asked: InitializeState, now: Now) -> ShareSnapshot:
        tracked = self.states.get(key)
        is_decided = asked.start_offset != UNINITIALIZED_START_OFFSET
        state = ShareState(
            snapshot_epoch=0 if tracked is None else tracked.state.snapshot_epoch + 1,
            state_epoch=asked.state_epoch,
            leader_epoch=0,
            start_offset=asked.start_offset,
            delivery_complete_count=0 if is_decided else UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
            batches=(),
            create_timestamp_ms=now.wall_ms,
            write_timestamp_ms=now.wall_ms,
        )
        return ShareSnapshot(key, state)

    def _changed(
        self, key: SharePartitionKey, change: WriteState, now: Now, leader_epoch: int | None = None
    ) -> ShareRecord:
        """An update, or a snapshot if there have been enough of them. A write keeps the leader epoch of the state."""
        tracked = self.states[key]
        state = tracked.state
        epoch = state.leader_epoch if leader_epoch is None else leader_epoch
        if tracked.updates < self._config.updates_per_snapshot:
            return ShareUpdate(
                key,
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=epoch,
                start_offset=change.start_offset,
                delivery_complete_count=change.delivery_complete_count,
                batches=combine((), change.state_batches, change.start_offset),
            )
        start_offset = _first_known(change.start_offset, state.start_offset)
        return ShareSnapshot(
            key,
            ShareState(
                snapshot_epoch=state.snapshot_epoch + 1,
                state_epoch=state.state_epoch,
                leader_epoch=epoch,
                start_offset=start_offset,
                delivery_complete_count=change.delivery_complete_count,
                batches=combine(state.batches, change.state_batches, start_offset),
                create_timestamp_ms=now.wall_ms,
                write_timestamp_ms=now.wall_ms,
            ),
        )

    def replay(self, record: ShareRecord, offset: int, producer_id: int = -1) -> None:
        """Apply a record that is in the log."""
        self._end_offset = offset + 1
        if isinstance(record, ShareUpdate):
            self._replay_update(record)
            return
        self._snapshot_end = offset
        if record.state is None:
            self.states.pop(record.key, None)
            return
        state = record.state
        tracked = self.states.get(record.key)
        if tracked is None:
            tracked = self.states[record.key] = Tracked(state)
        tracked.state = state
        tracked.leader_epoch_max = max(tracked.leader_epoch_max, state.leader_epoch)
        tracked.state_epoch_max = _higher(tracked.state_epoch_max, state.state_epoch)
        tracked.snapshot_offset = offset
        if tracked.updates >= self._config.updates_per_snapshot:
            tracked.updates = 0

    def _replay_update(self, record: ShareUpdate) -> None:
        tracked = self.states.get(record.key)
        if tracked is None:  # the log begins after its snapshot
            state = ShareState(
                record.snapshot_epoch,
                state_epoch=0,
                leader_epoch=record.leader_epoch,
                start_offset=record.start_offset,
                delivery_complete_count=record.delivery_complete_count,
                batches=combine((), record.batches, record.start_offset),
                create_timestamp_ms=0,
                write_timestamp_ms=0,
            )
            tracked = self.states[record.key] = Tracked(state)
        else:
            state = tracked.state
            start_offset = _first_known(record.start_offset, state.start_offset)
            tracked.state = replace(
                state,
                leader_epoch=_first_known(record.leader_epoch, state.leader_epoch),
                start_offset=start_offset,
                delivery_complete_count=record.delivery_complete_count,
                batches=combine(state.batches, record.batches, start_offset),
            )
        tracked.leader_epoch_max = max(tracked.leader_epoch_max, record.leader_epoch)
        tracked.updates += 1

    # --- by time, and by what happens elsewhere

    def snapshot_cold(self, now: Now) -> ShareOutcome:
        """Write a snapshot of each state whose latest one is as old as the interval; of none if all are such ones.

        A state that was snapshotted for its age has two timestamps, and all of them having such means that nothing has
        happened since.
        """
        step = ShareStep(now)
        if all(one.state.create_timestamp_ms != one.state.write_timestamp_ms for one in self.states.values()):
            return step.outcome
        oldest_ms = now.wall_ms - self._config.cold_snapshot_interval_ms
        cold = [
            ShareSnapshot(
                key,
                replace(one.state, snapshot_epoch=one.state.snapshot_epoch + 1, write_timestamp_ms=now.wall_ms),
            )
            for key, one in self.states.items()
            if one.state.write_timestamp_ms <= oldest_ms
        ]
        _write_all(step, cold, "snapshots of cold share partitions")
        return step.outcome

    def delete_topics(self, topic_ids: Collection[bytes], now: Now) -> ShareOutcome:
        """Forget the states of the partitions of deleted topics."""
        step = ShareStep(now)
        gone = [ShareSnapshot(key, None) for key in self.states if key.topic_id in topic_ids]
        _write_all(step, gone, "tombstones of share partitions of deleted topics")
        return step.outcome

    @property
    def redundant_offset(self) -> int | None:
        """What is before this offset of the log is in later snapshots; None if that is nothing."""
        offsets = [one.snapshot_offset for one in self.states.values() if one.snapshot_offset is not None]
        end = min(offsets) if offsets else self._snapshot_end
        return end or None

    # --- what a shard asks of every machine

    @property
    def deadline(self) -> float | None:
        """None: there are no timers."""
        return None

    def expire(self, now: Now) -> ShareOutcome:
        """Nothing: there are no timers."""
        return Outcome()

    def settle(self, done: Callable[[ShareStep, ErrorCode], None], error: ErrorCode, now: Now) -> ShareOutcome:
        """A record is committed, or failed."""
        step = ShareStep(now)
        done(step, error)
        return step.outcome

    def ids(self) -> list[str]:
        """The keys of all share partitions, as FindCoordinator has them."""
        return [coordinator_key(key) for key in self.states]

    def activate(self, ids: Iterable[str], now: Now, budget: WorkBudget) -> Generator[None, None, ShareOutcome]:
        """Nothing to start."""
        yield from ()
        return Outcome()

    def unload(self, now: Now) -> ShareOutcome:
        """Nothing waits but for records, whose wait the shard ends."""
        return Outcome()


def _reply(step: ShareStep, error: ErrorCode, *, ticket: Ticket, request: StateRequest, result: Result) -> None:
    step.reply(ticket, result if error is ErrorCode.NONE else request.failed(error))


def _write_all(step: ShareStep, records: list[ShareSnapshot], what: str) -> None:
    """In batches that fit into any log."""

    def done(settled: ShareStep, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            settled.warn(f"Cannot write {what}: {error.name}")

    some: list[ShareSnapshot] = []
    size = 0
    for record in records:
        some.append(record)
        size += SNAPSHOT_OVERHEAD + len(record.key.group_id.encode(errors="replace"))
        size += 0 if record.state is None else STATE_BATCH_BYTES * len(record.state.batches)
        if size >= COLD_BATCH_BYTES_MAX:
            step.write(some, done)
            some, size = [], 0
    if some:
        step.write(some, done)


def _fenced_by(tracked: Tracked, asked: Asked) -> ErrorCode | None:
    leader_epoch = asked.leader_epoch if isinstance(asked, ReadState | WriteState) else UNINITIALIZED_EPOCH
    state_epoch = asked.state_epoch if isinstance(asked, InitializeState | WriteState) else UNINITIALIZED_EPOCH
    if leader_epoch != UNINITIALIZED_EPOCH and leader_epoch < tracked.leader_epoch_max:
        return ErrorCode.FENCED_LEADER_EPOCH
    seen = tracked.state_epoch_max
    if state_epoch != UNINITIALIZED_EPOCH and seen is not None and state_epoch < seen:
        return ErrorCode.FENCED_STATE_EPOCH
    return None


def _state(asked: ReadState, tracked: Tracked | None) -> ReadResult:
    assert tracked is not None, "refused before"
    state = tracked.state
    return ReadResult(
        asked.topic_id,
        asked.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=state.batches,
    )


def _summary(asked: ReadState, tracked: Tracked | None) -> SummaryResult:
    if tracked is None:
        return SummaryResult(
            asked.topic_id,
            asked.partition,
            state_epoch=UNINITIALIZED_EPOCHS,
            leader_epoch=UNINITIALIZED_EPOCHS,
            start_offset=UNINITIALIZED_START_OFFSET,
        )
    state = tracked.state
    return SummaryResult(
        asked.topic_id,
        asked.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


def _first_known(one: int, other: int) -> int:
    return other if one == -1 else one


def _higher(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)
