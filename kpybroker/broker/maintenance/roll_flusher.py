"""Flushes a log after its segment was rolled, next to the requests (Kafka's scheduler task `flush-log`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from kpybroker.broker.maintenance.background import tolerate_storage_failures

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition

PENDING_MAX = 10_000
"""More are dropped: such a log is flushed at its next roll, or when its flush interval is over."""


class RollFlusher:
    """Partitions to flush, each at most once; `run` flushes them one after the other."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._pending: dict[Partition, None] = {}
        self._wake = trio.Event()

    def flush_soon(self, partition: Partition) -> None:
        """Flush everything before the active segment. Returns at once."""
        if len(self._pending) < PENDING_MAX:
            self._pending[partition] = None
            self._wake.set()

    async def run(self) -> None:
        """Flush what is pending, for as long as the broker runs."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._pending:
                partition = next(iter(self._pending))
                del self._pending[partition]
                if partition.log is not None:
                    with tolerate_storage_failures(self._host):
                        await partition.flush(partition.log.active_segment.base_offset)
