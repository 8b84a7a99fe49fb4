"""The groups that this broker coordinates: their states, and kafka_exporter's view with the lag of each partition.

A lag needs the high watermark of a partition. Of those that another broker leads, that broker is asked, at most for
`REMOTE_S`; the lag is -1 where there is no response.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.recent import WINDOW_S, Cell, RecentRates
from kpybroker.core.features import GROUP_VERSION
from kpybroker.core.group.values import GroupState
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import coordinators as c
from kpybroker.metrics.tables import exporter as e
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured
    from kpybroker.core.group.state import Group
    from kpybroker.core.topic_partition import PartitionKey

REMOTE_S: Final = 2.0
LIST_OFFSETS_VERSION: Final = 4
LATEST: Final = -1
UNKNOWN: Final = -1
OFFSET_COST: Final = 3
STATES: Final = {
    GroupState.STABLE: c.NUM_STABLE,
    GroupState.PREPARING_REBALANCE: c.NUM_PREPARING,
    GroupState.COMPLETING_REBALANCE: c.NUM_COMPLETING,
    GroupState.EMPTY: c.NUM_EMPTY,
    GroupState.DEAD: c.NUM_DEAD,
}
COUNTS: Final = (
    (c.OFFSET_COMMITS, c.OFFSET_COMMIT_RATE, "offset_commits"),
    (c.OFFSET_EXPIRATIONS, c.OFFSET_EXPIRATION_RATE, "offset_expirations"),
    (c.OFFSET_DELETIONS, c.OFFSET_DELETION_RATE, "offset_deletions"),
    (c.COMPLETED_REBALANCES, c.COMPLETED_REBALANCE_RATE, "completed_rebalances"),
)
"""Of Kafka 3.9 too; the last element is the name in `GroupCounts`."""
CONSUMER_COUNTS: Final = ((c.CONSUMER_REBALANCES, c.CONSUMER_REBALANCE_RATE, "consumer_rebalances"),)
SHARE_COUNTS: Final = ((c.SHARE_REBALANCES, c.SHARE_REBALANCE_RATE, "share_rebalances"),)
STREAMS_COUNTS: Final = ((c.STREAMS_REBALANCES, c.STREAMS_REBALANCE_RATE, "streams_rebalances"),)
COUNTS_OF_4: Final = (*COUNTS, *CONSUMER_COUNTS, *SHARE_COUNTS, *STREAMS_COUNTS)
PROTOCOLS: Final = (("classic",), ("consumer",), ("share",), ("streams",))
PARTITION_STATES: Final = (("loading",), ("active",), ("failed",))
CONSUMER_STATES: Final = (("Empty",), ("Assigning",), ("Reconciling",), ("Stable",), ("Dead",))
"""Of consumer groups; a dead one is in no table, here and in Kafka."""
SHARE_STATES: Final = (("Empty",), ("Stable",), ("Dead",))
"""Of share groups."""
STREAMS_STATES: Final = (("Empty",), ("NotReady",), ("Assigning",), ("Reconciling",), ("Stable",), ("Dead",))
"""Of streams groups."""


class GroupsReader:
    """`kafka.coordinator.group:type=GroupMetadataManager`, `kafka.server:type=group-coordinator-metrics`, and the
    members of each group.
    """

    families: Final = (*c.FAMILIES, e.MEMBERS)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker
        self._rates = RecentRates(self._counts, broker.clock.monotonic)

    def tick(self) -> None:
        """A few seconds have passed."""
        self._rates.tick()

    def _counts(self) -> dict[str, int]:
        built = self._broker.coordinators.built_groups
        names = [name for _, _, name in COUNTS_OF_4]
        return {name: 0 if built is None else getattr(built.counts, name) for name in names}

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """The groups that are loaded."""
        groups = list(self._broker.coordinators.loaded_groups)
        classic = Counter(group.state for group in groups if group.modern is None)
        consumer = Counter(group.consumer.state.value for group in groups if group.consumer is not None)
        streams = Counter(group.streams.state.value for group in groups if group.streams is not None)
        shares = Counter(group.state.value for group in self._broker.coordinators.loaded_share_groups)
        offsets = sum(len(group.offsets.committed) for group in groups)
        counts = [(family, classic[state]) for state, family in STATES.items()]
        counted = [len(group.members if group.modern is None else group.modern.members) for group in groups]
        members = Reading([(group.group_id,) for group in groups], [(e.MEMBERS, counted)])
        readings = [single((c.NUM_GROUPS, classic.total()), (c.NUM_OFFSETS, offsets), *counts), members]
        if GROUP_VERSION not in self._broker.features.supported:
            return [*readings, single(*self._loads(), *self._rates.cells(COUNTS))]
        return [
            *readings,
            Reading(PROTOCOLS, [(c.GROUP_COUNT, [kind.total() for kind in (classic, consumer, shares, streams)])]),
            Reading(CONSUMER_STATES, [(c.CONSUMER_GROUP_COUNT, [consumer[state] for (state,) in CONSUMER_STATES])]),
            Reading(SHARE_STATES, [(c.SHARE_GROUP_COUNT, [shares[state] for (state,) in SHARE_STATES])]),
            Reading(STREAMS_STATES, [(c.STREAMS_GROUP_COUNT, [streams[state] for (state,) in STREAMS_STATES])]),
            Reading(PARTITION_STATES, [(c.NUM_PARTITIONS, self._partitions())]),
            single(*self._loads(), *self._rates.cells(COUNTS_OF_4)),
        ]

    def _loads(self) -> list[Cell]:
        built = self._broker.coordinators.built_groups
        since_s = self._broker.clock.monotonic() - WINDOW_S
        loads = (
            [] if built is None else [took_s * 1000 for ended_s, took_s in built.partitions.loads if ended_s > since_s]
        )
        return [(c.LOAD_MAX, max(loads, default=0.0)), (c.LOAD_AVG, sum(loads) / len(loads) if loads else 0.0)]

    def _partitions(self) -> list[int]:
        built = self._broker.coordinators.built_groups
        if built is None:
            return [0] * len(PARTITION_STATES)
        return [built.partitions.loading, len(built.partitions.shards), len(built.partitions.failed)]


class LagsReader:
    """`kafka_consumergroup_*` of partitions and topics."""

    families: Final = (e.GROUP_OFFSET, e.LAG, e.GROUP_OFFSET_SUM, e.LAG_SUM)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """The committed offsets of the groups that are loaded."""
        groups = list(self._broker.coordinators.loaded_groups)
        ends = await self._ends_elsewhere(groups, budget)
        rows, committed, lags = [], [], []
        sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        for group in groups:
            for (topic, index), stored in list(group.offsets.committed.items()):
                await budget.spend(OFFSET_COST)
                offset = stored.value.offset
                end = self._end_here(topic, index)
                end = ends.get((topic, index), UNKNOWN) if end is None else end
                lag = UNKNOWN if end == UNKNOWN or offset < 0 else max(end - offset, 0)
                rows.append((group.group_id, str(index), topic))
                committed.append(offset)
                lags.append(lag)
                of_topic = sums[group.group_id, topic]
                of_topic[0] += max(offset, 0)
                of_topic[1] += max(lag, 0)
        sum_columns = [
            (e.GROUP_OFFSET_SUM, [one[0] for one in sums.values()]),
            (e.LAG_SUM, [one[1] for one in sums.values()]),
        ]
        return [Reading(rows, [(e.GROUP_OFFSET, committed), (e.LAG, lags)]), Reading(list(sums), sum_columns)]

    def _end_here(self, topic: str, index: int) -> int | None:
        partition = self._broker.replicas.partition(topic, index)
        if partition is None or partition.leader is None or partition.log is None:
            return None
        return partition.log.high_watermark

    async def _ends_elsewhere(self, groups: Sequence[Group], budget: YieldBudget) -> dict[PartitionKey, int]:
        """The high watermarks that other brokers report for partitions in which these groups have offsets."""
        wanted: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        snapshot = self._broker.metadata.snapshot
        for group in groups:
            for topic, index in list(group.offsets.committed):
                await budget.spend(1)
                state = snapshot.partition(topic, index)
                if state is not None and state.leader in snapshot.brokers and state.leader != self._broker.node_id:
                    wanted[state.leader][topic].add(index)
        ends: dict[PartitionKey, int] = {}
        if wanted:
            with trio.move_on_after(REMOTE_S):
                async with trio.open_nursery() as nursery:
                    for broker_id, topics in wanted.items():
                        nursery.start_soon(self._ask, broker_id, topics, ends)
        return ends

    async def _ask(self, broker_id: int, topics: dict[str, set[int]], ends: dict[PartitionKey, int]) -> None:
        request = ListOffsetsRequest(
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
                        for index in indexes
                    ],
                )
                for topic, indexes in topics.items()
            ]
        )
        try:
            response: ListOffsetsResponse = await self._broker.peers.ask(
                broker_id, ApiKey.LIST_OFFSETS, request, LIST_OFFSETS_VERSION
            )
        except (OSError, ProtocolError):
            return
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    ends[topic.name, partition.partition_index] = partition.offset
