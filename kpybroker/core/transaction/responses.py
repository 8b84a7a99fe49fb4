"""What a client gets once a record is in the log, or could not be written: `Respond`s with their first arguments."""

from __future__ import annotations

from kpybroker.core.machine import Ticket
from kpybroker.core.transaction.state import Transaction
from kpybroker.core.transaction.step import TransactionStep
from kpybroker.core.transaction.values import EndResult, InitResult
from kpybroker.wire.errors import ErrorCode


def respond(ticket: Ticket, step: TransactionStep, error: ErrorCode) -> None:
    """To AddPartitions: the error alone."""
    step.reply(ticket, error)


def respond_to_end(ticket: Ticket, step: TransactionStep, error: ErrorCode) -> None:
    """To EndTransaction before version 2, which has no id and epoch."""
    step.reply(ticket, EndResult(error))


def respond_with_next(transaction: Transaction, ticket: Ticket, step: TransactionStep, error: ErrorCode) -> None:
    """With the id and epoch of the producer's next transaction: what Complete* will have."""
    if error is ErrorCode.NONE:
        target = transaction.pending
        assert target is not None
        step.reply(ticket, EndResult(error, target.producer_id, target.producer_epoch))
    else:
        step.reply(ticket, EndResult(error))


def respond_to_init_later(ticket: Ticket, step: TransactionStep, error: ErrorCode) -> None:
    """To InitProducerId that has aborted what was open: the client asks again."""
    step.reply(ticket, InitResult(ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error))


def log_timeout(transactional_id: str, step: TransactionStep, error: ErrorCode) -> None:
    """To no one: a transaction was open for too long."""
    if error is ErrorCode.NONE:
        step.info(f"Completed rollback of ongoing transaction for transactionalId {transactional_id} due to timeout")
    else:
        step.warn(f"Rollback of ongoing transaction for transactionalId {transactional_id} failed: {error.name}")


def ignore(step: TransactionStep, error: ErrorCode) -> None:
    """The client has its response already."""
