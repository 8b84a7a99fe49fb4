"""What a leader knows of its replicas: the high watermark, and which replicas are in sync.

Pure. On the produce and fetch path methods take and return plain integers. Rules of Kafka's `Partition` and `Replica`:

- The high watermark is the smallest log end offset over the *maximal* ISR (KIP-497: the committed one, and replicas
  that a pending change adds), and over replicas that are about to be added. It never falls while this leader leads, and
  does not rise while the ISR is below `min.insync.replicas`.
- At most one change of the ISR is pending. A replica that it removes still counts until the controller has agreed; one
  that it adds counts at once.
- A follower is in sync while it reads at the leader's end at least every `replica.lag.time.max.ms`; it may rejoin once
  it has reached the high watermark and the start of this leader's epoch.

Differs from Kafka in one place: an idle follower's partitions are not visited on each of its fetches. A `Contact` holds
the time when the session was last used, and is read when the follower falls behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from kpybroker.core.topic_partition import shared
from kpybroker.wire.constants import UNKNOWN_OFFSET
from kpybroker.wire.errors import ErrorCode

SMALL_SET_MAX = 4


class Contact(Protocol):
    """When a follower last contacted this leader; a fetch session is one."""

    last_used_ms: int


class FollowerState:
    """A follower as of its last fetch. Times are milliseconds of the leader's clock."""

    __slots__ = ("caught_up_ms", "contact", "fetched_ms", "leader_end_at_fetch", "log_end_offset", "log_start_offset")

    def __init__(self, caught_up_ms: int) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.fetched_ms = 0
        self.caught_up_ms = caught_up_ms
        self.leader_end_at_fetch = UNKNOWN_OFFSET
        self.contact: Contact | None = None

    def fetched(self, offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """The follower fetches from `offset`, so it has everything below (Replica.updateFetchStateOrThrow)."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_fetch:
            # It has reached what was the end at its previous fetch: at that time it was caught up.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_fetch = max(leader_end_offset, self.leader_end_at_fetch)
        self.fetched_ms = now_ms

    def falls_behind(self) -> None:
        """The leader's log grows beyond the follower's, which was caught up until its last contact."""
        if self.contact is not None:
            self.fetched_ms = max(self.fetched_ms, self.contact.last_used_ms)
            self.caught_up_ms = max(self.caught_up_ms, self.contact.last_used_ms)

    def was_long_ago(self) -> None:
        """From now on it counts as one that has not been caught up for long."""
        self.caught_up_ms = self.fetched_ms = 0
        self.contact = None

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Whether it is at the leader's end, or was so within `lag_max_ms`."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_max_ms


class IsrChange(NamedTuple):
    """A change that the controller is asked for; compared by identity."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class Verdict(Enum):
    """What follows from the controller's response to a change."""

    COMMITTED = "committed"
    RETRY = "retry"
    DROPPED = "dropped"


_NOT_APPLIED = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""With these errors the partition epoch was right and the change will never be applied."""

_OVERTAKEN = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""Leadership has moved or is about to: the change stays pending until the controller's next LeaderAndIsr."""


NO_FOLLOWERS: Final[Mapping[int, FollowerState]] = MappingProxyType({})
"""Of a leader that is the only replica; a dict of its own costs 64 bytes."""


class LeaderState:
    """One partition led by `broker_id` in `leader_epoch`, which began at `epoch_start_offset`.

    `isr` is the committed set; `maximal_isr` adds replicas that a pending change adds. The controller's order is kept,
    since tools show it.
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
        self.followers: Mapping[int, FollowerState] = NO_FOLLOWERS

    def take_epoch(
        self, leader_epoch: int, partition_epoch: int, replicas: Iterable[int], isr: Iterable[int], now_ms: int
    ) -> None:
        """Lead in this epoch, as the controller orders; a pending change of the ISR is dropped.

        A leader that is elected again keeps what it knows of its followers; those in the ISR count as caught up now.
        """
        assert leader_epoch > self.leader_epoch, f"leader epoch {leader_epoch} after {self.leader_epoch}"
        self.leader_epoch = leader_epoch
        self._take_isr(isr, partition_epoch)
        self.epoch_start_offset = self.log_end_offset
        known, followers = self.followers, {}
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
            followers[replica] = follower
        self.followers = followers or NO_FOLLOWERS

    # --- the high watermark

    def appended(self, log_end_offset: int) -> int:
        """The leader's own log has grown; returns the high watermark, which is up to date without followers.

        With followers, call `advance` next.
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
                # About to join the ISR: if the high watermark could pass it, it might never reach it.
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
        """Note a follower's fetch from `offset`; True where its log end has changed."""
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
        """Whether a follower that has just fetched qualifies for the ISR."""
        if self.pending is not None or replica in self.isr:
            return False
        end = self.followers[replica].log_end_offset
        return end >= self.high_watermark and end >= self.epoch_start_offset

    def out_of_sync(self, now_ms: int, lag_max_ms: int) -> frozenset[int]:
        """Members of the ISR that have been behind for too long; none while a change is pending."""
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

    def end_offset_text(self, replica: int) -> str:
        """A follower's log end, for the log; "unknown" of a member of the ISR that is no replica any more."""
        follower = self.followers.get(replica)
        return "unknown" if follower is None else str(follower.log_end_offset)

    def _take_isr(self, isr: Iterable[int], partition_epoch: int) -> None:
        """Set the committed ISR; no change is pending any more."""
        self.isr_order = shared(tuple(isr))
        self.isr = self.maximal_isr = shared(frozenset(self.isr_order))
        self.partition_epoch = partition_epoch
        self.pending = None

    def propose(self, isr: Set[int]) -> IsrChange:
        """Begin a change; until it is settled the maximal ISR counts.

        Members that stay keep their order and new ones follow, as in Scala's sets of up to four; larger ones are in the
        order of hashes, which are the ids.
        """
        assert self.pending is None, "one change of the ISR at a time"
        added, replicas = isr - self.isr, {self.broker_id, *self.followers}
        assert added <= replicas, f"{set(added)} would join the ISR of {replicas}"
        order = (*(i for i in self.isr_order if i in isr), *sorted(added))
        order = order if len(order) <= SMALL_SET_MAX else tuple(sorted(order))
        self.pending = IsrChange(order, self.leader_epoch, self.partition_epoch)
        self.maximal_isr = self.isr | isr
        return self.pending

    def agreed(self, change: IsrChange, leader_epoch: int, partition_epoch: int, isr: Iterable[int]) -> Verdict:
        """Apply the state that the controller returned for a change (Partition.handleAlterPartitionUpdate)."""
        if self.pending is not change or leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return Verdict.DROPPED
        self._take_isr(isr, partition_epoch)
        return Verdict.COMMITTED

    def refused(self, change: IsrChange, error: int) -> Verdict:
        """Apply the error that the controller returned for a change (Partition.handleAlterPartitionError)."""
        if self.pending is not change:
            return Verdict.DROPPED
        if error in _NOT_APPLIED:
            self.maximal_isr = self.isr
            self.pending = None
            return Verdict.DROPPED
        return Verdict.DROPPED if error in _OVERTAKEN else Verdict.RETRY
