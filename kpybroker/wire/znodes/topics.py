"""Topics, partitions and the notifications about them: bytes <-> values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kpybroker.wire.znodes.jackson import (
    ZnodeError,
    immutable,
    integer,
    integers,
    mutable,
    parse,
    string,
    to_json,
)
from kpybroker.wire.znodes.paths import REASSIGN_PARTITIONS, topic_path


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """Broker ids of a partition's replicas, and those that a reassignment adds and removes."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """`/brokers/topics/<topic>`. No topic id: written by a Kafka before 2.8."""

    topic_id: bytes | None
    partitions: Mapping[int, PartitionAssignment]


def encode_uuid(uuid: bytes) -> str:
    """As org.apache.kafka.common.Uuid.toString: base 64 for URLs, 22 characters."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def decode_uuid(text: str) -> bytes:
    """The 16 bytes of `encode_uuid`'s text. Raises ZnodeError."""
    try:
        uuid = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ZnodeError(f"{text!r} is not a UUID") from error
    if len(uuid) != 16:
        raise ZnodeError(f"{text!r} is not a UUID of 16 bytes")
    return uuid


def encode_topic(topic: TopicAssignment) -> bytes:
    """The value of `/brokers/topics/<topic>`, version 3."""
    partitions = topic.partitions.items()
    values: dict[str, Any] = {
        "version": 3,
        "partitions": mutable({str(p): list(a.replicas) for p, a in partitions}),
        "adding_replicas": mutable({str(p): list(a.adding_replicas) for p, a in partitions if a.adding_replicas}),
        "removing_replicas": mutable({str(p): list(a.removing_replicas) for p, a in partitions if a.removing_replicas}),
    }
    if topic.topic_id is not None:
        values["topic_id"] = encode_uuid(topic.topic_id)
    return to_json(mutable(values, literal=4))


def _topic(values: dict[str, Any]) -> TopicAssignment:
    adding = values.get("adding_replicas") or {}
    removing = values.get("removing_replicas") or {}
    topic_id = values.get("topic_id")
    return TopicAssignment(
        None if topic_id is None else decode_uuid(string(topic_id)),
        {
            int(p): PartitionAssignment(
                integers(replicas),
                integers(adding[p]) if p in adding else (),
                integers(removing[p]) if p in removing else (),
            )
            for p, replicas in (values.get("partitions") or {}).items()
        },
    )


def decode_topic(topic: str, data: bytes | None) -> TopicAssignment:
    """The assignment at `/brokers/topics/<topic>`, of any version. Raises ZnodeError."""
    return parse(topic_path(topic), data, _topic)


RECOVERED, RECOVERING = 0, 1
"""Kafka's LeaderRecoveryState: RECOVERING after an unclean election (KIP-704)."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """`.../partitions/<partition>/state`. The node's version is Kafka's partition epoch; leader -1: none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    leader_recovery_state: int = RECOVERED


def encode_partition_state(state: PartitionState) -> bytes:
    """The value of a partition's state node."""
    values: dict[str, Any] = {
        "version": 1,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": state.controller_epoch,
        "isr": list(state.isr),
    }
    if state.leader_recovery_state != RECOVERED:
        values["leader_recovery_state"] = state.leader_recovery_state
    return to_json(immutable(values))


def decode_partition_state(data: bytes | None) -> PartitionState:
    """A partition's state. Raises ZnodeError."""
    return parse(
        "a partition's state",
        data,
        lambda values: PartitionState(
            integer(values["leader"]),
            integer(values["leader_epoch"]),
            integers(values["isr"]),
            integer(values["controller_epoch"]),
            integer(values.get("leader_recovery_state", RECOVERED)),
        ),
    )


def encode_partitions(partitions: Iterable[tuple[str, int]]) -> bytes:
    """(topic, partition) pairs, as in `/isr_change_notification/*` and `/admin/preferred_replica_election`."""
    return to_json({"version": 1, "partitions": [{"topic": t, "partition": p} for t, p in partitions]})


def decode_partitions(data: bytes | None) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of `encode_partitions`. Raises ZnodeError."""
    return parse(
        "a list of partitions",
        data,
        lambda values: [(string(item["topic"]), integer(item["partition"])) for item in values["partitions"]],
    )


def encode_log_dir_event(broker_id: int) -> bytes:
    """The notification that one of the broker's log directories has failed."""
    return to_json({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes | None) -> int:
    """The broker one of whose log directories has failed."""
    return parse("a log directory event", data, lambda values: integer(values["broker"]))


def encode_reassignment(assignment: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """The value of `/admin/reassign_partitions`: new replicas by (topic, partition)."""
    partitions = [{"topic": t, "partition": p, "replicas": list(r)} for (t, p), r in assignment.items()]
    return to_json({"version": 1, "partitions": partitions})


def decode_reassignment(data: bytes | None) -> dict[tuple[str, int], tuple[int, ...]]:
    """New replicas by (topic, partition). Raises ZnodeError."""
    return parse(
        REASSIGN_PARTITIONS,
        data,
        lambda values: {
            (string(item["topic"]), integer(item["partition"])): integers(item["replicas"])
            for item in values["partitions"]
        },
    )
