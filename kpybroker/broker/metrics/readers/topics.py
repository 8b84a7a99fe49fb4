"""Traffic by topic, and of the broker. As in Kafka a topic has an MBean only for what it has counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.replication.traffic import FREQUENT, RARE, TopicTraffic, Traffic
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.reading import Reading, Value
from kpybroker.metrics.tables import topics as t

OF_FREQUENT = (t.BYTES_IN, t.MESSAGES_IN, t.PRODUCE_REQUESTS, t.BYTES_OUT, t.FETCH_REQUESTS)
OF_RARE = (
    *(t.FAILED_PRODUCE_REQUESTS, t.FAILED_FETCH_REQUESTS, t.BYTES_REJECTED, t.INVALID_CRC),
    *(t.PRODUCE_CONVERSIONS, t.FETCH_CONVERSIONS),
)


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
        columns: dict[Family, list[Value]] = {family: [] for family in (*OF_FREQUENT, *OF_RARE)}
        for topic, counted in list(traffic.topics.items()):
            await budget.spend()
            if counted.is_idle:
                continue
            total.add(counted)
            rows.append((topic,))
            self._append(columns, counted)
        for family, value in zip((*OF_FREQUENT, *OF_RARE), _values(total), strict=True):
            columns[family].insert(0, value)
        rest: list[Value] = [None] * (len(rows) - 1)
        columns[t.INVALID_CRC][1:] = rest  # as in Kafka, whose validator does not know the topic
        only_broker = [
            (t.REPLICATION_BYTES_IN, [traffic.replication_bytes_in, *rest]),
            (t.REPLICATION_BYTES_OUT, [traffic.replication_bytes_out, *rest]),
        ]
        return [Reading(rows, [*columns.items(), *only_broker])]

    @staticmethod
    def _append(columns: dict[Family, list[Value]], counted: TopicTraffic) -> None:
        for column, value in zip(columns.values(), _values(counted), strict=True):
            column.append(value or None)


def _values(counted: TopicTraffic) -> list[int]:
    frequent = [getattr(counted, name) for name in FREQUENT]
    return frequent + [0 if counted.rare is None else getattr(counted.rare, name) for name in RARE]
