"""Which fetcher follows which partition: Kafka's `ReplicaFetcherManager`.

Each leader has up to `num.replica.fetchers` fetchers. One starts with its first partition and ends after its last. No
method but `stop` has a checkpoint, so a change never interrupts a fetcher's step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.replication.replication_quota import FOLLOWER, ReplicationQuota
from kpybroker.core.replication.follower import FetchState, fetcher_id
from kpybroker.core.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.follower_fetcher import FollowedReplicas, FollowerFetcher


class FollowerFetchers:
    """All fetchers of this broker, by leader and number. `len` counts those that run."""

    def __init__(self, host: Host, peers: Peers, replicas: FollowedReplicas) -> None:
        self._host = host
        self._peers = peers
        self._replicas = replicas
        self._fetchers: dict[tuple[int, int], FollowerFetcher] = {}
        self._where: dict[TopicPartition, tuple[int, int]] = {}
        self._running = 0
        self._all_ended = trio.Event()
        self._stopped = False
        self._count = host.config.get_int("num.replica.fetchers")
        self._quota = ReplicationQuota(host.config, FOLLOWER)

    def __len__(self) -> int:
        return len(self._fetchers)

    @property
    def max_lag(self) -> int:
        """The records that the last fetch left of the partition that is furthest behind."""
        fetchers = self._fetchers.values()
        return max((state.lag or 0 for one in fetchers for state in one.partitions.values()), default=0)

    def follow(self, leader_id: int, state: FetchState) -> None:
        """Fetch a partition from this leader from now on, and from no other."""
        key = TopicPartition(state.topic, state.index)
        self.leave((key,))
        if self._stopped:
            return
        place = (leader_id, fetcher_id(state.topic, state.index, self._count))
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = self._fetchers[place] = self.new_fetcher(*place)
            self._host.spawn(f"ReplicaFetcherThread-{place[1]}-{leader_id}", self._run, fetcher)
        self._where[key] = place
        fetcher.follow(state)

    def new_fetcher(self, leader_id: int, number: int) -> FollowerFetcher:
        """One that does not run yet. Imported here: a single broker needs none."""
        from kpybroker.broker.replication.follower_fetcher import FollowerFetcher
        from kpybroker.broker.replication.leader_endpoint import LeaderEndpoint

        endpoint = LeaderEndpoint(self._host, self._peers, leader_id, number)
        return FollowerFetcher(self._host, self._replicas, endpoint, self._quota)

    def leave(self, keys: Iterable[TopicPartition]) -> None:
        """Stop fetching these partitions; those that no fetcher has are passed over."""
        for key in keys:
            place = self._where.pop(key, None)
            if place is not None:
                self._fetchers[place].leave(key)

    def set_topic_id(self, key: TopicPartition, topic_id: bytes) -> None:
        """A topic from before KIP-516 has got its id."""
        if (place := self._where.get(key)) is not None:
            self._fetchers[place].set_topic_id(key, topic_id)

    def end_idle(self) -> None:
        """End the fetchers that have no partitions left."""
        busy = set(self._where.values())
        for place in [place for place in self._fetchers if place not in busy]:
            self._fetchers.pop(place).end()

    async def stop(self) -> None:
        """End all fetchers, for good; returns when none of them touches a log any more."""
        self._stopped = True
        for fetcher in self._fetchers.values():
            fetcher.end()
        self._fetchers.clear()
        self._where.clear()
        if self._running:
            await self._all_ended.wait()

    async def _run(self, fetcher: FollowerFetcher) -> None:
        self._running += 1
        try:
            await fetcher.run()  # returns at once if it was ended before, as one that failed and is restarted may be
        finally:
            self._running -= 1
            if not self._running:
                self._all_ended.set()
                self._all_ended = trio.Event()

    def resize(self, _changed: frozenset[str]) -> None:
        """A listener for changes of broker keys: spread the partitions again if `num.replica.fetchers` has changed."""
        count = self._host.config.get_int("num.replica.fetchers")
        if count == self._count:
            return
        self._count = count
        moved = [
            (leader_id, state)
            for (leader_id, _), fetcher in list(self._fetchers.items())
            for state in list(fetcher.partitions.values())
        ]
        for leader_id, state in moved:
            self.follow(leader_id, state)
        self.end_idle()
