"""Clients that push their own metrics: how many there are, and what happened to their requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.recent import RecentRates
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import client_metrics as m

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured

COUNTS: Final = (
    (m.UNKNOWN_SUBSCRIPTIONS, m.UNKNOWN_SUBSCRIPTION_RATE, "unknown_subscriptions"),
    (m.THROTTLES, m.THROTTLE_RATE, "throttled"),
    (m.EXPORTS, m.EXPORT_RATE, "exported"),
    (m.ERRORS, m.ERROR_RATE, "failed"),
)
"""The last element is the name in `Counts` of the manager."""


class ClientMetricsReader:
    """`kafka.server:type=client-metrics`, once a client has asked or a subscription is there."""

    families: Final = m.FAMILIES

    def __init__(self, broker: Measured) -> None:
        self._service = broker.client_metrics
        self._rates = RecentRates(self._counts, broker.clock.monotonic)

    def tick(self) -> None:
        """A few seconds have passed."""
        self._rates.tick()

    def _counts(self) -> Mapping[str, int]:
        if not self._service.is_used:
            return {name: 0 for *_, name in COUNTS}
        return asdict(self._service.manager.counts)

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now."""
        if not self._service.is_used:
            return ()
        return [single((m.INSTANCES, len(self._service.manager.instances)), *self._rates.cells(COUNTS))]
