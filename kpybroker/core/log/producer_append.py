"""Whether a producer may append a batch or a marker, and what that changes: Kafka's ProducerAppendInfo.

A batch of an idempotent producer is appended only in sequence, and a lower producer epoch is fenced.
"""

from __future__ import annotations

from enum import Enum

from kpybroker.core.log.producer_entries import (
    NO_OFFSET,
    SEQUENCE_MASK,
    BatchMetadata,
    CompletedTxn,
    ProducerStateEntry,
    TxnMetadata,
)
from kpybroker.core.log.verification import VerificationEntry
from kpybroker.wire.constants import INT16_MAX
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, BatchHeader
from kpybroker.wire.records.control import EndTransactionMarker

STRICT_MARKERS_FROM = 2
"""The version of transactions from which on a marker has a later epoch than the batches that it ends (KIP-890)."""


class AppendOrigin(Enum):
    """The source of an append, which decides how much is checked (Kafka's AppendOrigin, without Raft)."""

    REPLICATION = "REPLICATION"  # already validated by the leader
    COORDINATOR = "COORDINATOR"  # epochs, but no sequences
    CLIENT = "CLIENT"  # everything


class ProducerAppendInfo:
    """Batches of one producer in one append: checked one after the other, applied together."""

    __slots__ = ("_current", "_origin", "_partition", "_verification", "started_transactions", "updated")

    def __init__(
        self,
        partition: object,
        current: ProducerStateEntry,
        origin: AppendOrigin,
        verification: VerificationEntry | None,
    ) -> None:
        self._partition = partition
        self._current = current
        self._origin = origin
        self._verification = verification
        self.updated = current.copy_without_batches()
        self.started_transactions: list[TxnMetadata] = []

    @property
    def producer_id(self) -> int:
        """The producer whose batches these are."""
        return self.updated.producer_id

    def append_data(self, header: BatchHeader) -> None:
        """Check one batch. Raises INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE."""
        epoch, first_offset, last_offset = header.producer_epoch, header.base_offset, header.last_offset
        self._check_producer_epoch(epoch, first_offset)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(epoch, header.base_sequence, first_offset)
        updated = self.updated
        updated.maybe_update_producer_epoch(epoch)
        updated.add_batch(
            BatchMetadata(header.last_sequence, last_offset, last_offset - first_offset, header.max_timestamp)
        )
        updated.last_timestamp = header.max_timestamp
        in_transaction = updated.current_txn_first_offset != NO_OFFSET
        if in_transaction and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {self.producer_id} at offset {first_offset} in "
                f"partition {self._partition}",
            )
        if header.is_transactional and not in_transaction:
            updated.current_txn_first_offset = first_offset
            self.started_transactions.append(TxnMetadata(self.producer_id, first_offset))

    def append_marker(
        self, marker: EndTransactionMarker, producer_epoch: int, offset: int, version: int = 0
    ) -> CompletedTxn | None:
        """End the transaction, which is of this version; None where it has no batches here.

        Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        if version >= STRICT_MARKERS_FROM:
            self._check_marker_epoch(producer_epoch, offset)
        else:
            self._check_producer_epoch(producer_epoch, offset)
        updated = self.updated
        if updated.coordinator_epoch > marker.coordinator_epoch and self._origin is not AppendOrigin.REPLICATION:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {self.producer_id} at offset {offset} in partition "
                f"{self._partition}: {marker.coordinator_epoch} (zombie), {updated.coordinator_epoch} (current)",
            )
        first_offset = updated.current_txn_first_offset
        updated.maybe_update_producer_epoch(producer_epoch)
        updated.coordinator_epoch = marker.coordinator_epoch
        updated.current_txn_first_offset = NO_OFFSET
        updated.last_timestamp = marker.timestamp
        if first_offset == NO_OFFSET:
            return None
        return CompletedTxn(self.producer_id, first_offset, offset, not marker.is_commit)

    def _check_producer_epoch(self, producer_epoch: int, offset: int) -> None:
        """A follower accepts what its leader wrote."""
        last_seen = self.updated.producer_epoch
        if producer_epoch < last_seen and self._origin is not AppendOrigin.REPLICATION:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {self.producer_id} at offset {offset} in {self._partition} is {producer_epoch}, "
                f"which is smaller than the last seen epoch {last_seen}",
            )

    def _check_marker_epoch(self, producer_epoch: int, offset: int) -> None:
        """Of version 2: the epoch of a marker is new, or the marker is here already and nothing was begun after it
        (KAFKA-19999). One of an earlier transaction must not end the one that is open.
        """
        updated = self.updated
        last_seen = updated.producer_epoch
        is_repeated = producer_epoch == last_seen and (
            updated.current_txn_first_offset == NO_OFFSET or producer_epoch == INT16_MAX
        )
        if producer_epoch <= last_seen and not is_repeated:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {self.producer_id} at offset {offset} in {self._partition} is {producer_epoch}, "
                f"which is <= the last seen epoch {last_seen} (TV2)",
            )

    def _check_sequence(self, producer_epoch: int, first_sequence: int, offset: int) -> None:
        verification = self._verification
        updated, current = self.updated, self._current
        if verification is not None:
            if verification.adds and first_sequence != 0 and not current.batches:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for producer {self.producer_id} at offset {offset} in partition "
                    f"{self._partition}: {first_sequence} (incoming seq. number). Expected sequence 0 for transactions "
                    "v2 idempotent producer with no existing state.",
                )
            if first_sequence > verification.lowest_sequence:
                known = f"{verification.lowest_sequence} (earliest seen sequence)"
                raise self._out_of_order(offset, first_sequence, known)
        if producer_epoch != updated.producer_epoch:
            if first_sequence != 0 and updated.producer_epoch != NO_PRODUCER_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {self.producer_id} at offset {offset} in "
                    f"partition {self._partition}: {producer_epoch} (request epoch), {first_sequence} (seq. number), "
                    f"{updated.producer_epoch} (current producer epoch)",
                )
            return
        if updated.batches:
            last_sequence = updated.last_sequence
        elif producer_epoch == current.producer_epoch:
            last_sequence = current.last_sequence
        else:
            last_sequence = NO_SEQUENCE
        # An unknown producer may begin anywhere: its records may be gone by retention or DeleteRecords (KIP-360).
        if current.producer_epoch != NO_PRODUCER_EPOCH and not in_sequence(last_sequence, first_sequence):
            raise self._out_of_order(offset, first_sequence, f"{last_sequence} (current end sequence number)")

    def _out_of_order(self, offset: int, first_sequence: int, known: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {self.producer_id} at offset {offset} in partition "
            f"{self._partition}: {first_sequence} (incoming seq. number), {known}",
        )


def in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Whether a sequence follows another, in int32 that wraps to 0."""
    return next_sequence == last_sequence + 1 or (next_sequence == 0 and last_sequence == SEQUENCE_MASK)
