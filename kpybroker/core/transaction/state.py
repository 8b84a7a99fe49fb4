"""A transactional id: its state in the log, its current state, and its pending transition.

    Empty ──add──▶ Ongoing ──end──▶ PrepareCommit ──markers──▶ CompleteCommit ──add──▶ Ongoing …
                      │                                            └──init──▶ Empty
                      └──end, init, timeout──▶ PrepareAbort ──markers──▶ CompleteAbort

In transactions of version 2 the epoch grows with each Prepare*, and a producer may abort where nothing is open: it
cannot know whether what it wrote has arrived. When the epochs of an id are used up, Prepare* names the next id, which
Complete* begins with epoch 0.

A transition is *prepared* (`pending`), written to the log, and *completed* when the record is committed. Until then
every other one is refused with CONCURRENT_TRANSACTIONS. From Prepare* the next one, to Complete*, is pending at once,
and written after all markers. So `stored`, which only `replay` in `machine.py` assigns, may be one step ahead of
`current` and is never behind it, except for partitions whose markers are written.

The source is Kafka's TransactionMetadata; the table below is its `validPreviousStates`.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction.values import (
    EPOCH_BUMP_FROM,
    PRODUCER_EPOCH_MAX,
    DescribedTransaction,
    EndTransaction,
    ProducerIdAndEpoch,
    TransactionOverview,
    TransactionState,
)
from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

S = TransactionState

# From which states a state may be entered.
VALID_PREVIOUS: dict[TransactionState, frozenset[TransactionState]] = {
    S.EMPTY: frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.ONGOING: frozenset({S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    S.PREPARE_ABORT: frozenset({S.ONGOING, S.PREPARE_EPOCH_FENCE}),
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: frozenset({S.EMPTY, S.COMPLETE_ABORT, S.COMPLETE_COMMIT}),
    S.PREPARE_EPOCH_FENCE: frozenset({S.ONGOING}),
}
MAY_EXPIRE = VALID_PREVIOUS[S.DEAD]
NOTHING_OPEN = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
"""From these, too, a transaction of version 2 may be aborted."""


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no epoch is left for clients: the last one is reserved for fencing the one before it."""
    return producer_epoch >= PRODUCER_EPOCH_MAX - 1


TRANSACTION_BYTES = 900
TRANSACTION_PARTITION_BYTES = 300


def transaction_bytes(transactional_id: str, partitions: int) -> int:
    """What an id with so many partitions in its transaction takes in memory, rounded up."""
    return TRANSACTION_BYTES + 2 * len(transactional_id) + TRANSACTION_PARTITION_BYTES * partitions


class TransactionMetadata(NamedTuple):
    """Everything about a transactional id at one moment.

    The log keeps all but `last_producer_epoch`; in its version 0 neither the ids before and after nor `version`, which
    is that of the producer's transactions.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[PartitionKey]
    start_timestamp_ms: int
    last_update_timestamp_ms: int
    last_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    next_producer_id: int = NO_PRODUCER_ID
    version: int = 0

    @property
    def bumps_epoch(self) -> bool:
        """Whether the epoch grows with each end of a transaction."""
        return self.version >= EPOCH_BUMP_FROM


class Transaction:
    """`stored` is the last record in the log, None if there is none; `written_up_to` is the offset after it."""

    __slots__ = (
        "current",
        "has_failed_epoch_fence",
        "owner",
        "pending",
        "size",
        "stored",
        "transactional_id",
        "written_up_to",
    )

    def __init__(self, transactional_id: str, current: TransactionMetadata, owner: Owner = UNOWNED) -> None:
        self.owner = owner
        self.size = 0  # bytes in memory, as last charged to the owner
        self.transactional_id = transactional_id
        self.stored: TransactionMetadata | None = None
        self.written_up_to = 0
        self.current = current
        self.pending: TransactionMetadata | None = None
        # An epoch was bumped to fence a producer and could not be written: no client has it, so it is not bumped again.
        self.has_failed_epoch_fence = False

    def measure(self) -> int:
        """Bytes in memory, about."""
        return transaction_bytes(self.transactional_id, len(self.current.partitions))

    def take_owner(self, owner: Owner) -> None:
        """Who is charged for an id that was in the log before: the first that uses it."""
        if self.owner == UNOWNED:
            self.owner, self.size = owner, 0

    # --- transitions

    def prepare(self, target: TransactionMetadata) -> TransactionMetadata:
        """Make `target` the pending transition; an illegal one is a bug."""
        assert self.pending is None, f"{self.transactional_id}: {target.state.name} while {self.pending} is pending"
        state = self.current.state
        aborts_nothing = target.bumps_epoch and target.state is S.PREPARE_ABORT and state in NOTHING_OPEN
        is_valid = aborts_nothing or state in VALID_PREVIOUS[target.state]
        assert is_valid, f"{self.transactional_id}: {state.name} -> {target.state.name}"
        assert target.producer_id >= 0
        assert target.producer_epoch >= 0 or target.state is S.DEAD
        self.pending = target
        return target

    def complete(self) -> None:
        """Make the pending transition current, after its record is committed."""
        target = self.pending
        assert target is not None
        if target.state is S.EMPTY:
            # Kafka clears the last start only in the log: DescribeTransactions shows it until a restart.
            target = target._replace(start_timestamp_ms=self.current.start_timestamp_ms)
        self.current = target
        self.pending = None

    def prepare_init(
        self, timeout_ms: int, expected: ProducerIdAndEpoch | None, new_producer_id: int, now_ms: int
    ) -> TransactionMetadata | None:
        """Prepare the id and epoch of an initializing producer; None if it has been fenced."""
        now = self.current
        producer_id, epoch, last_epoch = now.producer_id, now.producer_epoch + 1, NO_PRODUCER_EPOCH
        if self.needs_producer_id(expected):
            producer_id, epoch = new_producer_id, 0
            last_epoch = NO_PRODUCER_EPOCH if expected is None else now.producer_epoch
        elif expected is None:
            pass  # the last holder of the id is fenced
        elif now.producer_epoch == NO_PRODUCER_EPOCH or expected.epoch == now.producer_epoch:
            last_epoch = now.producer_epoch
        elif expected.epoch == now.last_producer_epoch:
            # A retry of a call that succeeded: the same response.
            epoch, last_epoch = now.producer_epoch, now.last_producer_epoch
        else:
            return None
        return self.prepare(
            TransactionMetadata(
                producer_id=producer_id,
                producer_epoch=epoch,
                timeout_ms=timeout_ms,
                state=S.EMPTY,
                partitions=frozenset(),
                start_timestamp_ms=NO_TIMESTAMP,
                last_update_timestamp_ms=now_ms,
                last_producer_id=now.producer_id,
                last_producer_epoch=last_epoch,
                version=now.version,
            )
        )

    def needs_producer_id(self, expected: ProducerIdAndEpoch | None) -> bool:
        """Whether the epochs of the present producer id are used up."""
        epoch = self.current.producer_epoch
        return is_epoch_exhausted(epoch) and (expected is None or expected.epoch == epoch)

    def prepare_add(self, partitions: frozenset[PartitionKey], version: int, now_ms: int) -> TransactionMetadata:
        """Prepare to add partitions; the first ones begin the transaction."""
        now = self.current
        return self.prepare(
            now._replace(
                state=S.ONGOING,
                partitions=now.partitions | partitions,
                start_timestamp_ms=now.start_timestamp_ms if now.state is S.ONGOING else now_ms,
                last_update_timestamp_ms=now_ms,
                version=version,
            )
        )

    def prepare_end(
        self, committed: bool, now_ms: int, version: int = 0, next_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionMetadata:
        """Prepare the decision to commit or abort; `next_producer_id` where the epochs of the present one are used up.

        In version 2 nothing may be open: then the abort bumps the epoch alone.
        """
        now = self.current
        target = now._replace(
            state=S.PREPARE_COMMIT if committed else S.PREPARE_ABORT,
            last_update_timestamp_ms=now_ms,
            next_producer_id=next_producer_id,
            version=version,
        )
        if target.bumps_epoch:
            target = target._replace(
                last_producer_id=now.producer_id,
                producer_epoch=min(now.producer_epoch + 1, PRODUCER_EPOCH_MAX),
                last_producer_epoch=now.producer_epoch,
                start_timestamp_ms=now.start_timestamp_ms if now.state is S.ONGOING else now_ms,
            )
        return self.prepare(target)

    def prepare_fence(self, now_ms: int) -> TransactionMetadata:
        """Prepare an abort in an epoch that no client has; that epoch stays current even if the write fails."""
        assert self.current.state is S.ONGOING
        bump = 0 if self.has_failed_epoch_fence else 1
        assert self.current.producer_epoch + bump <= PRODUCER_EPOCH_MAX
        self.current = self.current._replace(
            producer_epoch=self.current.producer_epoch + bump,
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )
        return self.prepare_end(False, now_ms)

    def prepare_complete(self, now_ms: int) -> TransactionMetadata:
        """Prepare Complete*, whose record is written after the last marker."""
        now = self.current
        self.has_failed_epoch_fence = False
        target = now._replace(
            state=S.COMPLETE_COMMIT if now.state is S.PREPARE_COMMIT else S.COMPLETE_ABORT,
            partitions=frozenset(),
            last_update_timestamp_ms=now_ms,
            next_producer_id=NO_PRODUCER_ID,
        )
        if now.bumps_epoch and now.next_producer_id != NO_PRODUCER_ID:
            target = target._replace(
                producer_id=now.next_producer_id, producer_epoch=0, last_producer_id=now.producer_id
            )
        return self.prepare(target)

    def prepare_dead(self) -> None:
        """Prepare the removal of an id that has expired."""
        # An id whose first record is not in the log has no epoch yet.
        self.prepare(self.current._replace(state=S.DEAD, partitions=frozenset()))

    def markers_written(self, partitions: Set[PartitionKey]) -> None:
        """These partitions have their markers and are no longer part of the transaction."""
        assert self.current.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT)
        self.current = self.current._replace(partitions=self.current.partitions - partitions)

    # --- questions

    def needs_next_producer_id(self, version: int) -> bool:
        """Whether the end of a transaction uses up the epochs of the present producer id."""
        return version >= EPOCH_BUMP_FROM and is_epoch_exhausted(self.current.producer_epoch)

    def verdict_on_end(self, request: EndTransaction) -> ErrorCode | None:
        """Kafka 4's rules for the end of a transaction of version 2, where nothing is pending; None: it may end.

        NONE is for a request whose response was lost: it has the epoch before the present one, or the last of the id
        before.
        """
        now = self.current
        has_rotated = (
            now.last_producer_id == request.producer_id
            and request.producer_epoch == PRODUCER_EPOCH_MAX - 1
            and now.producer_epoch == 0
        )
        is_retry = has_rotated or now.producer_epoch == request.producer_epoch + 1
        if now.producer_id != request.producer_id and not has_rotated:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        ended = now.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
        if request.producer_epoch != now.producer_epoch and not (ended and is_retry):
            return ErrorCode.PRODUCER_FENCED
        if ended and is_retry:
            was_committed = now.state is S.COMPLETE_COMMIT
            return ErrorCode.NONE if request.committed == was_committed else ErrorCode.INVALID_TXN_STATE
        if now.state is not S.ONGOING and request.committed:
            return ErrorCode.INVALID_TXN_STATE
        return None

    def knows(self, expected: ProducerIdAndEpoch) -> bool:
        """Whether a producer with this id may continue with the next epoch (KIP-360).

        True for the present id; for the previous one if its epochs are used up, since its holder may have missed the
        new id; and for a transactional id that was just created, since the previous state may have expired.
        """
        now = self.current
        return (
            now.producer_epoch == NO_PRODUCER_EPOCH
            or expected.producer_id == now.producer_id
            or (expected.producer_id == now.last_producer_id and is_epoch_exhausted(expected.epoch))
        )

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction has been open for longer than its timeout."""
        now = self.current
        return self.pending is None and now.state is S.ONGOING and now.start_timestamp_ms + now.timeout_ms < now_ms

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the id was last used `transactional.id.expiration.ms` ago, and no transaction is open."""
        now = self.current
        return (
            self.pending is None and now.state in MAY_EXPIRE and now.last_update_timestamp_ms <= now_ms - expiration_ms
        )

    def described(self) -> DescribedTransaction:
        """The id's row of DescribeTransactions."""
        now = self.current
        return DescribedTransaction(
            ErrorCode.NONE,
            now.state.title,
            now.timeout_ms,
            now.start_timestamp_ms,
            now.producer_id,
            now.producer_epoch,
            tuple(sorted(now.partitions)),
        )

    def overview(self) -> TransactionOverview:
        """The id's row of ListTransactions."""
        now = self.current
        return TransactionOverview(self.transactional_id, now.producer_id, now.state, now.start_timestamp_ms)
