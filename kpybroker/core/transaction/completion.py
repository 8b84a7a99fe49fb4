"""What follows a decision: the markers, and after the last of them the record of Complete*.

A transaction has at most one order of markers in flight: a second, late marker would end the next transaction. A
decision is always carried out: markers and the record are retried until they are written, or this broker is no longer
the coordinator. Another one finds Prepare* in the log and continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kpybroker.core.machine import Now
from kpybroker.core.transaction.records import TransactionRecord
from kpybroker.core.transaction.state import Transaction
from kpybroker.core.transaction.step import TransactionOutcome, TransactionStep
from kpybroker.core.transaction.values import MarkersWritten, TransactionState, WriteMarkers
from kpybroker.wire.errors import ErrorCode

RETRY_S = 0.1

# The partition has the marker, or does not need it: such a log never took a record of the transaction.
_MARKER_DONE = frozenset((ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION))
# The partition knows a later producer epoch or coordinator, and rejects this one's markers for good.
_MARKER_FENCED = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED))


class Completion:
    """Of the `transactions` of one machine, by their ids. `completed` is called with each that is in Complete*."""

    __slots__ = ("_completed", "_coordinator_epoch", "_retries", "_transactions")

    def __init__(
        self,
        transactions: Mapping[str, Transaction],
        coordinator_epoch: int,
        completed: Callable[[Transaction], None],
    ) -> None:
        self._transactions = transactions
        self._coordinator_epoch = coordinator_epoch
        self._completed = completed
        self._retries: dict[str, float] = {}  # transactional id -> when to try its completion again

    @property
    def deadline(self) -> float | None:
        """The monotonic time of the next retry."""
        return min(self._retries.values()) if self._retries else None

    def start(self, step: TransactionStep, transaction: Transaction) -> None:
        """The end is decided: write the markers, then the Complete* record."""
        transaction.prepare_complete(step.now.wall_ms)
        self._resume(step, transaction)

    def _resume(self, step: TransactionStep, transaction: Transaction) -> None:
        now = transaction.current
        if now.partitions:
            step.order(
                WriteMarkers(
                    transaction.transactional_id,
                    now.producer_id,
                    now.producer_epoch,
                    self._coordinator_epoch,
                    now.state is TransactionState.PREPARE_COMMIT,
                    tuple(sorted(now.partitions)),
                    now.version,
                )
            )
        else:
            record = TransactionRecord(transaction.transactional_id, transaction.pending)
            step.write((record,), partial(self._on_written, transaction))

    def on_markers(self, result: MarkersWritten, now: Now) -> TransactionOutcome:
        """Take the result of an order, once every partition has responded."""
        step = TransactionStep(now)
        order = result.order
        transaction = self._transactions.get(order.transactional_id)
        if transaction is None:
            return step.outcome  # unloaded since: another coordinator continues
        is_fenced = is_retried = False
        transaction.markers_written({one for one, error in result.errors.items() if error in _MARKER_DONE})
        for partition, error in result.errors.items():
            if error in _MARKER_DONE:
                continue
            is_fenced = is_fenced or error in _MARKER_FENCED
            is_retried = True
            step.info(
                f"Sending {order.transactional_id}'s transaction marker for partition {partition[0]}-{partition[1]} "
                f"has failed with error {error.name}, {'giving up' if error in _MARKER_FENCED else 'retrying'} with "
                f"current coordinator epoch {order.coordinator_epoch}"
            )
        if is_fenced:
            pass  # as in Kafka it stays in Prepare*, until another coordinator loads the partition
        elif is_retried:
            self._retries[order.transactional_id] = now.monotonic + RETRY_S
        else:
            self._resume(step, transaction)
        return step.outcome

    def _on_written(self, transaction: Transaction, step: TransactionStep, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            transaction.complete()
            self._completed(transaction)
        elif error is ErrorCode.REQUEST_TIMED_OUT:
            step.read(transaction.written_up_to, partial(self._on_written, transaction))
        elif transaction.transactional_id in self._transactions:
            step.info(f"Not available to append {transaction.pending}: {error.name}; retry appending")
            self._retries[transaction.transactional_id] = step.now.monotonic + RETRY_S

    def retry(self, now: Now) -> TransactionOutcome:
        """Try again what has failed, where that is due."""
        step = TransactionStep(now)
        for transactional_id in [key for key, at in self._retries.items() if at <= now.monotonic]:
            del self._retries[transactional_id]
            self._resume(step, self._transactions[transactional_id])
        return step.outcome

    def stop(self) -> None:
        """Leadership is lost: nothing is tried again."""
        self._retries.clear()
