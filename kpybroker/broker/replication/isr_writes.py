"""Changes of the ISR as they were before AlterPartition: Kafka's `ZkAlterPartitionManager`.

With `inter.broker.protocol.version` below 2.7-IV2 a leader writes its partition's state to the tree itself. It notifies
the controller later, of many partitions at once, by a node below `/isr_change_notification`. The partition epoch is the
version of the state's node. If a write finds another version, the controller was faster, and its next LeaderAndIsr ends
the change. But if the node already holds what the leader wanted to write, only the response was lost.

Not here: when to ask for a change, and what its outcome does (`core.replication.replica`, `partition`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import tree as t
from kpybroker.core.replication.replica import IsrChange, Verdict
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.traffic import Traffic

logger = logging.getLogger("kafka.server.ZkAlterPartitionManager")

CHECK_INTERVAL_S, LINGER_S, MAX_DELAY_S = 2.5, 5.0, 60.0
"""``IsrChangePropagationConfig``: the controller is notified after LINGER_S without a change, or every MAX_DELAY_S."""


class IsrWrites:
    """Pending changes. `submit` never waits; `run` writes them, `notify_controller` reports what was written."""

    def __init__(self, host: Host, traffic: Traffic) -> None:
        self._host = host
        self._traffic = traffic
        self._pending: dict[tuple[str, int], tuple[Partition, IsrChange]] = {}
        self._submitted = trio.Event()
        self._unreported: dict[tuple[str, int], None] = {}
        self._changed_at = self._reported_at = trio.current_time()

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Write a change; it replaces an older one of the same partition, which is void."""
        self._pending[partition.topic, partition.index] = (partition, change)
        self._submitted.set()

    async def run(self) -> None:
        """Write what is submitted, for as long as the broker runs."""
        while True:
            await self._submitted.wait()
            self._submitted = trio.Event()
            while self._pending:
                key = next(iter(self._pending))
                try:
                    await self._write(*self._pending.pop(key))
                except t.SessionExpired:
                    # The controller will order a new leader for the time after this session.
                    logger.warning("The session ended while the ISR of %s-%d was written", *key)

    async def notify_controller(self) -> None:
        """Report written changes to the controller, at Kafka's intervals, for as long as the broker runs."""
        while True:
            await trio.sleep(CHECK_INTERVAL_S)
            now = trio.current_time()
            is_due = self._changed_at + LINGER_S < now or self._reported_at + MAX_DELAY_S < now
            if not (self._unreported and is_due):
                continue
            reported = list(self._unreported)
            node = t.Create(znodes.isr_change_path(), znodes.encode_partitions(reported), sequential=True)
            try:
                (result,) = await retry_until_connected(self._host.tree, [node])
                if isinstance(result, t.TreeError):
                    raise result
            except t.SessionExpired:
                continue
            self._reported_at = now
            for key in reported:
                self._unreported.pop(key, None)

    async def _write(self, partition: Partition, change: IsrChange) -> None:
        path = znodes.partition_state_path(partition.topic, partition.index)
        state = znodes.PartitionState(self._host.node_id, change.leader_epoch, change.isr, partition.controller_epoch)
        write = t.SetData(path, znodes.encode_partition_state(state), change.partition_epoch)
        (result,) = await retry_until_connected(self._host.tree, [write])
        version = result.version if isinstance(result, t.Stat) else await self._version_of(path, state, result)
        leader = partition.leader
        if leader is None:
            return
        if version is None:
            logger.info("ISR of %s-%d was not updated: overtaken by the controller", partition.topic, partition.index)
            leader.refused(change, ErrorCode.INVALID_UPDATE_VERSION)
            self._traffic.failed_isr_updates += 1
            partition.advance_again()
            return
        key = (partition.topic, partition.index)
        self._unreported[key] = None
        self._changed_at = trio.current_time()
        before = leader.isr
        if leader.agreed(change, change.leader_epoch, version, change.isr) is Verdict.COMMITTED:
            self._traffic.isr_changed(before, leader.isr)
            partition.isr_committed()

    async def _version_of(self, path: str, state: znodes.PartitionState, result: object) -> int | None:
        """The node's version if it already holds `state`, else None (checkLeaderAndIsrZkData)."""
        if not isinstance(result, t.BadVersion | t.NoNode):
            assert isinstance(result, t.TreeError), result
            raise result
        (found,) = await retry_until_connected(self._host.tree, [t.Get(path)])
        if not isinstance(found, t.NodeData):
            return None
        there = znodes.decode_partition_state(found.data)
        is_ours = (there.leader, there.leader_epoch, there.isr) == (state.leader, state.leader_epoch, state.isr)
        return found.stat.version if is_ours else None
