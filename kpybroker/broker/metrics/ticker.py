"""What moves with time: rates of counts every five seconds, windows of quantiles every five minutes, request samples.

By the broker's clock, as all that a broker keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.metrics.mbeans import Family, Kind
from kpybroker.metrics.rates import TICK_S, Rates
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import controller as c
from kpybroker.metrics.tables import replication as r

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.broker.metrics.measured import Measured, Reader
    from kpybroker.metrics.reading import Tags

TICKS_A_WINDOW: Final = 60
RATE_COST: Final = 1


class RareCounts:
    """Counts whose own readers walk over partitions: too much for every tick."""

    def __init__(self, broker: Measured) -> None:
        self._broker = broker

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Values now."""
        traffic = self._broker.replicas.traffic
        return [
            single(
                (r.ISR_SHRINKS, traffic.isr_shrinks),
                (r.ISR_EXPANDS, traffic.isr_expands),
                (r.FAILED_ISR_UPDATES, traffic.failed_isr_updates),
                (c.UNCLEAN_ELECTIONS, self._broker.controller.unclean_elections),
            )
        ]


class Ticker:
    """`rates` of every count of `counting` readers, by family and tags. `on_tick` and `on_window` are called first."""

    def __init__(
        self,
        clock: Clock,
        counting: Sequence[Reader],
        on_tick: Iterable[Callable[[], None]],
        on_window: Iterable[Callable[[], None]],
    ) -> None:
        self.clock = clock
        self._counting = counting
        self._on_tick = tuple(on_tick)
        self._on_window = tuple(on_window)
        self._ticks = 0
        self.rates: dict[tuple[Family, Tags], Rates] = {}

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await self.clock.pause(TICK_S)
            await self.tick()

    async def tick(self) -> None:
        """`TICK_S` have passed."""
        self._ticks += 1
        for call in self._on_tick:
            call()
        if self._ticks % TICKS_A_WINDOW == 0:
            for call in self._on_window:
                call()
        await self._move_rates()

    async def _move_rates(self) -> None:
        """Rates of what is not there any more are dropped."""
        now_s, budget = self.clock.monotonic(), YieldBudget()
        known, moved = self.rates, {}
        for reader in self._counting:
            for reading in await reader.read(budget):
                for family, values in reading.columns:
                    if family.kind is not Kind.METER:
                        continue
                    for tags, count in zip(reading.rows, values, strict=True):
                        await budget.spend(RATE_COST)
                        if not isinstance(count, int):
                            continue
                        rates = known.get((family, tags))
                        if rates is None:
                            rates = Rates(0, now_s - TICK_S)
                        rates.tick(count)
                        moved[family, tags] = rates
        self.rates = moved
