"""What the cleaner knows of transactions on its way through a log (Kafka's CleanedTransactionMetadata).

Batches of aborted transactions go. A marker may go when nothing of its transaction is left; it then gets a delete
horizon first (KIP-534), so that a reader in the middle of the transaction still meets it. Of aborted transactions whose
batches were still there the transaction index keeps the entry: their markers stay for another round.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.record import iter_records


class CleanedTransactions:
    """Batches are shown to it in the order of their offsets. `retained` are the entries of the new index so far."""

    __slots__ = ("_aborted", "_committed", "_next", "_ongoing", "_seen", "retained")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        """`aborted`: all aborted transactions that have a batch or a marker in the offsets to come."""
        self._aborted = sorted(aborted, key=lambda transaction: transaction.first_offset)
        self._next = 0
        self._ongoing: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()  # producers of which a batch of the ongoing aborted transaction came by
        self._committed: set[int] = set()
        self.retained: list[AbortedTxn] = []

    def may_discard(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        """Whether the batch holds nothing that anybody needs: aborted data, or a marker without a transaction."""
        aborted = self._aborted
        while self._next < len(aborted) and aborted[self._next].first_offset <= header.last_offset:
            transaction = aborted[self._next]
            self._ongoing.setdefault(transaction.producer_id, transaction)
            self._next += 1
        if header.is_control:
            return self._end(buffer, position, header)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def _end(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        marker = next(iter_records(buffer, header, position), None)
        if marker is None:  # cleaned before
            return True
        producer_id = header.producer_id
        kind = parse_control_type(marker.key)
        if kind is ControlRecordType.ABORT:
            transaction = self._ongoing.pop(producer_id, None)
            if transaction is None or producer_id not in self._seen:
                return True
            self._seen.discard(producer_id)
            self.retained.append(transaction)
            return False
        if kind is ControlRecordType.COMMIT:
            was_seen = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_seen
        return False

    def take_retained(self) -> list[AbortedTxn]:
        retained, self.retained = self.retained, []
        return retained
