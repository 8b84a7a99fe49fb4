"""Elections on request: of an operator, of the balance timer, of a broker that is stopping.

`/admin/preferred_replica_election` is used by tools of the ZooKeeper era, ElectLeaders (KIP-460) by later ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpybroker.core.controller.effects import (
    Enqueue,
    Procedure,
    StateChangeFailed,
    checked_deletes,
    code_of,
    error,
    exists_with_watch,
    get,
    info,
    warning,
)
from kpybroker.core.controller.events import (
    ApiError,
    ControlledShutdown,
    DesignatedElection,
    ElectionType,
    ReplicaLeaderElection,
    Signal,
)
from kpybroker.core.controller.model import PartitionAndReplica, PartitionState, ReplicaState
from kpybroker.core.controller.partitions import Designated, ElectionResults, Strategy
from kpybroker.core.controller.parts import Parts
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.core.leader_and_isr import NO_LEADER, LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

UNKNOWN_BROKER_EPOCH = -1
"""From a broker that predates KIP-380."""

AUTO_REBALANCE_FIRST_DELAY_SECONDS = 5
UNKNOWN = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
DELETED = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
NOT_NEEDED = ApiError(ErrorCode.ELECTION_NOT_NEEDED)


# --- ElectLeaders


def elect_leaders(parts: Parts, event: ReplicaLeaderElection) -> Procedure[dict[TopicPartition, ApiError]]:
    """The result of each partition's election; `ApiError(NONE)` for those that now have their leader."""
    if not parts.is_active:
        return dict.fromkeys(event.partitions, ApiError(ErrorCode.NOT_CONTROLLER))
    context = parts.context
    results: dict[TopicPartition, ApiError] = {}
    electable = []
    for partition in event.partitions:
        if not context.replicas(partition):
            results[partition] = UNKNOWN
        elif context.is_topic_queued_for_deletion(partition.topic):
            results[partition] = DELETED
        elif not _needs_election(parts, partition, event.election_type):
            results[partition] = NOT_NEEDED
        else:
            electable.append(partition)
    if event.election_type is ElectionType.PREFERRED:
        strategy, none_eligible = Strategy.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        strategy, none_eligible = Strategy.OFFLINE_UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    elected = yield from parts.partitions.change(electable, PartitionState.ONLINE, strategy)
    for partition, result in elected.items():
        results[partition] = _api_error(result, none_eligible)
    return results


def designated_election(parts: Parts, event: DesignatedElection) -> Procedure[dict[TopicPartition, ApiError]]:
    """Elect the leaders that a test has chosen, or depose the leader (NO_LEADER).

    A partition stays without a leader while it is in `context.leaderless`, and is OFFLINE until then.
    """
    if not parts.is_active:
        return dict.fromkeys(event.leaders, ApiError(ErrorCode.NOT_CONTROLLER))
    known = {partition: leader for partition, leader in event.leaders.items() if parts.context.replicas(partition)}
    wanted = [partition for partition, leader in known.items() if parts.context.leader(partition) != leader]
    elected = yield from parts.partitions.change(wanted, PartitionState.ONLINE, Designated(event.leaders))
    deposed = [partition for partition in known if parts.context.leader(partition) == NO_LEADER]
    yield from parts.partitions.change(deposed, PartitionState.OFFLINE)
    results = {partition: ApiError(ErrorCode.NONE) if partition in known else UNKNOWN for partition in event.leaders}
    for partition, result in elected.items():
        results[partition] = _api_error(result, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return results


def _needs_election(parts: Parts, partition: TopicPartition, election_type: ElectionType) -> bool:
    leader = parts.context.leader(partition)
    if election_type is ElectionType.PREFERRED:
        return leader != parts.context.replicas(partition)[0]
    return leader is None or leader == NO_LEADER or not parts.context.is_live_broker(leader)


def _api_error(result: LeaderAndIsr | Exception, none_eligible: ErrorCode) -> ApiError:
    if isinstance(result, LeaderAndIsr):
        return ApiError(ErrorCode.NONE)
    if isinstance(result, StateChangeFailed):
        return ApiError(none_eligible, str(result))
    return ApiError(code_of(result))


# --- preferred leaders


def zk_preferred_election(parts: Parts) -> Procedure[None]:
    """`/admin/preferred_replica_election` lists partitions; elect their preferred leaders, then delete it."""
    if not (yield from exists_with_watch(znodes.PREFERRED_REPLICA_ELECTION)):
        return
    node = yield from get(znodes.PREFERRED_REPLICA_ELECTION)
    listed = [] if node is None else znodes.decode_partitions(node.data)
    context = parts.context
    partitions = [
        partition
        for partition in (TopicPartition(*item) for item in listed)
        if context.replicas(partition)
        and not context.is_topic_queued_for_deletion(partition.topic)
        and _needs_election(parts, partition, ElectionType.PREFERRED)
    ]
    results = yield from parts.partitions.change(partitions, PartitionState.ONLINE, Strategy.PREFERRED)
    yield from _log_failures(parts, results)
    yield from checked_deletes([znodes.PREFERRED_REPLICA_ELECTION], context.epoch_zk_version)
    # Watches the path again, and finds what was written since it was read.
    yield Enqueue(Signal.ZK_PREFERRED_REPLICA_ELECTION)


def _log_failures(parts: Parts, results: ElectionResults) -> Procedure[None]:
    for partition, result in results.items():
        if isinstance(result, Exception):
            yield error(
                f"[Controller id={parts.settings.broker_id}] Error completing replica leader election (PREFERRED) for "
                f"partition {partition}: {result}"
            )


def auto_preferred_election(parts: Parts) -> Procedure[None]:
    """`auto.leader.rebalance.enable`: periodically return leadership to preferred leaders."""
    failure = None
    try:
        yield from _rebalance(parts)
    except Exception as error:  # the next time comes whatever became of this one
        failure = error
    if parts.is_active:
        delay = parts.settings.leader_imbalance_check_interval_seconds
        yield Enqueue(Signal.AUTO_PREFERRED_REPLICA_LEADER_ELECTION, delay)
    if failure is not None:
        raise failure


def _rebalance(parts: Parts) -> Procedure[None]:
    context = parts.context
    preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.all_partitions():
        replicas = context.replicas(partition)
        if replicas and not context.is_topic_queued_for_deletion(partition.topic):
            preferred.setdefault(replicas[0], []).append(partition)
    for broker_id, partitions in preferred.items():
        elsewhere = [p for p in partitions if context.leader(p) not in (None, broker_id)]
        if len(elsewhere) / len(partitions) <= parts.settings.leader_imbalance_per_broker_percentage / 100:
            continue
        candidates = [p for p in elsewhere if _can_lead(parts, broker_id, p)]
        yield info(
            f"[Controller id={parts.settings.broker_id}] Starting replica leader election (PREFERRED) for partitions "
            f"{','.join(map(str, candidates))} triggered by AutoTriggered"
        )
        results = yield from parts.partitions.change(candidates, PartitionState.ONLINE, Strategy.PREFERRED)
        yield from _log_failures(parts, results)


def _can_lead(parts: Parts, broker_id: int, partition: TopicPartition) -> bool:
    leadership = parts.context.partition_leadership_info[partition]
    return parts.context.is_replica_online(broker_id, partition) and broker_id in leadership.leader_and_isr.isr


# --- controlled shutdown


def controlled_shutdown(parts: Parts, event: ControlledShutdown) -> Procedure[list[TopicPartition]]:
    """Move leadership away from a stopping broker; returns partitions that no other broker can lead."""
    context = parts.context
    broker_id = event.broker_id
    _check_may_shut_down(parts, event)
    context.shutting_down_broker_ids.add(broker_id)
    yield info(f"[Controller id={parts.settings.broker_id}] Shutting down broker {broker_id}")
    led, followed = _shared_partitions(parts, broker_id)
    yield from parts.partitions.change(led, PartitionState.ONLINE, Strategy.CONTROLLED_SHUTDOWN)
    batch = BrokerRequestBatch(context, parts.settings)
    for partition in followed:
        batch.add_stop_replica(broker_id, partition, delete=False)
    yield from batch.send()
    replicas = [PartitionAndReplica(partition, broker_id) for partition in followed]
    yield from parts.replicas.change(replicas, ReplicaState.OFFLINE)
    remaining = context.partition_leaders_on_broker(broker_id)
    if remaining:
        yield warning(
            f"[Controller id={parts.settings.broker_id}] {len(remaining)} partitions are still led by broker "
            f"{broker_id}"
        )
    return remaining


def _check_may_shut_down(parts: Parts, event: ControlledShutdown) -> None:
    if not parts.is_active:
        # ControllerMovedException in Kafka, which clients know by this code.
        raise KafkaError(
            ErrorCode.STALE_CONTROLLER_EPOCH,
            "Controller moved to another broker. Aborting controlled shutdown",
        )
    broker_id = event.broker_id
    known_epoch = parts.context.live_broker_epochs.get(broker_id)
    if known_epoch is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
    if event.broker_epoch != UNKNOWN_BROKER_EPOCH and event.broker_epoch < known_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Received controlled shutdown request from an old broker epoch {event.broker_epoch} for broker "
            f"{broker_id}. Current broker epoch is {known_epoch}.",
        )


def _shared_partitions(parts: Parts, broker_id: int) -> tuple[Sequence[TopicPartition], Collection[TopicPartition]]:
    """Partitions that have another replica: those the broker leads, and those it follows."""
    context = parts.context
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for partition in context.partitions_on_broker(broker_id):
        leader = context.leader(partition)
        if (
            len(context.replicas(partition)) > 1
            and leader is not None
            and not context.is_topic_queued_for_deletion(partition.topic)
        ):
            (led if leader == broker_id else followed).append(partition)
    return led, followed
