"""What a leader knows of its replicas, and the high watermark that follows from it.

Pure. On the produce and fetch path methods take and return plain integers. The high watermark is the smallest log
end offset over the in-sync replicas (the maximal ISR while a change is in flight, KIP-497) and never falls while
this leader leads.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1


class FollowerState:
    """A follower as its last fetches showed it."""

    __slots__ = ("caught_up_ms", "fetched_ms", "leader_end_at_fetch", "log_end_offset", "log_start_offset")

    def __init__(self) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.fetched_ms = 0
        self.caught_up_ms = 0
        self.leader_end_at_fetch = 0


class LeaderState:
    """One partition led by `broker_id`.

    `isr` is the committed set; `maximal_isr` adds replicas whose entry is being asked for.
    """

    __slots__ = (
        "broker_id",
        "followers",
        "high_watermark",
        "isr",
        "log_end_offset",
        "maximal_isr",
        "replicas",
    )

    def __init__(
        self, broker_id: int, replicas: list[int], isr: list[int], log_end_offset: int, high_watermark: int
    ) -> None:
        self.broker_id = broker_id
        self.replicas = list(replicas)
        self.isr = frozenset(isr)
        self.maximal_isr = self.isr
        self.log_end_offset = log_end_offset
        self.high_watermark = high_watermark
        self.followers = {replica: FollowerState() for replica in replicas if replica != broker_id}
        self.advance()

    def appended(self, log_end_offset: int) -> int:
        """The leader's own log grew; returns the high watermark."""
        self.log_end_offset = log_end_offset
        return self.advance()

    def advance(self) -> int:
        lowest = self.log_end_offset
        if self.followers:
            for replica in self.maximal_isr:
                follower = self.followers.get(replica)
                if follower is not None and follower.log_end_offset < lowest:
                    lowest = follower.log_end_offset
        if lowest > self.high_watermark:
            self.high_watermark = lowest
        return self.high_watermark

    def in_sync_count(self) -> int:
        return len(self.isr)
