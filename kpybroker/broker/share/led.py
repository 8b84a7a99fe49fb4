"""One group's records of one partition that this broker leads: its machine, and who waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from kpybroker.broker.loop.steps import Steps, Wait
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.share.values import StateWrite
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.core.replication.fetch_session import FetchKey
    from kpybroker.core.share.partition import SharePartition
    from kpybroker.core.share_coordinator.values import SharePartitionKey


LED_BYTES: Final = 3_000
RUN_BYTES: Final = 250
"""A share partition without records, and a run of its records, in memory; measured, and rounded up."""
CHANGES_MIN: Final = 64


class Done(Protocol):
    """Who is to know a final result. The message is that of the error, where there is one of its own."""

    def __call__(self, error: ErrorCode, message: str | None = None) -> None: ...


class Waiter:
    """A fetch that may wait: it looks again at those share partitions that have woken it."""

    __slots__ = ("wait", "woken")

    def __init__(self) -> None:
        self.woken: dict[LedSharePartition, None] = {}
        self.wait: Wait | None = None

    def wake(self, led: LedSharePartition) -> None:
        """There may be something to acquire, or the share partition has ended."""
        self.woken[led] = None
        if self.wait is not None:
            self.wait.end()

    def until_woken(self, deadline: float) -> Steps[None]:
        """Until it is woken, or until then on trio's clock; at once if it was since it last looked."""
        if not self.woken:
            self.wait = Wait(deadline)
            try:
                yield self.wait
            finally:
                self.wait = None

    def take_woken(self) -> list[LedSharePartition]:
        """Those that have woken it since the last call."""
        woken, self.woken = self.woken, {}
        return list(woken)


class LedSharePartition:
    """It follows its partition: new records wake the fetches that wait, lost leadership ends it (`on_lost`).

    `machine` is None until the state is read. Once `error` is set it has ended, and requests begin another one.
    """

    __slots__ = (
        *(
            "armed_at",
            "changes",
            "charged",
            "error",
            "is_contended",
            "is_fetched",
            "is_idle",
            "is_writing",
            "key",
            "leader_epoch",
            "machine",
        ),
        *("lock_timeouts", "on_lost", "owner", "partition", "runs", "waiting", "writes"),
    )

    def __init__(
        self, key: SharePartitionKey, partition: Partition, on_lost: Callable[[LedSharePartition], None]
    ) -> None:
        self.key = key
        self.partition = partition
        self.on_lost = on_lost
        self.leader_epoch = partition.leader_epoch
        """The epoch in which it began: the share coordinator fences those before the last that it has seen."""
        self.machine: SharePartition | None = None
        self.error: KafkaError | None = None
        self.lock_timeouts = 0
        """Records whose lock has run out."""
        self.is_fetched = False
        """Whether a fetch is between reading the log and acquiring: no other one may (Kafka's fetch lock)."""
        self.is_contended = False
        """Whether another fetch has found it so, and looks again afterwards."""
        self.is_idle = False
        """Whether no member has a session here: it ends once its writes have."""
        self.is_writing = False
        """Whether `writes` are being persisted, or are about to be."""
        self.writes: deque[tuple[StateWrite, Done]] = deque()
        """What is to be persisted next, each with who is to know the result."""
        self.waiting: dict[Waiter, None] = {}
        """The fetches that wait, or are about to."""
        self.armed_at = inf
        """The deadline for which there is a timer, on the broker's monotonic clock."""
        self.owner: Owner = UNOWNED
        """Who is charged for it: the first member that has fetched it."""
        self.charged = 0  # bytes
        self.runs = 0  # of its machine, when they were last counted
        self.changes = 0  # since then: how many more there may be

    def size_after(self, changes: int) -> int:
        """Bytes in memory at most, now that so many runs may have been cut. They are counted again when as many may
        have changed as there were: a change costs the same however many there are.
        """
        self.changes += changes
        if self.machine is None or not self.machine.batch_count:
            self.runs = self.changes = 0
        elif self.changes > max(CHANGES_MIN, self.runs):
            self.runs, self.changes = sum(1 for _ in self.machine.runs()), 0
        return LED_BYTES + RUN_BYTES * (self.runs + self.changes)

    def forget(self) -> None:
        """Once it has ended and is persisted, drop what it held: a timer may know it for as long as a lock."""
        if self.error is not None and not self.is_writing:
            self.machine = None

    def next_fetch_offset(self) -> int | None:
        """Where a fetch may read for it now; None where there is nothing to acquire, or another fetch is at it."""
        machine = self.machine
        if self.is_fetched:
            self.is_contended = True
            return None
        if machine is None or self.error is not None or not machine.can_acquire():
            return None
        return machine.next_fetch_offset()

    @property
    def is_follower(self) -> bool:
        """As of `Subscriber`: it reads as consumers do."""
        return False

    def mark_without_waking(self, key: FetchKey) -> None:
        """As of `Subscriber`: only followers are notified so."""

    def mark_dirty(self, key: FetchKey, appended_bytes: int) -> None:
        """As of `Subscriber`: something has changed in the partition."""
        if self.partition.leader is None:
            self.on_lost(self)
        else:
            self.wake()

    def wake(self, but: Waiter | None = None) -> None:
        """All fetches that wait for it look again, `but` one."""
        for waiter in list(self.waiting):
            if waiter is not but:
                waiter.wake(self)

    def has_more(self) -> bool:
        """Whether the log has records for another fetch."""
        offset, log = self.next_fetch_offset(), self.partition.log
        return offset is not None and log is not None and offset < log.high_watermark
