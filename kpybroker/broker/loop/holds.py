"""What a test holds back in the brokers of a process: elections, followers, versions of APIs.

Empty in production. One `Holds` is shared by all brokers of a process, so that a hold survives the election of another
leader or controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import ApiKey

Replica = tuple[str, int, int]
"""(topic, partition, broker id)."""

UNSEEN = -1
"""In place of an offset: the leader ignores all fetches of this follower."""


class VersionCap(NamedTuple):
    """What a broker serves to clients, (oldest, newest) by API; and whether it names the range of ApiVersions to a
    client that asked with a newer version (KIP-511)."""

    served: Mapping[ApiKey, tuple[int, int]]
    lists_own_range: bool = True


class Holds:
    """`leaderless`: no leader is elected for these. `follower_ends`: how far followers get, an offset or UNSEEN.
    `version_caps`: by broker. `is_peer`: whether a client at (host, port) is a broker, which no cap concerns.
    """

    __slots__ = ("_limits", "follower_ends", "is_peer", "leaderless", "version_caps")

    def __init__(self, is_peer: Callable[[str, int], bool] = lambda host, port: False) -> None:
        self.is_peer = is_peer
        self.version_caps: dict[int, VersionCap] = {}
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
