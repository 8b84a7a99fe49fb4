"""Before AlterPartition a leader writes its ISR itself; the tree decides, even if the response was lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.replication import isr_writes
from kpybroker.broker.replication.isr_writes import IsrWrites
from kpybroker.broker.replication.traffic import Traffic
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.tree import create_recursive
from kpybroker.core import tree as t
from kpybroker.core.replication.replica import IsrChange, Verdict
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from tests.broker.lifecycle.test_controlled_shutdown import create, state
from tests.support.brokers.running_cluster import running_cluster

STATE = znodes.partition_state_path("t", 0)


async def test_a_follower_that_returns_is_written_into_the_isr_and_the_controller_is_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_writes, "LINGER_S", 0.0)
    monkeypatch.setattr(isr_writes, "CHECK_INTERVAL_S", 0.01)
    keys = {"inter_broker_protocol_version": "2.6", "replica_fetch_wait_max_ms": "10"}
    with trio.fail_after(100):
        async with running_cluster(tmp_path, 1, 2, 3, **keys) as cluster:
            await create(cluster, "t", [2, 3])
            await cluster.stop(3)
            assert (await state(cluster.brokers[1], "t")).isr == (2,)
            await cluster.start(3)
            metadata = cluster.brokers[1].metadata
            assert await metadata.wait_until(lambda snapshot: set(snapshot.topics["t"][0].isr) == {2, 3}, 60)
            found = await state(cluster.brokers[1], "t")
            assert (found.leader, found.isr) == (2, (2, 3))
            while (await cluster.brokers[1].tree.children(znodes.ISR_CHANGE_NOTIFICATION)).names:
                await trio.lowlevel.checkpoint()


class Scene:
    """A partition led by broker 1 in epoch 4, its state's node at `version`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.tree = EmbeddedStore.in_memory(lambda: 0).session()
        leader = SimpleNamespace(agreed=self._agreed, refused=self._refused, isr=frozenset({1}))
        self.partition: Any = SimpleNamespace(
            topic="t",
            index=0,
            controller_epoch=7,
            leader=leader,
            isr_committed=lambda: self.calls.append(("committed", 0)),
            advance_again=lambda: self.calls.append(("advance again", 0)),
        )
        broker: Any = SimpleNamespace(node_id=1, tree=self.tree, clock=SimpleNamespace(monotonic=lambda: 0.0))
        self.writes = IsrWrites(broker, Traffic())

    def _agreed(self, _change: IsrChange, _leader_epoch: int, version: int, _isr: tuple[int, ...]) -> Verdict:
        self.calls.append(("agreed", version))
        return Verdict.COMMITTED

    def _refused(self, _change: IsrChange, error: int) -> Verdict:
        self.calls.append(("refused", error))
        return Verdict.DROPPED

    async def write(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Ask for it, and let the task work until it has nothing more to do."""
        self.writes.submit(self.partition, IsrChange(isr, 4, partition_epoch))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.writes.run)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()


async def scene() -> Scene:
    made = Scene()
    await made.tree.start(5)
    state = znodes.PartitionState(leader=1, leader_epoch=4, isr=(1,), controller_epoch=7)
    await create_recursive(made.tree, STATE, znodes.encode_partition_state(state))
    return made


async def test_the_written_state_names_the_leader_and_the_nodes_version_is_the_partition_epoch() -> None:
    made = await scene()
    await made.write((1, 2), partition_epoch=0)
    assert made.calls == [("agreed", 1), ("committed", 0)]
    assert (await made.tree.get(STATE)).data == (
        b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    )


async def test_a_write_that_was_overtaken_changes_nothing() -> None:
    made = await scene()
    await made.tree.set(STATE, znodes.encode_partition_state(znodes.PartitionState(2, 5, (2,), 7)))
    await made.write((1, 2), partition_epoch=0)
    assert made.calls == [("refused", ErrorCode.INVALID_UPDATE_VERSION), ("advance again", 0)]
    assert (await made.tree.get(STATE)).stat.version == 1


async def test_a_write_whose_response_was_lost_is_found_to_be_there() -> None:
    made = await scene()
    await made.tree.set(STATE, znodes.encode_partition_state(znodes.PartitionState(1, 4, (1, 2), 7)))
    await made.write((1, 2), partition_epoch=0)
    assert made.calls == [("agreed", 1), ("committed", 0)]


async def test_what_was_written_is_reported_in_the_next_session_if_this_one_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task neither fails nor forgets it."""
    monkeypatch.setattr(isr_writes, "LINGER_S", 0.0)
    monkeypatch.setattr(isr_writes, "CHECK_INTERVAL_S", 0.0)
    made = await scene()
    await create_recursive(made.tree, znodes.ISR_CHANGE_NOTIFICATION)
    await made.write((1, 2), partition_epoch=0)
    submit_many, refused = made.tree.submit_many, 0

    async def ended_at_first(ops: Sequence[t.Operation]) -> Sequence[t.Result | t.TreeError]:
        nonlocal refused
        if refused < 2 and isinstance(ops[0], t.Create):
            refused += 1
            return [t.SessionExpired()] * len(ops)
        return await submit_many(ops)

    monkeypatch.setattr(made.tree, "submit_many", ended_at_first)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.writes.notify_controller)
        with trio.fail_after(60):
            while not (await made.tree.children(znodes.ISR_CHANGE_NOTIFICATION)).names:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert refused == 2
