"""States of share groups that are not kept, as with Kafka's ``NoOpStatePersister``: for brokers whose
`group.share.persister.class.name` is empty, or names that class.

Each share partition begins where `share.auto.offset.reset` says, whenever its leader or the broker changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from kpybroker.broker.loop.steps import Steps
from kpybroker.core.share_coordinator.values import (
    UNINITIALIZED_START_OFFSET,
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    StateResult,
    SummaryResult,
    WriteState,
)

NO_OP = "org.apache.kafka.server.share.persister.NoOpStatePersister"


def keeps_none(persister_class: str) -> bool:
    """Whether `group.share.persister.class.name` says that states are not kept."""
    return persister_class in ("", NO_OP)


class UnkeptStates:
    """A `SharePersister` that forgets."""

    async def initialize(self, group_id: str, partitions: Sequence[InitializeState]) -> list[StateResult]:
        """Always well."""
        await trio.lowlevel.checkpoint()
        return _done(partitions)

    async def read(self, group_id: str, partitions: Sequence[ReadState]) -> list[ReadResult]:
        """States that have not begun."""
        await trio.lowlevel.checkpoint()
        return [ReadResult(one.topic_id, one.partition, start_offset=UNINITIALIZED_START_OFFSET) for one in partitions]

    async def read_summary(self, group_id: str, partitions: Sequence[ReadState]) -> list[SummaryResult]:
        """The same."""
        await trio.lowlevel.checkpoint()
        return [
            SummaryResult(one.topic_id, one.partition, start_offset=UNINITIALIZED_START_OFFSET) for one in partitions
        ]

    def write(self, group_id: str, partitions: Sequence[WriteState]) -> Steps[list[StateResult]]:
        """Always well."""
        yield trio.lowlevel.checkpoint
        return _done(partitions)

    async def delete(self, group_id: str, partitions: Sequence[DeleteState]) -> list[StateResult]:
        """Always well."""
        await trio.lowlevel.checkpoint()
        return _done(partitions)


def _done(
    partitions: Sequence[InitializeState] | Sequence[WriteState] | Sequence[DeleteState],
) -> list[StateResult]:
    return [StateResult(one.topic_id, one.partition) for one in partitions]
