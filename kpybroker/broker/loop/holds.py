"""What a test holds back in the brokers of a process: leaders that may not be elected, followers that may not catch up.

Empty in production. One `Holds` is shared by all brokers of a process, so that a hold survives the election of another
leader or controller.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpybroker.core.topic_partition import TopicPartition

Replica = tuple[str, int, int]
"""(topic, partition, broker id)."""

UNSEEN = -1
"""In place of an offset: the leader ignores all fetches of this follower."""


class Holds:
    """`leaderless`: no leader is elected for these. `follower_ends`: how far followers get, an offset or UNSEEN."""

    __slots__ = ("_limits", "follower_ends", "leaderless")

    def __init__(self) -> None:
        self.leaderless: set[TopicPartition] = set()
        self.follower_ends: dict[Replica, int] = {}
        self._limits: dict[object, dict[Replica, int]] = {}

    def limit(self, owner: object, followers: dict[Replica, int]) -> None:
        """Hold these followers back until `free`; of several limits of one follower, the lowest counts."""
        self._limits[owner] = followers
        self._recount()

    def free(self, owner: object) -> Iterator[Replica]:
        """End the limits that `owner` has set; the followers that they were for."""
        followers = self._limits.pop(owner, {})
        self._recount()
        return iter(followers)

    def _recount(self) -> None:
        self.follower_ends = {}
        for followers in self._limits.values():
            for replica, end in followers.items():
                self.follower_ends[replica] = min(end, self.follower_ends.get(replica, end))
