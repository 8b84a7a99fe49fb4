"""Changes of the ISR as they were before AlterPartition: Kafka's `ZkAlterPartitionManager`.

Where `inter.broker.protocol.version` is below 2.7-IV2 a leader writes its partition's state to the tree itself, and
tells the controller afterwards, of many partitions at once, by a node below `/isr_change_notification`. The partition
epoch is the version of the state's node. A write that finds another version was overtaken by the controller, whose next
word ends the change; unless what is there is what was to be written, for an answer may have been lost on its way.

Not here: when a change is wanted, and what follows from it (`core.replica`, `broker.partition`).
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
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition

log = logging.getLogger("kafka.server.ZkAlterPartitionManager")

CHECK_INTERVAL_S, LINGER_S, MAX_DELAY_S = 2.5, 5.0, 60.0
"""`IsrChangePropagationConfig`: the controller hears of changes when there were none for a while, or at last."""


class IsrWrites:
    """`submit` never waits; `run` writes, `tell_controller` notifies."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._asked: dict[tuple[str, int], tuple[Partition, IsrChange]] = {}
        self._news = trio.Event()
        self._untold: dict[tuple[str, int], None] = {}
        self._changed_at = self._told_at = broker.clock.monotonic()

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Write a change; an older one of the same partition is void by now."""
        self._asked[partition.topic, partition.index] = (partition, change)
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._asked:
                key = next(iter(self._asked))
                try:
                    await self._write(*self._asked.pop(key))
                except t.SessionExpired:
                    # Whoever leads after this session hears of it from the controller.
                    log.warning("The session ended while the ISR of %s-%d was written", *key)

    async def tell_controller(self) -> None:
        while True:
            await trio.sleep(CHECK_INTERVAL_S)
            now = self._broker.clock.monotonic()
            is_due = self._changed_at + LINGER_S < now or self._told_at + MAX_DELAY_S < now
            if not (self._untold and is_due):
                continue
            told = list(self._untold)
            node = t.Create(znodes.isr_change_path(), znodes.encode_partitions(told), sequential=True)
            try:
                (answer,) = await retry_until_connected(self._broker.tree, [node])
            except t.SessionExpired:
                continue
            if isinstance(answer, t.TreeError):
                raise answer
            self._told_at = now
            for key in told:
                self._untold.pop(key, None)

    async def _write(self, partition: Partition, change: IsrChange) -> None:
        path = znodes.partition_state_path(partition.topic, partition.index)
        state = znodes.PartitionState(self._broker.node_id, change.leader_epoch, change.isr, partition.controller_epoch)
        write = t.SetData(path, znodes.encode_partition_state(state), change.partition_epoch)
        (answer,) = await retry_until_connected(self._broker.tree, [write])
        version = answer.version if isinstance(answer, t.Stat) else await self._version_of(path, state, answer)
        leader = partition.leader
        if leader is None:
            return
        if version is None:
            log.info("ISR of %s-%d was not updated: overtaken by the controller", partition.topic, partition.index)
            leader.refused(change, ErrorCode.INVALID_UPDATE_VERSION)
            partition.advance_again()
            return
        key = (partition.topic, partition.index)
        self._untold[key] = None
        self._changed_at = self._broker.clock.monotonic()
        if leader.agreed(change, change.leader_epoch, version, change.isr) is Verdict.COMMITTED:
            partition.isr_committed()

    async def _version_of(self, path: str, state: znodes.PartitionState, answer: object) -> int | None:
        """The node's version if it holds what was to be written, else None (checkLeaderAndIsrZkData)."""
        if not isinstance(answer, t.BadVersion | t.NoNode):
            assert isinstance(answer, t.TreeError), answer
            raise answer
        (found,) = await retry_until_connected(self._broker.tree, [t.Get(path)])
        if not isinstance(found, t.NodeData):
            return None
        there = znodes.decode_partition_state(found.data)
        is_ours = (there.leader, there.leader_epoch, there.isr) == (state.leader, state.leader_epoch, state.isr)
        return found.stat.version if is_ours else None
