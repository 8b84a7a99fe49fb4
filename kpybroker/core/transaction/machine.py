"""The transaction state machine: every transactional id of one partition of `__transaction_state`.

Rules
- `handle` takes InitProducerId, AddPartitions and EndTransaction; `on_markers` takes the result of an order to write
  markers; `abort_timed_out`, `remove_expired` and `expire` run by time; `settle` takes the result of a write. Each
  returns an `Outcome` (see `core/machine.py` for what the shell does with it).
- Only `replay` changes durable state, `Transaction.stored`. Responses are made from `Transaction.current`, which
  follows when the record is committed.
- A transaction has at most one transition in flight.
- A decision is always carried out (`completion`). A new coordinator finds Prepare* in the log and continues
  (`activate`).

Differs from Kafka where a record is in the log and replicas take too long to confirm it: Kafka reverts it in memory,
and may respond differently from its log. Here the client gets COORDINATOR_NOT_AVAILABLE, and the transition stays
pending until the result is known.

Not here: which partition an id belongs to, API versions, authorization, and which broker leads a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from kpybroker.core.budget import UNOWNED, StateBudget
from kpybroker.core.machine import Now, Ticket
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction import responses
from kpybroker.core.transaction.completion import Completion
from kpybroker.core.transaction.records import TransactionRecord
from kpybroker.core.transaction.state import (
    TRANSACTION_PARTITION_BYTES,
    Transaction,
    TransactionMetadata,
    transaction_bytes,
)
from kpybroker.core.transaction.step import TransactionOutcome, TransactionStep
from kpybroker.core.transaction.values import (
    EPOCH_BUMP_FROM,
    AddPartitions,
    DescribedTransaction,
    EndResult,
    EndTransaction,
    InitProducerId,
    InitResult,
    TransactionConfig,
    TransactionOverview,
    TransactionState,
)
from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kpybroker.wire.yield_budget import WorkBudget

Request = InitProducerId | AddPartitions | EndTransaction
Respond = Callable[[TransactionStep, ErrorCode], None]
S = TransactionState

FULL = ErrorCode.COORDINATOR_NOT_AVAILABLE
"""The error where the budget has no room: Kafka has none for that, and after this one clients try again."""
TOMBSTONES_BYTES_MAX = 500_000
TOMBSTONE_OVERHEAD = 24  # version, lengths and the record around them, rounded up

# What a failed append means to a client (TransactionStateManager.appendTransactionToLog).
_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class TransactionMachine:
    """`coordinator_epoch` is the leader epoch in which this broker leads the partition; it goes into every marker."""

    __slots__ = ("_budget", "_completion", "_config", "expire", "on_markers", "transactions")

    def __init__(self, config: TransactionConfig, coordinator_epoch: int, budget: StateBudget | None = None) -> None:
        self._config = config
        self._budget = StateBudget() if budget is None else budget
        self.transactions: dict[str, Transaction] = {}
        self._completion = Completion(self.transactions, coordinator_epoch, self._charge)
        self.on_markers = self._completion.on_markers
        self.expire = self._completion.retry

    # --- requests

    def needs_producer_id(self, request: InitProducerId | EndTransaction) -> bool:
        """Whether `handle` would give out a new producer id now."""
        transaction = self.transactions.get(request.transactional_id)
        if isinstance(request, EndTransaction):
            return transaction is not None and transaction.needs_next_producer_id(request.version)
        if transaction is None:
            return True
        if transaction.current.state is S.ONGOING:
            return transaction.needs_next_producer_id(request.level)
        return transaction.needs_producer_id(request.expected)

    def handle(self, request: Request, ticket: Ticket, now: Now) -> TransactionOutcome:
        """Handle one request; the reply to `ticket` is in this outcome or in a later one."""
        step = TransactionStep(now)
        _HANDLERS[type(request)](self, step, request, ticket)
        return step.outcome

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[PartitionKey]
    ) -> Mapping[PartitionKey, ErrorCode]:
        """Whether partitions belong to the producer's open transaction (KIP-890)."""
        error = self._check_producer(transactional_id, producer_id, producer_epoch)
        if error is not ErrorCode.NONE:
            return dict.fromkeys(partitions, error)
        now = self.transactions[transactional_id].current
        if now.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        return {
            partition: ErrorCode.NONE if partition in now.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """The id's row of DescribeTransactions; TRANSACTIONAL_ID_NOT_FOUND for an unknown one."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return transaction.described()

    def overviews(self) -> Iterator[TransactionOverview]:
        """One row of ListTransactions for every transactional id."""
        return (transaction.overview() for transaction in self.transactions.values())

    def _check_producer(self, transactional_id: str, producer_id: int, producer_epoch: int) -> ErrorCode:
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.current.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.current.producer_epoch != producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def _init(self, step: TransactionStep, request: InitProducerId, ticket: Ticket) -> None:
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None:
            if not self._budget.has_room(request.owner, transaction_bytes(request.transactional_id, 0)):
                step.reply(ticket, InitResult(FULL))
                return
            transaction = self._new_transaction(request, step.now.wall_ms)
        transaction.take_owner(request.owner)
        if transaction.pending is not None:
            step.reply(ticket, InitResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif request.expected is not None and not transaction.knows(request.expected):
            step.reply(ticket, InitResult(ErrorCode.PRODUCER_FENCED))
        elif transaction.current.state is S.ONGOING:
            # Abort it in an epoch that no client receives: the client retries and gets the one after that.
            respond = partial(responses.respond_to_init_later, ticket)
            self._fence(step, transaction, respond, request.level, request.new_producer_id)
        else:
            target = transaction.prepare_init(
                request.timeout_ms, request.expected, request.new_producer_id, step.now.wall_ms
            )
            if target is None:
                step.reply(ticket, InitResult(ErrorCode.PRODUCER_FENCED))
            else:
                self._write(step, transaction, target, partial(self._respond_to_init, transaction, target, ticket))

    def _new_transaction(self, request: InitProducerId, now_ms: int) -> Transaction:
        metadata = TransactionMetadata(
            producer_id=request.new_producer_id,
            producer_epoch=NO_PRODUCER_EPOCH,
            timeout_ms=request.timeout_ms,
            state=S.EMPTY,
            partitions=frozenset(),
            start_timestamp_ms=NO_TIMESTAMP,
            last_update_timestamp_ms=now_ms,
        )
        transaction = self.transactions[request.transactional_id] = Transaction(
            request.transactional_id, metadata, request.owner
        )
        self._charge(transaction)
        return transaction

    def _respond_to_init(
        self,
        transaction: Transaction,
        target: TransactionMetadata,
        ticket: Ticket,
        step: TransactionStep,
        error: ErrorCode,
    ) -> None:
        transactional_id = transaction.transactional_id
        if error is ErrorCode.NONE:
            step.info(
                f"Initialized transactionalId {transactional_id} with producerId {target.producer_id} and producer "
                f"epoch {target.producer_epoch}"
            )
            step.reply(ticket, InitResult(error, target.producer_id, target.producer_epoch))
            return
        step.info(f"Returning {error.name} error code to client for {transactional_id}'s InitProducerId request")
        step.reply(ticket, InitResult(error))
        if transaction.pending is None and transaction.stored is None:
            self._forget(transactional_id)  # nothing of it is in the log

    def _add(self, step: TransactionStep, request: AddPartitions, ticket: Ticket) -> None:
        if request.version >= EPOCH_BUMP_FROM and self._is_pending(request.transactional_id):
            step.reply(ticket, ErrorCode.CONCURRENT_TRANSACTIONS)  # it may be about to give the producer another id
            return
        error = self._check_producer(request.transactional_id, request.producer_id, request.producer_epoch)
        if error is not ErrorCode.NONE:
            step.reply(ticket, error)
            return
        transaction = self.transactions[request.transactional_id]
        now = transaction.current
        if transaction.pending is not None:
            step.reply(ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        elif now.state is S.ONGOING and request.partitions <= now.partitions:
            step.reply(ticket, ErrorCode.NONE)
        elif not self._has_room_for(transaction, request):
            step.reply(ticket, FULL)
        else:
            transaction.take_owner(request.owner)
            target = transaction.prepare_add(request.partitions, request.version, step.now.wall_ms)
            self._write(step, transaction, target, partial(responses.respond, ticket))

    def _has_room_for(self, transaction: Transaction, request: AddPartitions) -> bool:
        size = TRANSACTION_PARTITION_BYTES * len(request.partitions - transaction.current.partitions)
        owner = request.owner if transaction.owner == UNOWNED else transaction.owner
        return self._budget.has_room(owner, size)

    def _is_pending(self, transactional_id: str) -> bool:
        transaction = self.transactions.get(transactional_id)
        return transaction is not None and transaction.pending is not None

    def _end(self, step: TransactionStep, request: EndTransaction, ticket: Ticket) -> None:
        if request.version >= EPOCH_BUMP_FROM:
            self._end_and_bump(step, request, ticket)
            return
        error = self._check_producer(request.transactional_id, request.producer_id, request.producer_epoch)
        if error is not ErrorCode.NONE:
            step.reply(ticket, EndResult(error))
            return
        transaction = self.transactions[request.transactional_id]
        state = transaction.current.state
        if transaction.pending is not None:
            step.reply(ticket, EndResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif state is S.ONGOING:
            target = transaction.prepare_end(request.committed, step.now.wall_ms)
            self._write(step, transaction, target, partial(responses.respond_to_end, ticket))
        else:
            # A retry of the last decision, or a client error.
            is_repeated = state is (S.COMPLETE_COMMIT if request.committed else S.COMPLETE_ABORT)
            step.reply(ticket, EndResult(ErrorCode.NONE if is_repeated else ErrorCode.INVALID_TXN_STATE))

    def _end_and_bump(self, step: TransactionStep, request: EndTransaction, ticket: Ticket) -> None:
        """Of version 2: the epoch says whether a request is a retry or of the next transaction."""
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None:
            step.reply(ticket, EndResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        elif transaction.pending is not None:
            # First: it may be about to give the producer the id that it asks with.
            step.reply(ticket, EndResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif (error := transaction.verdict_on_end(request)) is ErrorCode.NONE:
            now = transaction.current
            step.reply(ticket, EndResult(error, now.producer_id, now.producer_epoch))
        elif error is not None:
            step.reply(ticket, EndResult(error))
        else:
            target = transaction.prepare_end(
                request.committed, step.now.wall_ms, request.version, request.new_producer_id
            )
            self._write(step, transaction, target, partial(responses.respond_with_next, transaction, ticket))

    def _fence(
        self, step: TransactionStep, transaction: Transaction, respond: Respond, level: int, new_producer_id: int
    ) -> None:
        """Abort what is open, in an epoch that no client has."""
        if level >= EPOCH_BUMP_FROM:
            # If it fails nothing has changed, so the next try bumps the epoch as this one would have.
            target = transaction.prepare_end(False, step.now.wall_ms, level, new_producer_id)
            self._write(step, transaction, target, respond)
            return
        target = transaction.prepare_fence(step.now.wall_ms)
        self._write(step, transaction, target, partial(self._fenced, transaction, respond))

    def _fenced(self, transaction: Transaction, respond: Respond, step: TransactionStep, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE and transaction.pending is None:
            transaction.has_failed_epoch_fence = True
            step.warn(
                "The coordinator failed to write an epoch fence transition for producer "
                f"{transaction.transactional_id} to the transaction log with error {error.name}. The epoch was "
                f"increased to {transaction.current.producer_epoch} but not returned to the client"
            )
        respond(step, error)

    # --- transitions

    def _write(
        self, step: TransactionStep, transaction: Transaction, target: TransactionMetadata, respond: Respond
    ) -> None:
        record = TransactionRecord(transaction.transactional_id, target)
        step.write((record,), partial(self._on_transition, transaction, respond))

    def _on_transition(
        self, transaction: Transaction, respond: Respond, step: TransactionStep, error: ErrorCode
    ) -> None:
        if error is ErrorCode.NONE:
            transaction.complete()
            self._charge(transaction)
            if transaction.current.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
                self._completion.start(step, transaction)
        elif error is ErrorCode.REQUEST_TIMED_OUT:
            # It is in the log, so it is not reverted: the client may retry, and the transition stays pending.
            step.read(transaction.written_up_to, partial(self._on_transition, transaction, responses.ignore))
        else:
            transaction.pending = None
        respond(step, _APPEND_ERRORS.get(error, error))

    # --- time

    @property
    def deadline(self) -> float | None:
        """The monotonic time before which `expire` has nothing to do."""
        return self._completion.deadline

    def abort_timed_out(
        self, transactional_id: str, now: Now, level: int = 0, new_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionOutcome:
        """Abort the transaction if it has been open for longer than its timeout, and fence its producer.

        `level` is the cluster's `transaction.version`, `new_producer_id` a fresh one where `needs_id_to_abort`.
        """
        step = TransactionStep(now)
        transaction = self.transactions.get(transactional_id)
        if transaction is not None and transaction.has_timed_out(now.wall_ms):
            self._fence(step, transaction, partial(responses.log_timeout, transactional_id), level, new_producer_id)
        return step.outcome

    def needs_id_to_abort(self, transactional_id: str, now: Now, level: int) -> bool:
        """Whether `abort_timed_out` would give out a new producer id now."""
        transaction = self.transactions.get(transactional_id)
        return (
            transaction is not None
            and transaction.has_timed_out(now.wall_ms)
            and transaction.needs_next_producer_id(level)
        )

    def remove_expired(self, transactional_ids: Iterable[str], now: Now) -> TransactionOutcome:
        """Forget those of the ids that have not been used for `transactional.id.expiration.ms`."""
        step = TransactionStep(now)
        expiration_ms = self._config.transactional_id_expiration_ms
        batch: list[Transaction] = []
        size = 0
        for transactional_id in transactional_ids:
            transaction = self.transactions.get(transactional_id)
            if transaction is None or not transaction.has_expired(now.wall_ms, expiration_ms):
                continue
            record_size = len(transactional_id.encode()) + TOMBSTONE_OVERHEAD
            if batch and size + record_size > TOMBSTONES_BYTES_MAX:
                self._write_tombstones(step, batch)
                batch, size = [], 0
            transaction.prepare_dead()
            batch.append(transaction)
            size += record_size
        if batch:
            self._write_tombstones(step, batch)
        return step.outcome

    def _write_tombstones(self, step: TransactionStep, transactions: list[Transaction]) -> None:
        records = [TransactionRecord(transaction.transactional_id, None) for transaction in transactions]
        step.write(records, partial(self._on_tombstones, transactions))

    def _on_tombstones(self, transactions: list[Transaction], step: TransactionStep, error: ErrorCode) -> None:
        if error is ErrorCode.REQUEST_TIMED_OUT:
            offset = max(transaction.written_up_to for transaction in transactions)
            step.read(offset, partial(self._on_tombstones, transactions))
            return
        for transaction in transactions:
            transaction.pending = None
            if error is ErrorCode.NONE:
                self._forget(transaction.transactional_id)
        if error is not ErrorCode.NONE:
            step.warn(f"Failed to remove {len(transactions)} expired transactionalIds: {error.name}")

    # --- durable state and loading

    def settle(
        self, done: Callable[[TransactionStep, ErrorCode], None], error: ErrorCode, now: Now
    ) -> TransactionOutcome:
        """Report the result of a write or read of an earlier outcome."""
        step = TransactionStep(now)
        done(step, error)
        return step.outcome

    def replay(self, record: TransactionRecord, offset: int, producer_id: int = -1) -> None:
        """Apply the record at `offset` of the log."""
        transaction = self.transactions.get(record.transactional_id)
        if transaction is None:
            if record.value is None:
                return
            transaction = self.transactions[record.transactional_id] = Transaction(
                record.transactional_id, record.value
            )
        transaction.stored = record.value
        transaction.written_up_to = offset + 1
        if record.value is None and transaction.pending is None:
            self._forget(record.transactional_id)

    def ids(self) -> list[str]:
        """All transactional ids, as a list that later changes do not affect."""
        return list(self.transactions)

    def activate(
        self, transactional_ids: Iterable[str], now: Now, budget: WorkBudget
    ) -> Generator[None, None, TransactionOutcome]:
        """Continue what was decided and not completed, after the whole partition has been replayed. In slices."""
        step = TransactionStep(now)
        for transactional_id in transactional_ids:
            transaction = self.transactions[transactional_id]
            assert transaction.stored is not None
            transaction.current = transaction.stored
            if transaction.current.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
                step.info(f"Sending txn markers for {transactional_id} after loading its partition")
                self._completion.start(step, transaction)
            if budget.is_spent():
                yield
        return step.outcome

    def unload(self, now: Now) -> TransactionOutcome:
        """Leadership is lost. Only `settle` may be called after, which responds to waiting requests."""
        for transactional_id in self.ids():
            self._forget(transactional_id)
        self._completion.stop()
        return TransactionStep(now).outcome

    # --- the budget

    def _charge(self, transaction: Transaction) -> None:
        """Report what the id takes now. One that was in the log before has no owner until it adds partitions."""
        if self.transactions.get(transaction.transactional_id) is transaction and transaction.owner != UNOWNED:
            before, transaction.size = transaction.size, transaction.measure()
            self._budget.add(transaction.owner, transaction.size - before)

    def _forget(self, transactional_id: str) -> None:
        transaction = self.transactions.pop(transactional_id, None)
        if transaction is not None:
            self._budget.add(transaction.owner, -transaction.size)
            transaction.size = 0


_Handler = Callable[[TransactionMachine, TransactionStep, Any, Ticket], None]

_HANDLERS: dict[type[Request], _Handler] = {
    InitProducerId: TransactionMachine._init,
    AddPartitions: TransactionMachine._add,
    EndTransaction: TransactionMachine._end,
}
