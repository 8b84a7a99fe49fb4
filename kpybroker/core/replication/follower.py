"""What a follower decides: where to fetch from next, and where to cut its log. Kafka's ``AbstractFetcherThread``.

Pure. A partition is either *truncating* (it must first learn from the leader where their logs diverge) or fetching.
From `inter.broker.protocol.version` 2.7 on, a fetch carries the epoch of the follower's last record, and the leader
responds with the point of divergence (KIP-595). Then only logs without epochs begin by truncating, to their high
watermark.
"""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.core.replication.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET, EpochEndOffset

_INT_MASK = 0xFFFFFFFF
_INT_MIN = -(1 << 31)


FIRST_REFUSAL_DELAY_S = 0.01
REFUSALS_MAX = 16
"""The largest count that is kept: by then the delay has reached the whole backoff."""


class FetchState:
    """One partition in a fetcher. `lag` is None until the leader has responded once; times are monotonic seconds."""

    __slots__ = (
        "delayed_until",
        "fetch_offset",
        "index",
        "is_truncating",
        "lag",
        "last_fetched_epoch",
        "leader_epoch",
        "refusals",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, index: int, topic_id: bytes, leader_epoch: int, fetch_offset: int) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.fetch_offset = fetch_offset
        self.lag: int | None = None
        self.last_fetched_epoch = UNDEFINED_EPOCH
        self.is_truncating = False
        self.delayed_until = 0.0
        self.refusals = 0

    def __repr__(self) -> str:
        return (
            f"FetchState({self.topic}-{self.index}, epoch={self.leader_epoch}, offset={self.fetch_offset}, "
            f"lastFetchedEpoch={self.last_fetched_epoch}, truncating={self.is_truncating})"
        )

    @property
    def is_in_sync(self) -> bool:
        """Whether the follower had everything the leader had at its last fetch."""
        return self.lag is not None and self.lag <= 0

    def fetched(self, next_offset: int, high_watermark: int, last_epoch: int) -> None:
        """The log has grown to `next_offset`, by batches of `last_epoch` (-1: by none)."""
        self.refusals = 0
        self.fetch_offset = next_offset
        self.lag = max(0, high_watermark - next_offset)
        if last_epoch != UNDEFINED_EPOCH:
            self.last_fetched_epoch = last_epoch

    def refused(self, now: float, backoff_s: float) -> None:
        """The leader does not know of its leadership yet: retry soon, and after a longer delay each time.

        Kafka waits for the whole backoff. After a controlled shutdown a follower may learn of the new leader first, and
        acks=all writes to that leader wait as long as the follower does.
        """
        self.delayed_until = now + min(FIRST_REFUSAL_DELAY_S * 2**self.refusals, backoff_s)
        self.refusals = min(self.refusals + 1, REFUSALS_MAX)

    def truncated(self, offset: int, latest_epoch: int, *, is_complete: bool) -> None:
        """The log ends at `offset` now."""
        self.fetch_offset = offset
        self.last_fetched_epoch = latest_epoch
        self.is_truncating = not is_complete


class FollowerLog(NamedTuple):
    """A follower's own log when it begins to follow; `latest_epoch` is -1 for a log without epochs."""

    log_end_offset: int
    high_watermark: int
    latest_epoch: int


def initial_state(
    topic: str, index: int, topic_id: bytes, leader_epoch: int, log: FollowerLog, *, truncates_on_fetch: bool
) -> FetchState:
    """How to begin to follow in a new leader epoch (ReplicaManager.initialFetchOffset, partitionFetchState)."""
    knows_epochs = truncates_on_fetch and log.latest_epoch != UNDEFINED_EPOCH
    fetch_offset = log.log_end_offset if knows_epochs else log.high_watermark
    state = FetchState(topic, index, topic_id, leader_epoch, fetch_offset)
    state.is_truncating = not knows_epochs
    if knows_epochs:
        state.last_fetched_epoch = log.latest_epoch
    return state


class Truncation(NamedTuple):
    """Truncate the log to `offset`; where that is not complete, ask the leader again."""

    offset: int
    is_complete: bool


def truncation(leader: EpochEndOffset, own: EpochEndOffset, fetch_offset: int, log_end_offset: int) -> Truncation:
    """Where to truncate, by the leader's response (AbstractFetcherThread.getOffsetTruncationState, KIP-279).

    `leader`: the largest epoch it knows that is not above the requested one, and where it ends there. `own`: the same
    for that epoch in the follower's own log. `fetch_offset` is the high watermark for a log without epochs.
    """
    if leader.end_offset == UNDEFINED_EPOCH_OFFSET:
        return Truncation(fetch_offset, True)
    if leader.epoch == UNDEFINED_EPOCH or own.epoch == UNDEFINED_EPOCH:
        return Truncation(min(leader.end_offset, log_end_offset), True)
    if own.epoch != leader.epoch:
        # The leader's epoch is unknown here: truncate to the end of the largest one below it, and ask again.
        return Truncation(min(own.end_offset, log_end_offset), False)
    return Truncation(min(own.end_offset, leader.end_offset, log_end_offset), True)


class OutOfRange(NamedTuple):
    """What to do when the leader does not have the requested offset."""

    fetch_offset: int
    truncate_to: int | None = None
    restart_at: int | None = None
    lag: int = 0


def out_of_range(log_end_offset: int, leader_start_offset: int, leader_end_offset: int) -> OutOfRange:
    """The leader's log ends before ours (an unclean election): truncate. It begins after our end: restart there.

    AbstractFetcherThread.fetchOffsetAndTruncate.
    """
    if leader_end_offset < log_end_offset:
        return OutOfRange(leader_end_offset, truncate_to=leader_end_offset)
    if leader_start_offset > log_end_offset:
        return OutOfRange(
            leader_start_offset, restart_at=leader_start_offset, lag=leader_end_offset - leader_start_offset
        )
    return OutOfRange(log_end_offset, lag=leader_end_offset - log_end_offset)


def fetcher_id(topic: str, index: int, fetchers: int) -> int:
    """Which of a leader's fetchers a partition belongs to: Kafka's, by Java's hash of the topic's name."""
    number = 0
    for unit in topic.encode():  # legal names are ASCII
        number = (31 * number + unit) & _INT_MASK
    number = (31 * number + index) & _INT_MASK
    signed = number - (1 << 32) if number >> 31 else number
    return (0 if signed == _INT_MIN else abs(signed)) % fetchers
