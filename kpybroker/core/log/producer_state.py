"""What a partition knows of its producers: the last five batches of each, and the transactions in progress.

The pure half of Kafka's ProducerStateManager; the other half, the `.snapshot` files, is storage/producer_snapshots.

Rules. An exact repetition of one of the last five batches is acknowledged with the offsets it got the first time. A
change is prepared in a `ProducerAppendInfo` (which may raise) and applied by `update` after the bytes are in the log,
so a failed append changes nothing. A transaction is undecided from its first batch to its marker, and unreplicated
until the high watermark passed the marker; the smaller of the two first offsets bounds the last stable offset.

`NO_OFFSET` (-1) means "no transaction". Time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, cast

from kpybroker.core.log.producer_append import AppendOrigin, ProducerAppendInfo
from kpybroker.core.log.producer_entries import NO_OFFSET, CompletedTxn, ProducerStateEntry, TxnMetadata
from kpybroker.core.log.verification import NO_VERIFICATION, VerificationEntry, VerificationGuard
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import (
    CONTROL_MASK,
    NO_PRODUCER_ID,
    TRANSACTIONAL_MASK,
    BatchHeader,
)

LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000
PRODUCER_ID_EXPIRATION_MS_DEFAULT = 86_400_000


NOTHING = cast("dict[int, Any]", MappingProxyType({}))
"""What most partitions have of each: it cannot be written, and costs nothing where a dict is 64 bytes."""


class ProducerState:
    """All producers of one partition, whose name is for texts only."""

    __slots__ = (
        "_ongoing",
        "_partition",
        "_unreplicated",
        "map_end_offset",
        "producer_id_expiration_ms",
        "producers",
        "verifications",
    )

    def __init__(self, partition: object, producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT) -> None:
        self._partition = partition
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.producers: dict[int, ProducerStateEntry] = NOTHING
        self.verifications: dict[int, VerificationEntry] = NOTHING
        # By first offset, smallest first.
        self._ongoing: dict[int, TxnMetadata] = NOTHING
        # By first offset, in the order of their markers.
        self._unreplicated: dict[int, TxnMetadata] = NOTHING
        self.map_end_offset = 0

    def _put(self, entry: ProducerStateEntry) -> None:
        if self.producers is NOTHING:
            self.producers = {}
        self.producers[entry.producer_id] = entry

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
            self._put(info.updated)
        else:
            current.update(info.updated)
        for transaction in info.started_transactions:
            self._add_ongoing(transaction)

    def _add_ongoing(self, transaction: TxnMetadata) -> None:
        last = next(reversed(self._ongoing), NO_OFFSET)
        if self._ongoing is NOTHING:
            self._ongoing = {}
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
        transaction = self._ongoing.get(completed.first_offset)
        if transaction is None:
            raise ValueError(
                f"Attempted to complete transaction {completed} on partition {self._partition} which was not started"
            )
        transaction.last_offset = completed.last_offset
        del self._ongoing[completed.first_offset]
        if self._unreplicated is NOTHING:
            self._unreplicated = {}
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

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int | None = None) -> bool:
        """Whether the producer has a transaction without a marker in this partition; in this epoch, if one is given."""
        entry = self.producers.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset != NO_OFFSET
            and producer_epoch in (None, entry.producer_epoch)
        )

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Raises INVALID_PRODUCER_EPOCH where a later epoch of the producer is known: it aborts, and begins again."""
        entry = self.producers.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} is {producer_epoch}, which is smaller than the last seen epoch "
                f"{entry.producer_epoch}",
            )

    def has_late_transaction(self, now_ms: int, max_transaction_timeout_ms: int) -> bool:
        """Whether the earliest transaction has been open for 5 minutes longer than any timeout allows."""
        transaction = next(iter(self._ongoing.values()), None)
        entry = self.producers.get(transaction.producer_id) if transaction is not None else None
        if entry is None or entry.last_timestamp <= 0:
            return False
        return now_ms - entry.last_timestamp > max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int, *, adds: bool = False
    ) -> VerificationGuard:
        """A guard to verify with, or `NO_VERIFICATION` where the transaction is already ongoing (KIP-890).

        `adds`: the partition is added to the transaction. Raises INVALID_PRODUCER_EPOCH.
        """
        self.check_epoch(producer_id, epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return NO_VERIFICATION
        entry = self.verifications.get(producer_id)
        if entry is None:
            entry = VerificationEntry(now_ms, sequence, epoch, adds)
            if self.verifications is NOTHING:
                self.verifications = {}
            self.verifications[producer_id] = entry
        entry.maybe_update(sequence, epoch)
        return entry.guard

    def is_verified(self, producer_id: int, guard: VerificationGuard) -> bool:
        """Whether `guard` is the one given out for the producer's present verification."""
        entry = self.verifications.get(producer_id)
        return entry is not None and entry.guard is guard

    def clear_verification(self, producer_id: int) -> None:
        """The verification has been used or has failed; the next transaction needs another."""
        if producer_id in self.verifications:
            del self.verifications[producer_id]

    def is_of_later_transaction(self, producer_id: int, marker_epoch: int) -> bool:
        """Whether what is being verified begins after the transaction of version 2 that a marker of this epoch ends."""
        entry = self.verifications.get(producer_id)
        return entry is not None and entry.epoch >= marker_epoch

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
                self._put(entry)
                if entry.current_txn_first_offset != NO_OFFSET:
                    self._add_ongoing(TxnMetadata(entry.producer_id, entry.current_txn_first_offset))
        self.map_end_offset = end_offset

    def clear(self) -> None:
        """Forget every producer and transaction; the end offset stays."""
        self.producers = self._ongoing = self._unreplicated = NOTHING
