"""What goes in and out of the machine of a share partition. Names are Kafka's; offsets are inclusive at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kpybroker.core.share_coordinator.values import StateBatch
from kpybroker.wire.errors import ErrorCode


class RecordState(IntEnum):
    """What a record is to the group; numbers as in the state topic, where no record is ever `ACQUIRED`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again."""
        return self >= RecordState.ACKNOWLEDGED


class AcknowledgeType(IntEnum):
    """What a client says of a record, as in ShareFetch and ShareAcknowledge; `GAP` is an offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """The group's settings for each of its partitions, with Kafka 4.3.1's defaults.

    A group's configuration (`share.*`) is above the broker's (`group.share.*`); both may change while it runs.
    """

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    renew_acknowledge_enabled: bool = True


@dataclass(frozen=True, slots=True)
class PersistedState:
    """What ReadShareGroupState gave. The shell has put the reset's offset in place of a start offset of -1."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()


class FetchedBatch(NamedTuple):
    """The offsets of one record batch of the log, compacted ones included."""

    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the log gave when it was read from `fetch_offset` on: whole record batches, in order.

    `aborted` are those of them that a reader with `read_committed` does not get. The machine archives them.
    """

    fetch_offset: int
    batches: Sequence[FetchedBatch]
    aborted: Sequence[FetchedBatch] = ()


class Acquired(NamedTuple):
    """A row of AcquiredRecords in a response to ShareFetch."""

    first: int
    last: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """A row of AcknowledgementBatches: one type for all its offsets, or one for each."""

    first: int
    last: int
    types: Sequence[int]


@dataclass(frozen=True, slots=True)
class StateWrite:
    """An effect: persist this by WriteShareGroupState and report the result by `SharePartition.written`.

    Several may be in flight, and end in any order.
    """

    state_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    is_timeout: bool = False
    """Whether locks have run out: nothing is reverted when such a write fails."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: with an error nothing was changed and there is no write.

    Without a write it is complete. With one, the response waits for `SharePartition.written`, which gives its error.
    `wakes`: whether fetches that wait may find records now.
    """

    error: ErrorCode = ErrorCode.NONE
    write: StateWrite | None = None
    wakes: bool = False
    message: str | None = None
    """What is wrong, in Kafka's words; None where the error says it."""


_CLIENT_ERRORS = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


def client_error(error: ErrorCode) -> ErrorCode:
    """What a client receives when the share coordinator gave this error to a read or a write of the state."""
    return _CLIENT_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
