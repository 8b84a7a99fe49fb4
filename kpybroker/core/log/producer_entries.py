"""What a partition keeps of a producer: its last five batches, and its transaction.

`NO_OFFSET` (-1) means "no transaction".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE

NO_OFFSET = -1
NUM_BATCHES_TO_RETAIN = 5
SEQUENCE_MASK = 0x7FFFFFFF


class BatchMetadata(NamedTuple):
    """One of the last five batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The batch's first sequence, in int32 that wraps to 0."""
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        """The batch's first offset."""
        return self.last_offset - self.offset_delta


class CompletedTxn(NamedTuple):
    """A transaction that a marker ended. `last_offset` is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class TxnMetadata:
    """A transaction in progress, or completed and not yet below the high watermark."""

    __slots__ = ("first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int, last_offset: int = NO_OFFSET) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset


class ProducerStateEntry:
    """The state of one producer id. `batches` is oldest first, at most five."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int = NO_OFFSET,
        batches: Iterable[BatchMetadata] = (),
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = list(batches)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; NO_SEQUENCE without batches."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """The offset of the last record; NO_OFFSET without batches."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        """Last minus first offset of the last batch; 0 without batches."""
        return self.batches[-1].offset_delta if self.batches else 0

    def copy_without_batches(self) -> ProducerStateEntry:
        """A copy for an append to prepare its changes in."""
        return ProducerStateEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
        )

    def maybe_update_producer_epoch(self, producer_epoch: int) -> None:
        """A new epoch starts without batches."""
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def add_batch(self, batch: BatchMetadata) -> None:
        """Remember a batch and drop the oldest of more than five."""
        batches = self.batches
        if len(batches) == NUM_BATCHES_TO_RETAIN:
            del batches[0]
        batches.append(batch)

    def update(self, later: ProducerStateEntry) -> None:
        """Take over what an append prepared."""
        self.maybe_update_producer_epoch(later.producer_epoch)
        for batch in later.batches:
            self.add_batch(batch)
        self.coordinator_epoch = later.coordinator_epoch
        self.current_txn_first_offset = later.current_txn_first_offset
        self.last_timestamp = later.last_timestamp

    def find_duplicate(self, producer_epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The batch with exactly these sequences, if it is one of the last five of this epoch."""
        if producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None
