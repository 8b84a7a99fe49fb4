"""The text of scenarios: parsing of arguments, and formats of events, writes, requests and responses."""

from __future__ import annotations

from typing import Any

from kpybroker.core import tree as t
from kpybroker.core.controller import events
from kpybroker.core.controller.events import Signal
from kpybroker.core.controller.model import ReplicaAssignment
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.alter_partition import AlterPartitionResponse
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest


def parse_partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def parse_ids(text: str) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",") if item)


def parse_assignments(texts: Any) -> dict[int, znodes.PartitionAssignment]:
    pairs = (text.split(":") for text in texts)
    return {int(partition): znodes.PartitionAssignment(parse_ids(replicas)) for partition, replicas in pairs}


def list_text(numbers: Any) -> str:
    return ",".join(map(str, numbers)) or "-"


def state_text(state: znodes.PartitionState) -> str:
    recovering = " recovering" if state.leader_recovery_state else ""
    return (
        f"leader {state.leader} epoch {state.leader_epoch} isr {list_text(state.isr)} "
        f"controller {state.controller_epoch}{recovering}"
    )


def write_text(op: t.Operation) -> str:
    if isinstance(op, t.Multi):
        return " + ".join(write_text(part) for part in op.ops if not isinstance(part, t.Check))
    name = {t.Create: "create", t.SetData: "set", t.Delete: "delete"}[type(op)]
    text = f"{name} {op.path}"
    if isinstance(op, t.Create | t.SetData):
        if op.path.endswith("/state"):
            text += f" ({state_text(znodes.decode_partition_state(op.data))})"
        elif op.path == znodes.CONTROLLER_EPOCH or op.path.startswith(f"{znodes.TOPICS}/"):
            text += f" {op.data.decode()}" if op.data else ""
    return text


def failure_text(result: Any) -> str:
    if isinstance(result, t.MultiFailed):
        return f": {type(result.error).__name__}{' of the epoch' if result.index == 0 else ''}"
    return f": {type(result).__name__}" if isinstance(result, t.TreeError) else ""


def event_text(event: events.Event) -> str:
    if isinstance(event, Signal):
        return str(event.value)
    name = type(event).__name__
    if isinstance(event, events.TopicDeletionStopReplicaResponseReceived):
        parts = (f"{p}:{ErrorCode(code).name}" for p, code in event.partition_errors.items())
        return f"StopReplica response of {event.broker_id}: {' '.join(parts)}"
    if isinstance(event, events.LeaderAndIsrResponseReceived):
        return f"LeaderAndIsr response of {event.broker_id} with errors"
    if isinstance(event, events.BrokerModifications):
        return f"{name} {event.broker_id}"
    if isinstance(event, events.PartitionModifications):
        return f"{name} {event.topic}"
    if isinstance(event, events.PartitionReassignmentIsrChange):
        return f"{name} {event.partition}"
    return name


def request_text(message: Any, version: int) -> str:
    name = type(message).__name__.removesuffix("Request")
    states = [(topic.topic_name, state) for topic in message.topic_states for state in topic.partition_states]
    if isinstance(message, UpdateMetadataRequest):
        states += [(state.topic_name, state) for state in message.ungrouped_partition_states]
        live = list_text(sorted(broker.id for broker in message.live_brokers))
        parts = [
            f"{topic}-{s.partition_index}[leader {s.leader} epoch {s.leader_epoch} isr {list_text(s.isr)}"
            f"{f' offline {list_text(s.offline_replicas)}' if s.offline_replicas else ''}]"
            for topic, s in states
        ]
        return f"{name} v{version} live {live}{': ' if parts else ''}{' '.join(parts)}"
    if isinstance(message, LeaderAndIsrRequest):
        states += [(state.topic_name, state) for state in message.ungrouped_partition_states]
        parts = [
            f"{topic}-{s.partition_index}[leader {s.leader} epoch {s.leader_epoch} isr {list_text(s.isr)} "
            f"replicas {list_text(s.replicas)}{' new' if s.is_new else ''}]"
            for topic, s in states
        ]
        return f"{name} v{version} {' '.join(parts)}"
    parts = [
        f"{topic}-{s.partition_index}[epoch {s.leader_epoch}{' delete' if s.delete_partition else ''}]"
        for topic, s in states
    ]
    deletes = " delete" if message.delete_partitions else ""
    parts += [f"{p.topic_name}-{p.partition_index}{deletes}" for p in message.ungrouped_partitions]
    parts += [f"{topic.name}-{i}{deletes}" for topic in message.topics for i in topic.partition_indexes]
    return f"{name} v{version} {' '.join(parts)}"


def response_text(response: Any) -> str:
    if isinstance(response, KafkaError):
        return f"{response.code.name} {response.message}"
    if isinstance(response, dict) and any(isinstance(value, ReplicaAssignment) for value in response.values()):
        return " ".join(f"{partition}:{assignment}" for partition, assignment in response.items())
    if isinstance(response, dict):
        return " ".join(
            f"{p}:{e.code.name}{f'({e.message})' if e.message else ''}" for p, e in sorted(response.items())
        )
    if isinstance(response, AlterPartitionResponse):
        parts = [
            f"{topic.topic_name or int.from_bytes(topic.topic_id, 'big')}-{p.partition_index}:"
            + (
                ErrorCode(p.error_code).name
                if p.error_code
                else f"isr {list_text(p.isr)} partition epoch {p.partition_epoch}"
            )
            for topic in response.topics
            for p in topic.partitions
        ]
        return f"{ErrorCode(response.error_code).name} {' '.join(parts)}"
    if isinstance(response, list):
        return f"still leads {' '.join(map(str, response)) or 'nothing'}"
    return str(response)
