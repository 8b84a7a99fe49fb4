"""What a client is refused when it creates or grows a topic, and with which text.

The texts are Kafka's, because clients print them: those of 3.9.1, or of 4.3.1 in the place of a Kafka 4. Pure
functions: those that check raise KafkaError, the others make one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kpybroker.core import topic_names
from kpybroker.core.controller.events import ApiError
from kpybroker.core.placement import Assignment
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.znodes import TopicAssignment


def api_error(error: KafkaError) -> ApiError:
    """``ApiError.fromThrowable``: without a text that only repeats the code, and without internal details."""
    says_more = error.code is not ErrorCode.UNKNOWN_SERVER_ERROR and error.message != error.code.message
    return ApiError(error.code, error.message if says_more else None)


def already_exists(name: str) -> KafkaError:
    """TOPIC_ALREADY_EXISTS."""
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def marked_for_deletion(name: str) -> KafkaError:
    """TOPIC_ALREADY_EXISTS, as long as the deletion of an older topic is not complete."""
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")


def check_name(name: str) -> None:
    """Raises KafkaError(INVALID_TOPIC_EXCEPTION) for a name that no topic may have."""
    reason = topic_names.invalid_reason(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def check_collisions(name: str, existing: Sequence[str], *, as_kafka_4: bool = False) -> None:
    """Raises KafkaError if the name would share metric names with an existing one (`a.b` and `a_b`), or exists."""
    if name in existing:
        raise already_exists(name)
    colliding = [other for other in existing if topic_names.has_collision(name, other)]
    if colliding:
        with_what = f"topic: {colliding[0]}" if as_kafka_4 else f"topics: {', '.join(colliding)}"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing {with_what}")


def present_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The configs of a new topic. Raises KafkaError(INVALID_CONFIG) if a value is None."""
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
    return {name: value for name, value in configs.items() if value is not None}


def check_count(partitions: int) -> None:
    """Raises KafkaError(POLICY_VIOLATION), with KRaft's text, for more partitions than a topic can have."""
    if partitions > topic_names.PARTITIONS_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def check_factor_of_kafka_4(replication_factor: int, brokers: int) -> None:
    """Raises KafkaError(INVALID_REPLICATION_FACTOR), with Kafka 4's text, for more replicas than there are brokers."""
    if replication_factor > brokers > 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {brokers} broker(s) are registered or some brokers "
            "have all their log directories cordoned.",
        )


def check_replicas_of_kafka_4(
    assignments: Iterable[Sequence[int]], broker_ids: Collection[int], factor: int | None = None
) -> None:
    """Raises KafkaError(INVALID_REPLICA_ASSIGNMENT), with KRaft's text, for replicas of partitions that a client chose.

    All have `factor` of them, or as many as the first. Kafka 3.9 creates partitions without a leader where a broker is
    not there.
    """
    for replicas in assignments:
        problem = _problem_of_kafka_4(sorted(replicas), broker_ids, factor)
        if problem is not None:
            text = f"The manual partition assignment includes {problem}"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        factor = len(replicas)


def _problem_of_kafka_4(replicas: Sequence[int], broker_ids: Collection[int], factor: int | None) -> str | None:
    """As ``ReplicationControlManager.validateManualPartitionAssignment``, in its order."""
    if not replicas:
        return "an empty replica list."
    before = None
    for broker in replicas:
        if broker not in broker_ids:
            return f"broker {broker}, but no such broker is registered."
        if broker == before:
            return f"the broker {broker} more than once."
        before = broker
    if factor is not None and len(replicas) != factor:
        return (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, which "
            f"have {factor} replica(s)."
        )
    return None


def unknown_topic(name: str, *, as_kafka_4: bool = False) -> KafkaError:
    """UNKNOWN_TOPIC_OR_PARTITION of a topic that is to grow; Kafka 4 says no more than the code does."""
    if as_kafka_4:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def check_growth(name: str, current: TopicAssignment, total_count: int, *, as_kafka_4: bool = False) -> None:
    """Raises KafkaError if the topic is being reassigned, or has as many partitions already."""
    if any(a.adding_replicas or a.removing_replicas for a in current.partitions.values()):
        raise KafkaError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS, f"A partition reassignment is in progress for the topic '{name}'."
        )
    count = len(current.partitions)
    if total_count < count:
        message = f"Topic currently has {count} partitions, which is higher than the requested {total_count}."
        if as_kafka_4:
            message = f"The topic {name} currently has {count} partition(s); {total_count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if total_count == count:
        noun = "partition(s)" if as_kafka_4 else "partitions"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} {noun}.")
    check_count(total_count)


def check_assignments(assignments: Assignment) -> None:
    """What AdminZkClient refuses in a manual assignment. Raises KafkaError(INVALID_REPLICA_ASSIGNMENT)."""
    if len({len(replicas) for replicas in assignments.values()}) != 1:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "All partitions should have the same number of replicas")
    if any(len(replicas) != len(set(replicas)) for replicas in assignments.values()):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Duplicate replica assignment found: {_as_scala_prints(assignments)}",
        )
    if set(assignments) != set(range(len(assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )


def check_new_assignments(
    assignments: Sequence[Sequence[int]],
    old_count: int,
    new_count: int,
    replication_factor: int,
    broker_ids: set[int],
    *,
    as_kafka_4: bool = False,
) -> Assignment:
    """The assignment of the added partitions, `assignments` being of these in order.

    Raises KafkaError(INVALID_REPLICA_ASSIGNMENT) for what ZkAdminManager.createPartitions and AdminZkClient refuse, in
    their order; in the place of a Kafka 4 for what KRaft refuses, in its order.
    """
    increment = new_count - old_count
    if as_kafka_4:
        _check_new_of_kafka_4(assignments, increment, replication_factor, broker_ids)

    def refuse(message: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

    unknown = {broker_id for replicas in assignments for broker_id in replicas} - broker_ids
    if unknown:
        raise refuse(f"Unknown broker(s) in replica assignment: {', '.join(map(str, sorted(unknown)))}.")
    if len(assignments) != increment:
        raise refuse(f"Increasing the number of partitions by {increment} but {len(assignments)} assignments provided.")
    added = {old_count + index: list(replicas) for index, replicas in enumerate(assignments)}
    for partition, replicas in added.items():
        if not replicas:
            raise refuse(f"Cannot have replication factor of 0 for partition id {partition}.")
        if len(replicas) != len(set(replicas)):
            raise refuse(
                f"Duplicate brokers not allowed in replica assignment: {', '.join(map(str, replicas))} "
                f"for partition id {partition}."
            )
    bad = {p: len(replicas) for p, replicas in added.items() if len(replicas) != replication_factor}
    if bad:
        raise refuse(
            f"Inconsistent replication factor between partitions, partition 0 has {replication_factor} while "
            f"partitions [{', '.join(map(str, bad))}] have replication factors "
            f"[{', '.join(map(str, bad.values()))}], respectively."
        )
    return added


def _check_new_of_kafka_4(
    assignments: Sequence[Sequence[int]], increment: int, factor: int, broker_ids: Collection[int]
) -> None:
    if len(assignments) != increment:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {increment} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified.",
        )
    check_replicas_of_kafka_4(assignments, broker_ids, factor)


def _as_scala_prints(assignments: Mapping[int, Sequence[int]]) -> str:
    """HashMap(0 -> ArrayBuffer(1, 2)), as in Kafka's text."""
    places = (f"{index} -> ArrayBuffer({', '.join(map(str, brokers))})" for index, brokers in assignments.items())
    return f"HashMap({', '.join(places)})"
