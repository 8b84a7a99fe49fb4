"""What a test holds back in the brokers of a process: elections, followers, versions of APIs.

One `Holds` is shared by all brokers of a process, so that a hold survives the election of another leader or controller,
and the start of a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from kpybroker.broker.replication.fetch_visit import NO_LIMIT
from kpybroker.core.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.requests.context import ConnectionInfo
    from kpybroker.broker.requests.served.version_cap import CapOf, VersionCap

Replica = tuple[str, int, int]
"""(topic, partition, broker id)."""


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

    def install(self, broker: Broker) -> None:
        """Hold back in a broker that is about to start, from now on."""
        broker.controller.leaderless = self.leaderless
        broker.fetch_service.follower_end = self.end_of
        broker.dispatcher.cap_of = partial(self.cap_of, broker, broker.dispatcher.cap_of)

    def cap_of(self, broker: Broker, configured: CapOf, connection: ConnectionInfo) -> VersionCap | None:
        """What a broker serves a client at most; `configured` says it while no cap is held."""
        cap = self.version_caps.get(broker.node_id)
        if cap is None or self.is_peer(connection.client_host, connection.client_port):
            return configured(connection)
        return cap

    def end_of(self, topic: str, partition: int, broker_id: int) -> int:
        """How far a follower gets: an offset, UNSEEN, or NO_LIMIT."""
        return self.follower_ends.get((topic, partition, broker_id), NO_LIMIT)

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
