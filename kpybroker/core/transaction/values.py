"""Requests to the transaction state machine, its replies, its orders to write markers, and its settings.

Names are Kafka's. Where Kafka responds with nothing but an error code, the reply is an ErrorCode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

PRODUCER_EPOCH_MAX = 2**15 - 1

EPOCH_BUMP_FROM = 2
"""The level of `transaction.version`, and so the version of a client, from which on every end of a transaction bumps
the producer's epoch (KIP-890, part 2).
"""


class TransactionState(IntEnum):
    """Numbers as in the log; `title` is the name in DescribeTransactions and ListTransactions."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The state's name in responses, such as `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STATE_OF_TITLE = {state.title: state for state in TransactionState}


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """The `transaction.*` and `transactional.id.*` keys that the state machine uses, with Kafka 3.9's defaults."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000

    def allows_timeout(self, timeout_ms: int) -> bool:
        """Whether a producer may ask for this transaction timeout."""
        return 0 < timeout_ms <= self.transaction_max_timeout_ms


class ProducerIdAndEpoch(NamedTuple):
    """A producer id with one of its epochs."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """`expected` is the id and epoch that the producer already has (KIP-360).

    `new_producer_id` is a fresh id from the caller, for when one is needed (`TransactionMachine.needs_producer_id`).
    `level` is the cluster's `transaction.version`: an open transaction is aborted as it says.
    """

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    new_producer_id: int = NO_PRODUCER_ID
    owner: Owner = UNOWNED
    level: int = 0


@dataclass(frozen=True, slots=True)
class InitResult:
    """Replies to InitProducerId; id and epoch are -1 with an error."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """AddPartitionsToTxn, and AddOffsetsToTxn with a partition of `__consumer_offsets`. The reply is an ErrorCode.

    `version` is that of the producer's transactions: 2 where partition leaders add what it writes to.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[PartitionKey]
    owner: Owner = UNOWNED
    version: int = 0


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """The reply is an `EndResult`, once the decision is in the log; the markers follow.

    `version` is that of the producer's transactions, `new_producer_id` a fresh id for when one is needed.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    version: int = 0
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class EndResult:
    """Replies to EndTransaction; from version 2 on with what the producer's next transaction has, -1 with an error."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A row of DescribeTransactions; partitions in ascending order."""

    error: ErrorCode
    state: str = ""
    timeout_ms: int = 0
    start_timestamp_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: tuple[PartitionKey, ...] = ()


class TransactionOverview(NamedTuple):
    """A row of ListTransactions, with the values that filters use."""

    transactional_id: str
    producer_id: int
    state: TransactionState
    start_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An effect: write the transaction's end into these partitions and report it by `on_markers`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[PartitionKey, ...]
    version: int = 0


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """The result of `order`, one error a partition. A partition that no longer exists counts as written."""

    order: WriteMarkers
    errors: Mapping[PartitionKey, ErrorCode] = field(default_factory=dict)
