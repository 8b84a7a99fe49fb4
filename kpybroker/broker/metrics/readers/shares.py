"""Share groups at this broker: what they hold of the partitions that it leads, their sessions, and its share
coordinators. As in Kafka a share partition has MBeans while it is led here and has members.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.recent import WINDOW_S, WINDOW_TICKS, RecentRates
from kpybroker.broker.replication.traffic import ShareTraffic
from kpybroker.core.features import SHARE_VERSION
from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.reading import Reading, Value, single
from kpybroker.metrics.tables import share as s

if TYPE_CHECKING:
    from kpybroker.broker.coordinators.share_states import ShareCoordinators
    from kpybroker.broker.metrics.measured import Measured
    from kpybroker.broker.share.share_partitions import SharePartitions

ACK_TYPES: Final = {"Accept": 1, "Release": 2, "Reject": 3, "Renew": 4}
"""Of `AcknowledgeType`, which is imported with the first share group."""
TRAFFIC: Final = (
    ("fetches", s.FETCHES),
    ("failed_fetches", s.FAILED_FETCHES),
    ("acknowledgements", s.ACKNOWLEDGING),
    ("failed_acknowledgements", s.FAILED_ACKNOWLEDGING),
)
"""What `ShareTraffic` counts, and where it is shown."""
PARTITION_STATES: Final = (("loading",), ("active",), ("failed",))


class SharesReader:
    """`kafka.server:type=ShareGroupMetrics`, `SharePartitionMetrics`, `ShareSessionCache`, `share-coordinator-metrics`.

    Empty where the broker has no share groups at all: Kafka 3.9 has none of these.
    """

    families: Final = s.FAMILIES

    def __init__(self, broker: Measured) -> None:
        self._broker = broker
        self._rates = RecentRates(self._counts, broker.clock.monotonic)
        self._slowest_ms: deque[float] = deque(maxlen=WINDOW_TICKS)
        self._latency: deque[tuple[int, float]] = deque([(0, 0.0)], maxlen=WINDOW_TICKS)

    def tick(self) -> None:
        """A few seconds have passed."""
        self._rates.tick()
        states = self._broker.coordinators.built_share_states
        if states is not None:
            self._slowest_ms.append(states.times.take_slowest_ms())
            self._latency.append((states.times.requests, states.times.total_ms))

    def rotate(self) -> None:
        """A window of quantiles is over."""
        if (partitions := self._broker.coordinators.built_share_partitions) is not None:
            partitions.counts.rotate()

    def _counts(self) -> dict[str, int]:
        states = self._broker.coordinators.built_share_states
        return {"writes": 0 if states is None else states.times.writes}

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """The share partitions that are led here, and the states that are kept here."""
        if SHARE_VERSION not in self._broker.features.supported:
            return []
        coordinators = self._broker.coordinators
        return [
            await self._of_topics(budget),
            *await self._of_partitions(coordinators.built_share_partitions, budget),
            *self._of_states(coordinators.built_share_states),
        ]

    async def _of_topics(self, budget: YieldBudget) -> Reading:
        """The broker in the first row, then the topics that share groups read."""
        traffic = self._broker.replicas.traffic
        total = ShareTraffic()
        if traffic.removed.shares is not None:
            total.add(traffic.removed.shares)
        rows, counted = [("",)], [total]
        for topic, of_topic in list(traffic.topics.items()):
            await budget.spend()
            if of_topic.shares is not None:
                total.add(of_topic.shares)
                rows.append((topic,))
                counted.append(of_topic.shares)
        columns: list[tuple[Family, list[Value]]] = [
            (family, [getattr(total, name), *(getattr(one, name) or None for one in counted[1:])])
            for name, family in TRAFFIC
        ]
        return Reading(rows, columns)

    async def _of_partitions(self, shares: SharePartitions | None, budget: YieldBudget) -> list[Reading]:
        acknowledged = [0 if shares is None else shares.counts.acknowledged[one] for one in ACK_TYPES.values()]
        readings = [Reading([(name,) for name in ACK_TYPES], [(s.ACKNOWLEDGEMENTS, acknowledged)])]
        if shares is None:
            return [
                *readings,
                single((s.LOAD_TIME, Histogram()), (s.SESSIONS, 0), (s.SESSION_PARTITIONS, 0), (s.EVICTIONS, 0)),
            ]
        sessions = shares.sessions
        groups = list(shares.counts.groups.items())
        rows: list[tuple[str, ...]] = []
        timeouts, in_flight, batches = [], [], []
        for led in shares.led:
            await budget.spend()
            if led.machine is not None:
                rows.append((led.key.group_id, led.partition.topic, str(led.key.partition)))
                timeouts.append(led.lock_timeouts)
                in_flight.append(led.machine.in_flight)
                batches.append(led.machine.batch_count)
        return [
            *readings,
            single(
                (s.LOAD_TIME, shares.counts.load_ms),
                (s.SESSIONS, len(sessions)),
                (s.SESSION_PARTITIONS, sessions.partitions),
                (s.EVICTIONS, sessions.evictions_total),
            ),
            Reading(
                [(name,) for name, _ in groups],
                [
                    (s.FETCH_RATIO, [times.fetch_ratio for _, times in groups]),
                    (s.ACQUIRE_TIME, [times.acquire_ms for _, times in groups]),
                ],
            ),
            Reading(rows, [(s.LOCK_TIMEOUTS, timeouts), (s.IN_FLIGHT, in_flight), (s.IN_FLIGHT_BATCHES, batches)]),
        ]

    def _of_states(self, states: ShareCoordinators | None) -> list[Reading]:
        rates = self._rates.cells([(s.WRITES, s.WRITE_RATE, "writes")])
        if states is None:
            nothing = [(family, 0.0) for family in (s.WRITE_AVG, s.WRITE_MAX, s.LOAD_MAX, s.LOAD_AVG)]
            return [single(*rates, *nothing), Reading(PARTITION_STATES, [(s.NUM_PARTITIONS, [0, 0, 0])])]
        partitions, times = states.partitions, states.times
        since_s = self._broker.clock.monotonic() - WINDOW_S
        loads = [took_s * 1000 for ended_s, took_s in partitions.loads if ended_s > since_s]
        requests, total_ms = self._latency[0]
        requests, total_ms = times.requests - requests, times.total_ms - total_ms
        slowest_ms = max(*self._slowest_ms, times.slowest_ms, 0.0)
        counts = [partitions.loading, len(partitions.shards), len(partitions.failed)]
        pruned = [((partition.topic, str(partition.index)), offset) for partition, offset in states.pruned()]
        return [
            single(
                *rates,
                (s.WRITE_AVG, total_ms / requests if requests else 0.0),
                (s.WRITE_MAX, slowest_ms),
                (s.LOAD_MAX, max(loads, default=0.0)),
                (s.LOAD_AVG, sum(loads) / len(loads) if loads else 0.0),
            ),
            Reading(PARTITION_STATES, [(s.NUM_PARTITIONS, counts)]),
            Reading([row for row, _ in pruned], [(s.PRUNED, [offset for _, offset in pruned])]),
        ]
