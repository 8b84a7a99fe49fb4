"""Partition transitions: Kafka's ``ZkPartitionStateMachine``.

NonExistent -> New: known, no leader yet. New -> Online: the first live replica leads, all live ones are the ISR, and
the state znode is created. Online/Offline -> Online: an election. Any of these -> Offline -> NonExistent: in memory
only. An illegal transition is logged and skipped; one partition's failure never stops the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kpybroker.core import election
from kpybroker.core import metadata_version as mv
from kpybroker.core.controller import states
from kpybroker.core.controller.context import ControllerContext
from kpybroker.core.controller.effects import (
    PAUSE,
    TRACE,
    Log,
    Procedure,
    Settings,
    StateChangeFailed,
    UncleanElectionEnabled,
    guarded,
    split_legal,
    state_change,
    state_change_failed,
)
from kpybroker.core.controller.model import PARTITION_TRANSITIONS, LeaderIsrAndControllerEpoch, PartitionState
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.core.leader_and_isr import NO_LEADER, LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.yield_budget import WorkBudget


class Strategy(Enum):
    """How to elect a leader; the values are Kafka's names of the strategies in log lines."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    OFFLINE_UNCLEAN = "OfflinePartitionLeaderElectionStrategy(true)"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"

    def __str__(self) -> str:
        return self.value


class Designated(NamedTuple):
    """The strategy of a test: the leader of each partition, NO_LEADER for none."""

    leaders: Mapping[TopicPartition, int]

    def __str__(self) -> str:
        return "DesignatedPartitionLeaderElectionStrategy"


ElectionResults = dict[TopicPartition, LeaderAndIsr | Exception]


class PartitionStateMachine:
    """Moves partitions between states: writes the tree, updates the context, and notifies brokers."""

    __slots__ = ("_budget", "_context", "_settings")

    def __init__(self, context: ControllerContext, settings: Settings) -> None:
        self._context = context
        self._settings = settings
        self._budget = WorkBudget()

    def startup(self, partitions: Iterable[TopicPartition], batch: BrokerRequestBatch) -> Procedure[None]:
        """Derive every partition's state from its leader, and elect where there is no live one.

        What brokers must learn is in `batch` then, and not sent.
        """
        context = self._context
        for partition in partitions:
            if self._budget.is_spent():
                yield PAUSE
            leader = context.leader(partition)
            if leader is None:
                state = PartitionState.NEW
            elif context.is_replica_online(leader, partition):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            context.put_partition_state(partition, state)
        yield from self._guarded(self._without_leader(), PartitionState.ONLINE, Strategy.OFFLINE, batch)

    def trigger_online(self, topic: str | None = None) -> Procedure[ElectionResults]:
        """Elect a leader wherever one is missing, except in topics that are being deleted."""
        return (yield from self.change(self._without_leader(topic), PartitionState.ONLINE, Strategy.OFFLINE))

    def _without_leader(self, topic: str | None = None) -> list[TopicPartition]:
        context = self._context
        return [
            partition
            for partition in context.partitions_in_states((PartitionState.OFFLINE, PartitionState.NEW), topic)
            if not context.is_topic_queued_for_deletion(partition.topic)
        ]

    def change(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy | Designated = Strategy.OFFLINE,
    ) -> Procedure[ElectionResults]:
        """Move partitions to `target` and notify brokers; returns the results of elections."""
        batch = BrokerRequestBatch(self._context, self._settings)
        results = yield from self._guarded(partitions, target, strategy, batch)
        if isinstance(results, Exception):
            return dict.fromkeys(partitions, results)
        yield from batch.send()
        return results

    def _guarded(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy | Designated,
        batch: BrokerRequestBatch,
    ) -> Procedure[ElectionResults | Exception]:
        if not partitions:
            return {}
        prefix = f"[PartitionStateMachine controllerId={self._settings.broker_id}]"
        return (
            yield from guarded(
                self._change(partitions, target, strategy, batch),
                f"{prefix} Error while moving some partitions to {target} state",
            )
        )

    def _change(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy | Designated,
        batch: BrokerRequestBatch,
    ) -> Procedure[ElectionResults]:
        context, allowed = self._context, PARTITION_TRANSITIONS.allowed(target)
        valid, illegal = yield from split_legal(
            partitions, context.partition_states, target, PARTITION_TRANSITIONS, self._budget
        )
        for partition in illegal:
            yield self._failed(
                partition,
                target,
                f"Partition {partition} should be in one of {allowed} states before moving to {target} state. "
                f"Instead it is in {context.partition_states[partition]} state",
            )
        if target is not PartitionState.ONLINE:
            for partition in valid:
                if self._budget.is_spent():
                    yield PAUSE
                if context.is_traced or target is PartitionState.NEW:
                    yield self._changed(partition, target)
                context.put_partition_state(partition, target)
            return {}
        new = [p for p in valid if context.partition_states[p] is PartitionState.NEW]
        electable = [p for p in valid if context.partition_states[p] is not PartitionState.NEW]
        yield from self._initialize(new, batch)
        return (yield from self._elect(electable, strategy, batch))

    # --- first leader

    def _initialize(self, partitions: list[TopicPartition], batch: BrokerRequestBatch) -> Procedure[None]:
        context = self._context
        wanted: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        for partition in partitions:
            if self._budget.is_spent():
                yield PAUSE
            replicas = context.replicas(partition)
            live = tuple(replica for replica in replicas if context.is_replica_online(replica, partition))
            if live:
                wanted[partition] = LeaderIsrAndControllerEpoch(LeaderAndIsr(live[0], live), context.epoch)
                continue
            yield self._failed(
                partition,
                PartitionState.ONLINE,
                f"Controller {self._settings.broker_id} epoch {context.epoch} encountered error during state change "
                f"of partition {partition} from New to Online, assigned replicas are "
                f"[{','.join(map(str, replicas))}], live brokers are [{sorted(context.live_broker_ids)}]. No assigned "
                "replica is alive.",
            )
        results = yield from states.create(wanted, context.epoch_zk_version)
        for partition, result in results.items():
            if isinstance(result, Exception):
                yield self._failed(partition, PartitionState.ONLINE, repr(result))
                continue
            context.set_leadership(partition, result)
            batch.add_leader_and_isr(
                result.leader_and_isr.isr, partition, result, context.assignment(partition), is_new=True
            )
            yield from self._online(partition, result.leader_and_isr)

    # --- elections

    def _elect(
        self, partitions: list[TopicPartition], strategy: Strategy | Designated, batch: BrokerRequestBatch
    ) -> Procedure[ElectionResults]:
        """Elect until no write fails by its version; a leader may change its ISR at the same time.

        By what is known first: if the tree has something else, the write fails. Where that gives no leader, and where
        a write fails, by what the tree has. Kafka always reads it first.
        """
        known = {partition: self._context.partition_leadership_info.get(partition) for partition in partitions}
        finished, remaining = yield from self._elect_once(known, strategy, batch)
        remaining += [partition for partition, result in finished.items() if not isinstance(result, LeaderAndIsr)]
        while remaining:
            results, remaining = yield from self._elect_once((yield from states.read(remaining)), strategy, batch)
            finished |= results
        for partition, result in finished.items():
            if isinstance(result, LeaderAndIsr):
                yield from self._online(partition, result)
            else:
                yield self._failed(partition, PartitionState.ONLINE, str(result) or repr(result))
        return finished

    def _elect_once(
        self,
        states_found: Mapping[TopicPartition, states.ReadResult],
        strategy: Strategy | Designated,
        batch: BrokerRequestBatch,
    ) -> Procedure[tuple[ElectionResults, list[TopicPartition]]]:
        context = self._context
        results: ElectionResults = {}
        current: dict[TopicPartition, LeaderAndIsr] = {}
        for partition, found in states_found.items():
            refused = self._refuse_state(partition, found)
            if refused is not None:
                results[partition] = refused
            elif isinstance(found, LeaderIsrAndControllerEpoch):
                current[partition] = found.leader_and_isr
        chosen = yield from self._choose(current, strategy)
        wanted: dict[TopicPartition, LeaderAndIsr] = {}
        for partition, (leader_and_isr, _) in chosen.items():
            if leader_and_isr is not None:
                wanted[partition] = leader_and_isr
            else:
                message = f"Failed to elect leader for partition {partition} under strategy {strategy}"
                results[partition] = StateChangeFailed(message)
        updated, retry = yield from states.update(wanted, context.epoch, context.epoch_zk_version)
        for partition, result in updated.items():
            results[partition] = result
            if isinstance(result, LeaderAndIsr):
                context.unclean_elections += result.leader not in (NO_LEADER, *current[partition].isr)
                leadership = LeaderIsrAndControllerEpoch(result, context.epoch)
                context.set_leadership(partition, leadership)
                batch.add_leader_and_isr(
                    chosen[partition].recipients,
                    partition,
                    leadership,
                    context.assignment(partition),
                    is_new=False,
                )
        return results, retry

    def _refuse_state(
        self, partition: TopicPartition, found: LeaderIsrAndControllerEpoch | Exception | None
    ) -> Exception | None:
        if found is None:
            return StateChangeFailed(
                f"LeaderAndIsr information doesn't exist for partition {partition} in "
                f"{self._context.partition_states[partition]} state"
            )
        if isinstance(found, Exception):
            return found
        if found.controller_epoch > self._context.epoch:
            return StateChangeFailed(
                f"Aborted leader election for partition {partition} since the LeaderAndIsr path was already written "
                f"by another controller. This probably means that the current controller {self._settings.broker_id} "
                f"went through a soft failure and another controller was elected with epoch {found.controller_epoch}."
            )
        return None

    def _choose(
        self, current: dict[TopicPartition, LeaderAndIsr], strategy: Strategy | Designated
    ) -> Procedure[dict[TopicPartition, election.ElectionResult]]:
        context = self._context
        unclean = yield from self._unclean_allowed(current, strategy)
        recovery = mv.is_leader_recovery_supported(self._settings.metadata_version)
        results = {}
        for partition, state in current.items():
            assignment = context.assignment(partition)

            def online(replica: int, partition: TopicPartition = partition) -> bool:
                return context.is_replica_online(replica, partition)

            def online_or_shutting_down(replica: int, partition: TopicPartition = partition) -> bool:
                return context.is_replica_online(replica, partition, include_shutting_down=True)

            if isinstance(strategy, Designated):
                leader = strategy.leaders[partition]
                result = election.leader_for_designated(leader, assignment.replicas, state, online)
            elif partition in context.leaderless:
                result = election.ElectionResult(None, ())
            elif strategy is Strategy.REASSIGN:
                result = election.leader_for_reassign(assignment.target_replicas, state, online)
            elif strategy is Strategy.PREFERRED:
                result = election.leader_for_preferred(assignment.replicas, state, online)
            elif strategy is Strategy.CONTROLLED_SHUTDOWN:
                result = election.leader_for_controlled_shutdown(
                    assignment.replicas, state, online_or_shutting_down, context.shutting_down_broker_ids
                )
            else:
                result = election.leader_for_offline(
                    assignment.replicas,
                    state,
                    online,
                    unclean=unclean.get(partition.topic, False),
                    recovery_supported=recovery,
                )
            results[partition] = result
        return results

    def _unclean_allowed(
        self, current: dict[TopicPartition, LeaderAndIsr], strategy: Strategy | Designated
    ) -> Procedure[dict[str, bool]]:
        """Whether unclean election is allowed, by topic; read only where the whole ISR is offline."""
        if strategy not in (Strategy.OFFLINE, Strategy.OFFLINE_UNCLEAN):
            return {}
        is_online = self._context.is_replica_online
        topics = {
            partition.topic
            for partition, state in current.items()
            if not any(is_online(replica, partition) for replica in state.isr)
        }
        if strategy is Strategy.OFFLINE_UNCLEAN or not topics:
            return dict.fromkeys(topics, True)
        allowed: dict[str, bool] = yield UncleanElectionEnabled(tuple(sorted(topics)))
        return allowed

    # --- log lines

    def _online(self, partition: TopicPartition, leader_and_isr: LeaderAndIsr) -> Procedure[None]:
        context = self._context
        previous = context.partition_states[partition]
        context.put_partition_state(partition, PartitionState.ONLINE)
        yield state_change(
            self._settings,
            context.epoch,
            f"Changed partition {partition} from {previous} to {PartitionState.ONLINE} with state {leader_and_isr}",
        )

    def _changed(self, partition: TopicPartition, target: PartitionState) -> Log:
        """To be yielded before the change. As in Kafka at TRACE, and at INFO for a new partition."""
        context = self._context
        change = f"Changed partition {partition} state from {context.partition_states[partition]} to {target}"
        if target is not PartitionState.NEW:
            return state_change(self._settings, context.epoch, change, TRACE)
        replicas = ",".join(map(str, context.replicas(partition)))
        return state_change(self._settings, context.epoch, f"{change} with assigned replicas {replicas}")

    def _failed(self, partition: TopicPartition, target: PartitionState, reason: str) -> Log:
        current = self._context.partition_states[partition]
        return state_change_failed(
            self._settings,
            self._context.epoch,
            f"failed to change state for partition {partition} from {current} to {target}: {reason}",
        )
