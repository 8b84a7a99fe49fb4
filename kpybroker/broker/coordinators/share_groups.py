"""What share groups (KIP-932) need of a broker: settings, and the share coordinator, which their machines ask.

The machine of a share group (`core.share_group`) has the states of partitions made and forgotten as effects. Each runs
in a task of its own, and its result goes back to the machine as an event.

Not here: the rules (`core.share_group`), how a share coordinator is reached (`SharePersister`), the requests
(`handlers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.machine import Now
from kpybroker.core.modern_group.values import ModernGroupConfig
from kpybroker.core.share_coordinator.values import DeleteState, InitializeState, SharePersister, StateResult
from kpybroker.core.share_group.values import (
    DeleteStates,
    InitializeStates,
    ShareGroupLimits,
    ShareSurroundings,
    StateErrors,
)
from kpybroker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kpybroker.broker.coordinators.kind import Run
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.broker import BrokerConfig

StatesEffect = InitializeStates | DeleteStates


def share_surroundings(config: BrokerConfig, config_of: Callable[[str], ModernGroupConfig]) -> ShareSurroundings:
    """The settings for share groups. As in Kafka, states are not asked for again while a write may still wait."""
    retry_ms = config.get_int("group.share.initialize.retry.interval.ms")
    limits = ShareGroupLimits(
        max_size=config.get_int("group.share.max.size"),
        initialize_retry_interval_ms=max(retry_ms, config.get_int("offsets.commit.timeout.ms")),
    )
    return ShareSurroundings(limits, config_of)


class ShareGroupWork:
    """`persister` is asked for when it is first needed."""

    def __init__(self, host: Host, persister: Callable[[], SharePersister]) -> None:
        self._host = host
        self.persister = persister

    def perform(self, machine: GroupMachine, effect: StatesEffect, run: Run) -> None:
        """Begin what a machine asks for; `run` is given the outcome of its result later, never within this call."""
        self._host.spawn(f"{type(effect).__name__} of {effect.group_id}", self._ask, machine, effect, run)

    async def _ask(self, machine: GroupMachine, effect: StatesEffect, run: Run) -> None:
        results: Iterable[StateResult]
        if isinstance(effect, InitializeStates):
            results = await self.persister().initialize(
                effect.group_id,
                [
                    InitializeState(topic_id, index, effect.state_epoch, offset)
                    for topic_id, offsets in effect.start_offsets.items()
                    for index, offset in offsets.items()
                ],
            )
        else:
            results = await self.persister().delete(
                effect.group_id,
                [
                    DeleteState(topic_id, index)
                    for topic_id, indexes in effect.partitions.items()
                    for index in sorted(indexes)
                ],
            )
        clock = self._host.clock
        run(machine.on_states_done(effect, _errors(results), Now(clock.time_ms(), clock.monotonic())))


def _errors(results: Iterable[StateResult]) -> StateErrors:
    return {
        (result.topic_id, result.partition): result.error for result in results if result.error is not ErrorCode.NONE
    }
