"""Traffic by topic, and of the broker. As in Kafka a topic has an MBean only for what it has counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.replication.traffic import TopicTraffic, Traffic
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.reading import Reading, Value
from kpybroker.metrics.tables import topics as t

FREQUENT: Final = (
    ("bytes_in", t.BYTES_IN),
    ("messages_in", t.MESSAGES_IN),
    ("produce_requests", t.PRODUCE_REQUESTS),
    ("bytes_out", t.BYTES_OUT),
    ("fetch_requests", t.FETCH_REQUESTS),
)
RARE: Final = (
    ("failed_produce_requests", t.FAILED_PRODUCE_REQUESTS),
    ("failed_fetch_requests", t.FAILED_FETCH_REQUESTS),
    ("bytes_rejected", t.BYTES_REJECTED),
    ("invalid_crc", t.INVALID_CRC),
    ("produce_conversions", t.PRODUCE_CONVERSIONS),
    ("fetch_conversions", t.FETCH_CONVERSIONS),
)
"""What `TopicTraffic` and `RareTraffic` count, and where it is shown."""


class TopicsReader:
    """`kafka.server:type=BrokerTopicMetrics`."""

    families: Final = t.FAMILIES

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """The broker in the first row, then the topics."""
        traffic = self._traffic
        total = TopicTraffic()
        total.add(traffic.removed)
        rows = [("",)]
        columns: dict[Family, list[Value]] = {family: [] for _, family in (*FREQUENT, *RARE)}
        for topic, counted in list(traffic.topics.items()):
            await budget.spend()
            if counted.is_idle:
                continue
            total.add(counted)
            rows.append((topic,))
            for column, value in zip(columns.values(), _values(counted), strict=True):
                column.append(value or None)
        for column, value in zip(columns.values(), _values(total), strict=True):
            column.insert(0, value)
        rest: list[Value] = [None] * (len(rows) - 1)
        columns[t.INVALID_CRC][1:] = rest  # as in Kafka, whose validator does not know the topic
        only_broker = [
            (t.REPLICATION_BYTES_IN, [traffic.replication_bytes_in, *rest]),
            (t.REPLICATION_BYTES_OUT, [traffic.replication_bytes_out, *rest]),
        ]
        return [Reading(rows, [*columns.items(), *only_broker])]


def _values(counted: TopicTraffic) -> list[int]:
    """In the order of FREQUENT and RARE."""
    frequent = [getattr(counted, name) for name, _ in FREQUENT]
    return frequent + [0 if counted.rare is None else getattr(counted.rare, name) for name, _ in RARE]
