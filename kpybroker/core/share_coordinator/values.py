"""What is asked of a share coordinator, what it replies, and how its users reach one: `SharePersister`.

Names are Kafka's. A *share partition* is one partition of a topic as one share group consumes it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.znodes.jackson import ZnodeError
from kpybroker.wire.znodes.topics import decode_uuid, encode_uuid

UNINITIALIZED_EPOCH = -1
"""A state or leader epoch that the request does not know, and so is not compared."""
UNINITIALIZED_START_OFFSET = -1
"""The start offset of a share partition that has none yet: `share.auto.offset.reset` decides."""
UNINITIALIZED_DELIVERY_COMPLETE_COUNT = -1


class SharePartitionKey(NamedTuple):
    """What the state is of. `topic_id` has 16 raw bytes."""

    group_id: str
    topic_id: bytes
    partition: int


def coordinator_key(key: SharePartitionKey) -> str:
    """Its name in FindCoordinator; a hash of it is the partition of `__share_group_state` that has its state."""
    return f"{key.group_id}:{encode_uuid(key.topic_id)}:{key.partition}"


@lru_cache(maxsize=128)
def state_partition(key: SharePartitionKey, partitions: int) -> int:
    """The partition of `__share_group_state`, which has so many, that has its state."""
    return coordinator_partition(coordinator_key(key), partitions)


def check_coordinator_key(text: str) -> None:
    """Raises INVALID_REQUEST for what is not the name of a share partition; a group's id may have colons."""
    group_id, _, rest = text.rpartition(":")[0].rpartition(":")
    try:
        decode_uuid(rest)
        is_valid = bool(group_id.strip()) and int(text.rpartition(":")[2]) <= INT32_MAX
    except (ZnodeError, ValueError):
        is_valid = False
    if not is_valid:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid key format: expected groupId:topicId:partition: {text}")


class StateBatch(NamedTuple):
    """One state of all offsets from `first` to `last`: 0 available, 2 acknowledged or 4 archived."""

    first: int
    last: int
    delivery_state: int
    delivery_count: int


# --- what is asked, for one partition of a group


@dataclass(frozen=True, slots=True)
class InitializeState:
    """Begin the state: what there was before is gone. `start_offset` is -1 if it is decided at the first fetch."""

    topic_id: bytes
    partition: int
    state_epoch: int
    start_offset: int = UNINITIALIZED_START_OFFSET


@dataclass(frozen=True, slots=True)
class ReadState:
    """Read the state, or its summary, as the leader of `leader_epoch`; -1 by someone who is not the leader."""

    topic_id: bytes
    partition: int
    leader_epoch: int = UNINITIALIZED_EPOCH


@dataclass(frozen=True, slots=True)
class WriteState:
    """Change the state of the offsets in `state_batches`, and move the start offset unless it is -1.

    Batches of one request may overlap: where they do, the one with the higher delivery count wins, or of equal ones
    that with the higher state.
    """

    topic_id: bytes
    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT
    """How many offsets from the start offset on are acknowledged or archived (KIP-1226)."""
    state_batches: tuple[StateBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteState:
    """Forget the state."""

    topic_id: bytes
    partition: int


# --- results, each for one partition


@dataclass(frozen=True, slots=True)
class StateResult:
    """How an initialization, a write or a deletion ended."""

    topic_id: bytes
    partition: int
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The state, if there was no error. `state_batches` are in order of their offsets and do not overlap."""

    topic_id: bytes
    partition: int
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: tuple[StateBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The start offset and epochs, if there was no error."""

    topic_id: bytes
    partition: int
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = UNINITIALIZED_DELIVERY_COMPLETE_COUNT


class SharePersister(Protocol):
    """Asks the share coordinators of a group's partitions, wherever they are, as Kafka's ``DefaultStatePersister``.

    Each method returns one result a partition, in the order of the request, when all of them are known. It raises
    nothing but what cancels a task: errors are in the results, each partition's own. Every error that passes by itself
    (a coordinator that is loading, that has moved, that cannot be reached) has been retried with a backoff before it is
    in a result.

    What every method may have as an error, after its retries: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
    NOT_COORDINATOR; INVALID_REQUEST for a negative partition; UNKNOWN_TOPIC_OR_PARTITION if the topic is deleted;
    UNKNOWN_SERVER_ERROR. Requests for one partition are not reordered by a caller that waits for each result.
    """

    async def initialize(self, group_id: str, partitions: Sequence[InitializeState]) -> list[StateResult]:
        """Begin the states, as the group's coordinator. FENCED_STATE_EPOCH if a later one was seen."""

    async def read(self, group_id: str, partitions: Sequence[ReadState]) -> list[ReadResult]:
        """Read the states, as the partitions' leader, whose epoch is kept and fences those before it.

        FENCED_LEADER_EPOCH if a later leader has read or written; INVALID_REQUEST if the state was not initialized.
        """

    async def read_summary(self, group_id: str, partitions: Sequence[ReadState]) -> list[SummaryResult]:
        """Read start offsets, for descriptions and lags: writes nothing.

        No error for a state that was not initialized: its start offset is -1.
        """

    def write(self, group_id: str, partitions: Sequence[WriteState]) -> Generator[Any, Any, list[StateResult]]:
        """Steps that change states, as the partitions' leader; the result is there when it is committed.

        FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH if later ones were seen; INVALID_REQUEST if the state was not
        initialized.
        """

    async def delete(self, group_id: str, partitions: Sequence[DeleteState]) -> list[StateResult]:
        """Forget states, as the group's coordinator; no error for one that there is not."""
