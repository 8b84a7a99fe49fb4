"""The machine of a share partition: one group's state of one partition's records, at the partition's leader.

The shell

1. reads the log from `next_fetch_offset`, one fetch at a time, while `can_acquire`, and gives what it read to
   `acquire`, whose rows go into the response;
2. persists each `StateWrite` that a call returns, and reports the result by `written`;
3. calls `expire` at `next_deadline`, and `advance` when the log's start offset is above `start_offset`.

What it deliberately does not do: sessions, long polling, telling members apart by more than their id.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpybroker.core.share.values import (
    Acknowledgement,
    Acquired,
    Fetched,
    Outcome,
    PersistedState,
    ShareSettings,
    StateWrite,
)
from kpybroker.wire.errors import ErrorCode


class SharePartition:
    """Times are seconds of a monotonic clock. `settings` may be replaced at any time."""

    def __init__(self, start: PersistedState, settings: ShareSettings) -> None:
        """Raise KafkaError UNKNOWN_SERVER_ERROR, as Kafka, if the state's batches contradict themselves."""
        self.settings = settings
        self.state_epoch = start.state_epoch
        self.start_offset = start.start_offset
        """The first offset that is not yet done with (accepted, rejected or given up)."""
        self.delivery_complete_count = 0
        """How many offsets from `start_offset` on are done with: the lag leaves them out."""

    @property
    def end_offset(self) -> int:
        """The last offset that was ever acquired; the next one to read if there is none."""
        raise NotImplementedError

    @property
    def in_flight(self) -> int:
        """How many offsets count for `partition_max_record_locks`: from the start offset to the end offset."""
        raise NotImplementedError

    @property
    def next_deadline(self) -> float | None:
        """When `expire` must be called next; it may find nothing then."""
        raise NotImplementedError

    def next_fetch_offset(self) -> int:
        """Where to read the log: the first available offset, or what follows all that was acquired."""
        raise NotImplementedError

    def can_acquire(self) -> bool:
        """Whether a fetch may be made: something was released, or the limit of records in flight is not reached."""
        raise NotImplementedError

    def acquire(
        self, member_id: str, fetched: Fetched, max_records: int, batch_size: int, strict: bool, now: float
    ) -> list[Acquired]:
        """Lock available records of what was read for the member, by increasing offset.

        `max_records` is rounded up to whole record batches unless `strict` (acquire mode ``record_limit``); rows of
        new records have about `batch_size` offsets, cut between record batches.
        """
        raise NotImplementedError

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], now: float) -> Outcome:
        """Accept, release, reject or renew what the member holds, all or nothing (a renewal stays).

        INVALID_RECORD_STATE if it does not hold one of them, INVALID_REQUEST for offsets after all that was acquired
        or a type that is unknown. `validation.validate` is called before, on what a client sent.
        """
        raise NotImplementedError

    def release_member(self, member_id: str, now: float) -> Outcome:
        """Release all that the member holds: its session ended, or its connection was lost."""
        raise NotImplementedError

    def expire(self, now: float) -> Outcome:
        """Release what is locked until `now` or earlier."""
        raise NotImplementedError

    def advance(self, log_start_offset: int) -> bool:
        """The log now starts here: what is available below is archived. Return whether waiting fetches may go on."""
        raise NotImplementedError

    def written(self, write: StateWrite, error: ErrorCode, now: float) -> Outcome:
        """A write ended: what it changed is final, or reverted if it failed (`error` is then the response's).

        With an error, pass the persister's; the outcome has the one that Kafka sends to the client.
        """
        raise NotImplementedError
