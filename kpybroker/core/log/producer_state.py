"""What a partition knows of its producers: the last five batches of each, and the transactions in progress.

The pure half of Kafka's ProducerStateManager, ProducerAppendInfo and ProducerStateEntry; the other half, the
`.snapshot` files, is storage/producer_snapshots.

Rules. A batch of an idempotent producer is appended only in sequence; an exact repetition of one of the last five
batches is acknowledged with the offsets it got the first time; a lower producer epoch is fenced. A change is prepared
in a `ProducerAppendInfo` (which may raise) and applied by `update` after the bytes are in the log, so a failed append
changes nothing. A transaction is undecided from its first batch to its marker, and unreplicated until the high
watermark passed the marker; the smaller of the two first offsets bounds the last stable offset.

`NO_OFFSET` (-1) means "no transaction". Time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import (
    CONTROL_MASK,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_MASK,
    BatchHeader,
)
from kpybroker.wire.records.control import EndTransactionMarker

NO_OFFSET = -1
NUM_BATCHES_TO_RETAIN = 5
SEQUENCE_MASK = 0x7FFFFFFF
LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000
PRODUCER_ID_EXPIRATION_MS_DEFAULT = 86_400_000


class AppendOrigin(Enum):
    """The source of an append, which decides how much is checked (Kafka's AppendOrigin, without Raft)."""

    REPLICATION = "REPLICATION"  # already validated by the leader
    COORDINATOR = "COORDINATOR"  # epochs, but no sequences
    CLIENT = "CLIENT"  # everything


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


class VerificationGuard:
    """A token of one verification (KIP-890): equal only to itself. `NO_VERIFICATION` means none."""

    __slots__ = ()


NO_VERIFICATION = VerificationGuard()


class VerificationEntry:
    """A producer whose transaction is being verified with its coordinator (VerificationStateEntry)."""

    __slots__ = ("epoch", "guard", "lowest_sequence", "timestamp")

    def __init__(self, timestamp: int, sequence: int, epoch: int) -> None:
        self.timestamp = timestamp
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch

    def maybe_update(self, sequence: int, epoch: int) -> None:
        """Keep the lowest sequence of the latest epoch: no higher one may be appended before it."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence


class ProducerAppendInfo:
    """Batches of one producer in one append: checked one after the other, applied together."""

    __slots__ = ("_current", "_origin", "_partition", "_verification", "started_transactions", "updated")

    def __init__(
        self,
        partition: str,
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

    def append_marker(self, marker: EndTransactionMarker, producer_epoch: int, offset: int) -> CompletedTxn | None:
        """End the transaction; None where it has no batches here.

        Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
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

    def _check_sequence(self, producer_epoch: int, first_sequence: int, offset: int) -> None:
        verification = self._verification
        if verification is not None and first_sequence > verification.lowest_sequence:
            raise self._out_of_order(offset, first_sequence, f"{verification.lowest_sequence} (earliest seen sequence)")
        updated, current = self.updated, self._current
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


class ProducerState:
    """All producers of one partition."""

    __slots__ = (
        "_ongoing",
        "_partition",
        "_unreplicated",
        "map_end_offset",
        "producer_id_expiration_ms",
        "producers",
        "verifications",
    )

    def __init__(self, partition: str, producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT) -> None:
        self._partition = partition
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.producers: dict[int, ProducerStateEntry] = {}
        self.verifications: dict[int, VerificationEntry] = {}
        # By first offset, smallest first.
        self._ongoing: dict[int, TxnMetadata] = {}
        # By first offset, in the order of their markers.
        self._unreplicated: dict[int, TxnMetadata] = {}
        self.map_end_offset = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write into a snapshot or to wait for."""
        return not self.producers and not self._unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        """The start of the earliest transaction without a marker."""
        return next(iter(self._ongoing), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the earliest transaction that is undecided or whose marker is not yet replicated."""
        undecided = self.first_undecided_offset
        if not self._unreplicated:
            return undecided
        unreplicated = min(self._unreplicated)
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def plain_next_entry(self, header: BatchHeader) -> ProducerStateEntry | None:
        """The entry of an idempotent producer whose batch is the next in sequence: nothing else to check.

        A shortcut for the common append; None sends the batch through `find_duplicate` and `prepare_update`.
        """
        entry = self.producers.get(header.producer_id)
        if (
            entry is None
            or not entry.batches
            or entry.producer_epoch != header.producer_epoch
            or entry.current_txn_first_offset != NO_OFFSET
            or header.base_sequence != entry.batches[-1].last_sequence + 1
            or header.attributes & (TRANSACTIONAL_MASK | CONTROL_MASK)
            or self.verifications
        ):
            return None
        return entry

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """Start checking a producer's batches; nothing changes until `update`."""
        current = self.producers.get(producer_id)
        if current is None:
            current = ProducerStateEntry(producer_id)
        return ProducerAppendInfo(self._partition, current, origin, self.verifications.get(producer_id))

    def update(self, info: ProducerAppendInfo) -> None:
        """Apply a prepared append."""
        producer_id = info.producer_id
        assert producer_id != NO_PRODUCER_ID, "an update without a producer id"
        current = self.producers.get(producer_id)
        if current is None:
            self.producers[producer_id] = info.updated
        else:
            current.update(info.updated)
        for transaction in info.started_transactions:
            self._add_ongoing(transaction)

    def _add_ongoing(self, transaction: TxnMetadata) -> None:
        last = next(reversed(self._ongoing), NO_OFFSET)
        self._ongoing[transaction.first_offset] = transaction
        if transaction.first_offset < last:  # several producers in one append, one applied after the other
            self._ongoing = dict(sorted(self._ongoing.items()))

    def last_stable_offset_after(self, completed: CompletedTxn) -> int:
        """The LSO that an abort is recorded with: as if the transaction were complete."""
        for transaction in self._ongoing.values():
            if transaction.producer_id != completed.producer_id:
                return transaction.first_offset
        return completed.last_offset + 1

    def complete_txn(self, completed: CompletedTxn) -> None:
        """Move an ongoing transaction to the unreplicated ones. Raises ValueError for an unknown one."""
        transaction = self._ongoing.pop(completed.first_offset, None)
        if transaction is None:
            raise ValueError(
                f"Attempted to complete transaction {completed} on partition {self._partition} which was not started"
            )
        transaction.last_offset = completed.last_offset
        self._unreplicated[completed.first_offset] = transaction

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is below the high watermark."""
        if self._unreplicated:
            self._remove_unreplicated(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Forget completed transactions below the new log start."""
        self._remove_unreplicated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    def _remove_unreplicated(self, offset: int) -> None:
        for first_offset in [
            transaction.first_offset for transaction in self._unreplicated.values() if transaction.last_offset < offset
        ]:
            del self._unreplicated[first_offset]

    def has_ongoing_transaction(self, producer_id: int) -> bool:
        """Whether the producer has a transaction without a marker in this partition."""
        entry = self.producers.get(producer_id)
        return entry is not None and entry.current_txn_first_offset != NO_OFFSET

    def has_late_transaction(self, now_ms: int, max_transaction_timeout_ms: int) -> bool:
        """Whether the earliest transaction has been open for 5 minutes longer than any timeout allows."""
        transaction = next(iter(self._ongoing.values()), None)
        entry = self.producers.get(transaction.producer_id) if transaction is not None else None
        if entry is None or entry.last_timestamp <= 0:
            return False
        return now_ms - entry.last_timestamp > max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    def start_verification(self, producer_id: int, sequence: int, epoch: int, now_ms: int) -> VerificationGuard:
        """A guard to verify with, or `NO_VERIFICATION` where the transaction is already ongoing (KIP-890)."""
        if self.has_ongoing_transaction(producer_id):
            return NO_VERIFICATION
        entry = self.verifications.get(producer_id)
        if entry is None:
            entry = self.verifications[producer_id] = VerificationEntry(now_ms, sequence, epoch)
        entry.maybe_update(sequence, epoch)
        return entry.guard

    def is_verified(self, producer_id: int, guard: VerificationGuard) -> bool:
        """Whether `guard` is the one given out for the producer's present verification."""
        entry = self.verifications.get(producer_id)
        return entry is not None and entry.guard is guard

    def clear_verification(self, producer_id: int) -> None:
        """The verification has been used or has failed; the next transaction needs another."""
        self.verifications.pop(producer_id, None)

    def is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        """Whether the producer has been idle for `producer.id.expiration.ms`, without a transaction."""
        return (
            entry.current_txn_first_offset == NO_OFFSET
            and now_ms - entry.last_timestamp >= self.producer_id_expiration_ms
        )

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers, and verifications, that have been idle for the expiration time."""
        for producer_id in [p for p, entry in self.producers.items() if self.is_expired(entry, now_ms)]:
            del self.producers[producer_id]
        limit = now_ms - self.producer_id_expiration_ms
        for producer_id in [p for p, entry in self.verifications.items() if entry.timestamp <= limit]:
            del self.verifications[producer_id]

    def load(self, entries: Iterable[ProducerStateEntry], end_offset: int, now_ms: int) -> None:
        """Start from a snapshot taken at `end_offset`, without expired producers."""
        self.clear()
        for entry in entries:
            if not self.is_expired(entry, now_ms):
                self.producers[entry.producer_id] = entry
                if entry.current_txn_first_offset != NO_OFFSET:
                    self._add_ongoing(TxnMetadata(entry.producer_id, entry.current_txn_first_offset))
        self.map_end_offset = end_offset

    def clear(self) -> None:
        """Forget every producer and transaction; the end offset stays."""
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
