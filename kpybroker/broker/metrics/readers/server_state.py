"""The broker as a whole: state, session, requests that wait, fetch sessions, disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.tree import SessionEvent, SessionState, TreeEvent
from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import server as s
from kpybroker.system.processes import disk_bytes

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured

NO_LATENCY: Final = Histogram()


class StateReader:
    """`kafka.server:type=KafkaServer`, which needs no other part of the broker: also while it starts."""

    families: Final = tuple(s.BROKER)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now."""
        read, written = disk_bytes()
        state = int(self._broker.state)
        return [single((s.BROKER_STATE, state), (s.DISK_READ, read), (s.DISK_WRITTEN, written))]


class ServerReader:
    """`kafka.server:type=SessionExpireListener`, `ZooKeeperClientMetrics`, `FetchSessionCache`."""

    families: Final = (*s.SESSION, *s.TREE, *s.SESSIONS)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker
        self._sessions = dict.fromkeys(SessionState, 0)
        broker.on_tree_event(self._on_tree_event)

    def _on_tree_event(self, event: TreeEvent) -> None:
        if isinstance(event, SessionEvent):
            self._sessions[event.type] += 1

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now."""
        broker, sessions = self._broker, self._sessions
        cache = broker.fetch_service.sessions
        return [
            single(
                (s.EXPIRES, sessions[SessionState.EXPIRED]),
                (s.DISCONNECTS, sessions[SessionState.DISCONNECTED]),
                (s.SYNC_CONNECTS, sessions[SessionState.CONNECTED]),
                (s.AUTH_FAILURES, sessions[SessionState.AUTH_FAILED]),
            ),
            single((s.TREE_LATENCY, broker.tree.latency or NO_LATENCY)),
            single(
                (s.FETCH_SESSIONS, len(cache)),
                (s.FETCH_SESSION_PARTITIONS, cache.partitions),
                (s.FETCH_SESSION_EVICTIONS, cache.evictions_total),
            ),
        ]


class PurgatoryReader:
    """`kafka.server:type=DelayedOperationPurgatory`, in a walk over all partitions and groups that are here."""

    families: Final = tuple(s.PURGATORY)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Requests that wait now."""
        broker = self._broker
        produce = rebalance = heartbeat = 0
        for partition in broker.replicas:
            await budget.spend(1)
            produce += len(partition.offset_waiters.waiting)
        for group in broker.coordinators.loaded_groups:
            await budget.spend(1)
            rebalance += len(group.join_tickets) + len(group.sync_tickets)
            heartbeat += len(group.members)
        counts = {
            "Fetch": broker.fetch_service.waiting,
            "Produce": produce,
            "Rebalance": rebalance,
            "Heartbeat": heartbeat,
        }
        waiting = list(counts.values())
        return [Reading([(name,) for name in counts], [(s.DELAYED, waiting), (s.PURGATORY_SIZE, waiting)])]
