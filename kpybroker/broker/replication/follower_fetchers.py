"""Which fetcher follows which partition: Kafka's `ReplicaFetcherManager`.

`num.replica.fetchers` fetchers a leader, made when the first partition needs one and ended with the last. All changes
happen in one turn of the loop, between two steps of the fetchers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.replication.replication_quota import FOLLOWER, ReplicationQuota
from kpybroker.core.replication.follower import FetchState, fetcher_id
from kpybroker.storage.disk.names import TopicPartition

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.follower_fetcher import Fetcher


class Fetchers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._where: dict[TopicPartition, tuple[int, int]] = {}
        self._running = 0
        self._all_ended = trio.Event()
        self._stopped = False
        self._count = broker.config.get_int("num.replica.fetchers")
        self.quota = ReplicationQuota(broker, FOLLOWER)
        broker.configs.on_broker_change(self._resize)

    def __len__(self) -> int:
        return len(self._fetchers)

    def follow(self, leader_id: int, state: FetchState) -> None:
        """Fetch a partition from a leader from now on; from nobody else."""
        key = TopicPartition(state.topic, state.index)
        self.leave((key,))
        if self._stopped:
            return
        place = (leader_id, fetcher_id(state.topic, state.index, self._count))
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            from kpybroker.broker.replication.follower_fetcher import Fetcher  # a broker alone needs none

            fetcher = self._fetchers[place] = Fetcher(self._broker, *place, self.quota)
            self._running += 1
            self._broker.spawn(f"ReplicaFetcherThread-{place[1]}-{leader_id}", self._run, fetcher)
        self._where[key] = place
        fetcher.follow(state)

    def leave(self, keys: Iterable[TopicPartition]) -> None:
        """Fetch these no more."""
        for key in keys:
            place = self._where.pop(key, None)
            if place is not None:
                self._fetchers[place].leave(key)

    def set_topic_id(self, key: TopicPartition, topic_id: bytes) -> None:
        """A topic of before KIP-516 got its id."""
        if (place := self._where.get(key)) is not None:
            self._fetchers[place].set_topic_id(key, topic_id)

    def end_idle(self) -> None:
        """Fetchers without partitions end."""
        busy = set(self._where.values())
        for place in [place for place in self._fetchers if place not in busy]:
            self._fetchers.pop(place).end()

    async def stop(self) -> None:
        """No more fetching; returns when no fetcher touches a log any more."""
        self._stopped = True
        for fetcher in self._fetchers.values():
            fetcher.end()
        self._fetchers.clear()
        self._where.clear()
        if self._running:
            await self._all_ended.wait()

    async def _run(self, fetcher: Fetcher) -> None:
        try:
            await fetcher.run()
        finally:
            if fetcher.has_ended:  # else it failed, and is started again
                self._running -= 1
                if not self._running:
                    self._all_ended.set()
                    self._all_ended = trio.Event()

    def _resize(self, _changed: frozenset[str]) -> None:
        """`num.replica.fetchers` changed: every partition goes where it belongs by the new count."""
        count = self._broker.config.get_int("num.replica.fetchers")
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
