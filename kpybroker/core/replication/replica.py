"""What a leader knows of its replicas: the high watermark that follows from it, and who is in sync.

Pure. On the produce and fetch path methods take and return plain integers. Rules of Kafka's `Partition` and `Replica`:

- The high watermark is the smallest log end offset over the *maximal* ISR (KIP-497: the committed one and whoever asks
  to be let in), and over replicas that are about to ask. It never falls while this leader leads, and does not rise
  while the ISR is below `min.insync.replicas`.
- One change of the ISR is under way at a time. What it takes out still counts until the controller has agreed, what it
  puts in counts at once.
- A follower is in sync while it reads at the leader's end at least every `replica.lag.time.max.ms`; it may come back
  once it has reached the high watermark and the start of this leader's epoch.

Differs from Kafka in one place: a quiet follower's session is not looked at partition by partition on each fetch. A
`Contact` tells when the session was used last, and is asked when the follower falls behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from enum import Enum
from typing import NamedTuple, Protocol

from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.batch import UNKNOWN_OFFSET

SMALL_SET_MAX = 4


class Contact(Protocol):
    """The way a follower reaches this leader; a fetch session is one."""

    last_used_ms: int


class FollowerState:
    """A follower as its last fetches showed it. Times in milliseconds of the leader's clock."""

    __slots__ = ("caught_up_ms", "contact", "fetched_ms", "leader_end_at_fetch", "log_end_offset", "log_start_offset")

    def __init__(self, caught_up_ms: int) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.fetched_ms = 0
        self.caught_up_ms = caught_up_ms
        self.leader_end_at_fetch = UNKNOWN_OFFSET
        self.contact: Contact | None = None

    def fetched(self, offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """It asks for `offset`, so it has everything below (Replica.updateFetchStateOrThrow)."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_fetch:
            # It has now what was the end when it asked last: then it was caught up.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_fetch = max(leader_end_offset, self.leader_end_at_fetch)
        self.fetched_ms = now_ms

    def falls_behind(self) -> None:
        """The leader's log grows beyond it: until its last contact it was caught up."""
        if self.contact is not None:
            self.fetched_ms = max(self.fetched_ms, self.contact.last_used_ms)
            self.caught_up_ms = max(self.caught_up_ms, self.contact.last_used_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_max_ms


class IsrChange(NamedTuple):
    """What the controller is asked for; compared by identity."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class Verdict(Enum):
    """What follows from the controller's answer to a change."""

    COMMITTED = "committed"
    RETRY = "retry"
    DROPPED = "dropped"


_NOT_APPLIED = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""With these the controller says that the partition epoch was right and that nothing was done, ever."""

_OVERTAKEN = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""Leadership has moved or is about to: the change stays open, the controller's next word ends it."""


class LeaderState:
    """One partition led by `broker_id` in `leader_epoch`, which began at `epoch_start_offset`.

    `isr` is the committed set; `maximal_isr` adds replicas whose entry is being asked for. The order in which the
    controller names them is kept, since tools show it.
    """

    __slots__ = (
        "broker_id",
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "isr",
        "isr_order",
        "leader_epoch",
        "log_end_offset",
        "maximal_isr",
        "partition_epoch",
        "pending",
    )

    def __init__(self, broker_id: int, log_end_offset: int, high_watermark: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = log_end_offset
        self.high_watermark = high_watermark
        self.epoch_start_offset = log_end_offset
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr_order: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.maximal_isr = self.isr
        self.pending: IsrChange | None = None
        self.followers: dict[int, FollowerState] = {}

    def take_epoch(
        self, leader_epoch: int, partition_epoch: int, replicas: Iterable[int], isr: Iterable[int], now_ms: int
    ) -> None:
        """The controller's word: lead in this epoch. What was asked of it before is void.

        A leader that is elected again keeps what it knows of its followers, and gives those in the ISR time anew.
        """
        self.leader_epoch = leader_epoch
        self._take_isr(isr, partition_epoch)
        self.epoch_start_offset = self.log_end_offset
        known, self.followers = self.followers, {}
        for replica in replicas:
            if replica == self.broker_id:
                continue
            caught_up_ms = now_ms if replica in self.isr else 0
            follower = known.get(replica)
            if follower is None:
                follower = FollowerState(caught_up_ms)
            else:
                follower.leader_end_at_fetch = self.log_end_offset
                follower.fetched_ms = follower.caught_up_ms = caught_up_ms
                follower.contact = None
            self.followers[replica] = follower

    # --- the high watermark

    def appended(self, log_end_offset: int) -> int:
        """The leader's own log grew; returns the high watermark of a partition without followers.

        With followers `advance` is to be called.
        """
        if self.followers:
            for follower in self.followers.values():
                if follower.log_end_offset == self.log_end_offset:
                    follower.falls_behind()
            self.log_end_offset = log_end_offset
            return self.high_watermark
        self.log_end_offset = log_end_offset
        if log_end_offset > self.high_watermark:
            self.high_watermark = log_end_offset
        return self.high_watermark

    def advance(self, min_isr: int, now_ms: int, lag_max_ms: int, is_alive: Callable[[int], bool]) -> int:
        """The high watermark after a change of log ends or of the ISR (Partition.maybeIncrementLeaderHW)."""
        if len(self.isr) < self.effective_min_isr(min_isr):
            return self.high_watermark
        lowest = end = self.log_end_offset
        for replica, follower in self.followers.items():
            if follower.log_end_offset < lowest and (
                replica in self.maximal_isr
                # About to ask for the ISR: would it have to wait for a moving high watermark, it never could.
                or (follower.is_caught_up(end, now_ms, lag_max_ms) and is_alive(replica))
            ):
                lowest = follower.log_end_offset
        if lowest > self.high_watermark:
            self.high_watermark = lowest
        return self.high_watermark

    def effective_min_isr(self, min_isr: int) -> int:
        """`min.insync.replicas`, but never more than there are replicas."""
        return min(min_isr, len(self.followers) + 1)

    # --- fetches of followers

    def fetched(
        self, replica: int, offset: int, log_start_offset: int, now_ms: int, contact: Contact | None = None
    ) -> bool:
        """A follower asks for `offset`; whether that is another log end than before."""
        follower = self.followers[replica]
        before = follower.log_end_offset
        follower.fetched(offset, log_start_offset, self.log_end_offset, now_ms)
        follower.contact = contact
        return before != offset

    def low_watermark(self, log_start_offset: int, is_alive: Callable[[int], bool]) -> int:
        """The smallest log start over the live replicas: records below it are gone everywhere."""
        starts = [f.log_start_offset for replica, f in self.followers.items() if is_alive(replica)]
        return min(log_start_offset, *starts) if starts else log_start_offset

    # --- the in-sync replicas

    def may_join(self, replica: int) -> bool:
        """Whether a follower that has just fetched is to be let into the ISR."""
        if self.pending is not None or replica in self.isr:
            return False
        end = self.followers[replica].log_end_offset
        return end >= self.high_watermark and end >= self.epoch_start_offset

    def out_of_sync(self, now_ms: int, lag_max_ms: int) -> frozenset[int]:
        """Members of the ISR that have been behind for too long; none while a change is under way."""
        if self.pending is not None:
            return frozenset()
        end = self.log_end_offset
        return frozenset(
            replica
            for replica in self.isr
            if replica != self.broker_id
            and not (
                (follower := self.followers.get(replica)) is not None and follower.is_caught_up(end, now_ms, lag_max_ms)
            )
        )

    def _take_isr(self, isr: Iterable[int], partition_epoch: int) -> None:
        """The committed state; nothing is asked for any more."""
        self.isr_order = tuple(isr)
        self.isr = self.maximal_isr = frozenset(self.isr_order)
        self.partition_epoch = partition_epoch
        self.pending = None

    def propose(self, isr: Set[int]) -> IsrChange:
        """Begin a change; until it is settled the maximal ISR counts.

        Who stays keeps his place and who joins comes last, as in Scala's small sets; in its larger ones the order is
        that of the hashes, which are the ids.
        """
        assert self.pending is None, "one change of the ISR at a time"
        order = (*(i for i in self.isr_order if i in isr), *sorted(isr - self.isr))
        order = order if len(order) <= SMALL_SET_MAX else tuple(sorted(order))
        self.pending = IsrChange(order, self.leader_epoch, self.partition_epoch)
        self.maximal_isr = self.isr | isr
        return self.pending

    def agreed(self, change: IsrChange, leader_epoch: int, partition_epoch: int, isr: Iterable[int]) -> Verdict:
        """The controller's state of the partition, in answer to a change (Partition.handleAlterPartitionUpdate)."""
        if self.pending is not change or leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return Verdict.DROPPED
        self._take_isr(isr, partition_epoch)
        return Verdict.COMMITTED

    def refused(self, change: IsrChange, error: int) -> Verdict:
        """The controller's error for a change (Partition.handleAlterPartitionError)."""
        if self.pending is not change:
            return Verdict.DROPPED
        if error in _NOT_APPLIED:
            self.maximal_isr = self.isr
            self.pending = None
            return Verdict.DROPPED
        return Verdict.DROPPED if error in _OVERTAKEN else Verdict.RETRY
