"""What the cleaner knows of transactions on its way through a log (Kafka's CleanedTransactionMetadata).

Batches of aborted transactions are removed. A marker may be removed when nothing of its transaction is left; it first
gets a delete horizon (KIP-534), so that a reader in the middle of the transaction still finds it. The transaction index
keeps the entries of aborted transactions whose batches were still there: their markers stay until the next cleaning.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.record import iter_records


class CleanedTransactions:
    """Receives batches in the order of their offsets. `retained`: the entries of the new index so far."""

    __slots__ = ("_aborted", "_committed", "_next", "_ongoing", "_seen", "retained")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        """`aborted`: all aborted transactions that have a batch or a marker in the cleaned range."""
        self._aborted = sorted(aborted, key=lambda transaction: transaction.first_offset)
        self._next = 0
        self._ongoing: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()  # producers with a batch of the ongoing aborted transaction so far
        self._committed: set[int] = set()
        self.retained: list[AbortedTxn] = []

    def may_discard(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        """Whether no reader needs the batch: aborted data, or a marker without a transaction."""
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
        marker = next(iter_records(buffer, header, position, read_headers_max=0), None)
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
        """The entries retained since the last call."""
        retained, self.retained = self.retained, []
        return retained
