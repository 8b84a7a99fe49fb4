"""Reading and writing `/brokers/topics/<t>/partitions/<p>/state`: the leader and the ISR.

As KafkaZkClient's getTopicPartitionStates, createTopicPartitionStatesRaw and updateLeaderAndIsr, with two additions:

* a write may have been repeated after a lost connection. If it fails, it is compared with the znode, and counts as done
  if the znode has what it writes;
* many are written in one transaction, and each on its own where one of them fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpybroker.core import tree as t
from kpybroker.core.controller.effects import PAUSE, Procedure, StateChangeFailed, checked_together, submit
from kpybroker.core.controller.model import LeaderIsrAndControllerEpoch
from kpybroker.core.leader_and_isr import LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.yield_budget import WorkBudget

ReadResult = LeaderIsrAndControllerEpoch | None | Exception


def read(partitions: Iterable[TopicPartition]) -> Procedure[dict[TopicPartition, ReadResult]]:
    """By partition: its state, None if it has none yet, or the error of reading it."""
    wanted = list(partitions)
    results = yield from submit([t.Get(znodes.partition_state_path(*partition)) for partition in wanted])
    found: dict[TopicPartition, ReadResult] = {}
    budget = WorkBudget()
    for partition, result in zip(wanted, results, strict=True):
        found[partition] = _state(result)
        if budget.is_spent():
            yield PAUSE
    return found


def create(
    states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch], epoch_zk_version: int
) -> Procedure[dict[TopicPartition, LeaderIsrAndControllerEpoch | Exception]]:
    """Create the state znodes of new partitions, and their parents."""
    if not states:
        return {}
    parents: list[str] = list(dict.fromkeys(znodes.partitions_path(p.topic) for p in states))
    parents += [znodes.partition_path(*partition) for partition in states]
    ops = [t.Create(path) for path in parents]
    budget = WorkBudget()
    for partition, wanted in states.items():
        ops.append(t.Create(znodes.partition_state_path(*partition), _encode(*wanted)))
        if budget.is_spent():
            yield PAUSE
    # A parent that exists already is fine; any other error of a parent shows in its child's result.
    outcomes = (yield from checked_together(ops, epoch_zk_version))[len(parents) :]
    results: dict[TopicPartition, LeaderIsrAndControllerEpoch | Exception] = {}
    existing = []
    for (partition, state), outcome in zip(states.items(), outcomes, strict=True):
        if isinstance(outcome, t.NodeExists):
            existing.append(partition)
        results[partition] = outcome if isinstance(outcome, t.TreeError) else state
    found = yield from read(existing)
    for partition, state_found in found.items():
        if state_found == states[partition]:
            results[partition] = states[partition]
    return results


def update(
    states: Mapping[TopicPartition, LeaderAndIsr], epoch: int, epoch_zk_version: int
) -> Procedure[tuple[dict[TopicPartition, LeaderAndIsr | Exception], list[TopicPartition]]]:
    """Write each state over the version it was read at; returns (done or failed, conflicts to retry)."""
    if not states:
        return {}, []
    ops = []
    budget = WorkBudget()
    for partition, state in states.items():
        path = znodes.partition_state_path(*partition)
        ops.append(t.SetData(path, _encode(state, epoch), state.partition_epoch))
        if budget.is_spent():
            yield PAUSE
    results = yield from checked_together(ops, epoch_zk_version)
    finished: dict[TopicPartition, LeaderAndIsr | Exception] = {}
    conflicts = []
    for (partition, state), result in zip(states.items(), results, strict=True):
        if isinstance(result, t.Stat):
            finished[partition] = state.with_partition_epoch(result.version)
        elif isinstance(result, t.BadVersion):
            conflicts.append(partition)
        else:
            finished[partition] = result if isinstance(result, Exception) else StateChangeFailed(repr(result))
    retry = []
    found = yield from read(conflicts)
    for partition, state_found in found.items():
        written = states[partition].with_partition_epoch(states[partition].partition_epoch + 1)
        if state_found == LeaderIsrAndControllerEpoch(written, epoch):
            finished[partition] = written
        else:
            retry.append(partition)
    return finished, retry


def _encode(state: LeaderAndIsr, controller_epoch: int) -> bytes:
    return znodes.encode_partition_state(
        znodes.PartitionState(
            state.leader, state.leader_epoch, state.isr, controller_epoch, state.leader_recovery_state
        )
    )


def _state(result: t.Result | t.TreeError) -> ReadResult:
    if isinstance(result, t.NoNode):
        return None
    if isinstance(result, t.TreeError):
        return result
    assert isinstance(result, t.NodeData)
    try:
        decoded = znodes.decode_partition_state(result.data)
    except znodes.ZnodeError as error:
        return error
    return LeaderIsrAndControllerEpoch(
        LeaderAndIsr(
            decoded.leader,
            decoded.isr,
            decoded.leader_epoch,
            decoded.leader_recovery_state,
            result.stat.version,
        ),
        decoded.controller_epoch,
    )
