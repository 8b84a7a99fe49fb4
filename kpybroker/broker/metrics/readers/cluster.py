"""What kafka_exporter reports of the cluster: only the controller does, so that sums are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import exporter as e

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured


class ClusterReader:
    """`kafka_brokers`, `kafka_broker_info`, `kafka_topic_partitions`."""

    families: Final = (e.BROKERS, e.BROKER_INFO, e.TOPIC_PARTITIONS)

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Empty on brokers that are not the controller."""
        if not self._broker.controller.is_active:
            return []
        metadata = self._broker.metadata
        snapshot = metadata.snapshot
        addresses = []
        for broker_id in sorted(snapshot.brokers):
            host, port = metadata.inter_broker_address(broker_id) or ("", 0)
            addresses.append((f"{host}:{port}", str(broker_id)))
        topics = list(snapshot.topics)
        await budget.spend(len(topics))
        return [
            single((e.BROKERS, len(snapshot.brokers))),
            Reading(addresses, [(e.BROKER_INFO, [1] * len(addresses))]),
            Reading(
                [(topic,) for topic in topics],
                [(e.TOPIC_PARTITIONS, [len(snapshot.topics[topic]) for topic in topics])],
            ),
        ]
