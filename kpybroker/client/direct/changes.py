"""Changes of topics and settings, as confluent-kafka's ``AdminClient`` takes them: a result or a CommandError of each.

The controller makes the changes of topics; a broker that is no longer it is asked who is, until the deadline of a
request. A change that got no response is not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from kpybroker.client.connect import raw_configs
from kpybroker.client.connect.errors import WITHOUT_CONTROLLER, CommandError, broker_error
from kpybroker.client.connect.wire import RETRY_S, WireBroker, WireCluster
from kpybroker.client.direct import topics
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.delete_records import DeleteRecordsRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest

BY_STATE: Final = 6
"""The version of DeleteTopics that has names or ids."""
DEFAULTS: Final = 4
"""The version of CreateTopics in which -1 is the broker's default."""

Found = Mapping[str, CommandError | None]


def controller(wire: WireCluster) -> WireBroker:
    """The broker that changes topics. Raises CommandError if there is none."""
    if wire.controller_id not in wire.nodes:
        raise CommandError("there is no controller", WITHOUT_CONTROLLER)
    return wire.broker(wire.controller_id)


Outcomes = dict[str, tuple[int, str | None]]
"""The error code and the text of each name."""


def _by_controller(
    wire: WireCluster, names: Iterable[str], ask: Callable[[WireBroker, Collection[str]], Outcomes]
) -> Found:
    """The outcome of each name. `ask` asks a broker for some of them: in the end those that no controller has taken."""
    deadline = time.monotonic() + wire.timeout_s
    found: Outcomes = {}
    left: Collection[str] = set(names)
    by = controller(wire)
    while True:
        found |= ask(by, left)
        left = {name for name, (code, _) in found.items() if code == ErrorCode.NOT_CONTROLLER}
        next_one = _next_controller(wire, deadline) if left else None
        if next_one is None:
            return {name: broker_error(code, text) for name, (code, text) in found.items()}
        by = next_one


def _next_controller(wire: WireCluster, deadline: float) -> WireBroker | None:
    """The controller as a broker knows it a moment later; None if there is none until the deadline."""
    while time.monotonic() <= deadline:
        time.sleep(RETRY_S)
        wire.refresh()
        if wire.controller_id in wire.nodes:
            return wire.broker(wire.controller_id)
    return None


def create_topics(wire: WireCluster, wanted: Iterable[Any], validate_only: bool) -> Found:
    """Create topics, or have them checked. Raises CommandError."""
    kind = CreateTopicsRequest.CreatableTopic
    creatable = [
        kind(
            name=one.topic,
            num_partitions=-1 if one.replica_assignment else one.num_partitions,
            replication_factor=-1 if one.replica_assignment else one.replication_factor,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
                for number, brokers in enumerate(one.replica_assignment or ())
            ],
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in one.config.items()
            ],
        )
        for one in wanted
    ]

    def ask(broker: WireBroker, names: Collection[str]) -> Outcomes:
        asked = [one for one in creatable if one.name in names]
        timeout_ms = int(wire.timeout_s * 1000)
        request = CreateTopicsRequest(topics=asked, timeout_ms=timeout_ms, validate_only=validate_only)
        response = broker.request(ApiKey.CREATE_TOPICS, request)
        return {one.name: (one.error_code, one.error_message) for one in response.topics}

    return _by_controller(wire, [one.name for one in creatable], ask)


def create_partitions(wire: WireCluster, wanted: Iterable[Any], validate_only: bool) -> Found:
    """Add partitions, to so many in all. Raises CommandError."""
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    growing = [kind(name=one.topic, count=one.new_total_count, assignments=None) for one in wanted]

    def ask(broker: WireBroker, names: Collection[str]) -> Outcomes:
        request = CreatePartitionsRequest(
            topics=[one for one in growing if one.name in names],
            timeout_ms=int(wire.timeout_s * 1000),
            validate_only=validate_only,
        )
        response = broker.request(ApiKey.CREATE_PARTITIONS, request)
        return {one.name: (one.error_code, one.error_message) for one in response.results}

    return _by_controller(wire, [one.name for one in growing], ask)


def delete_topics(wire: WireCluster, names: Iterable[str]) -> Found:
    """Delete topics. Raises CommandError."""
    wanted = list(names)

    def ask(broker: WireBroker, names: Collection[str]) -> Outcomes:
        timeout_ms = int(wire.timeout_s * 1000)
        asked = [name for name in wanted if name in names]
        if broker.version_of(ApiKey.DELETE_TOPICS) >= BY_STATE:
            states = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in asked]
            request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
        else:
            request = DeleteTopicsRequest(topic_names=asked, timeout_ms=timeout_ms)
        response = broker.request(ApiKey.DELETE_TOPICS, request)
        return {one.name: (one.error_code, one.error_message or None) for one in response.responses}

    return _by_controller(wire, wanted, ask)


def delete_records(
    wire: WireCluster, known: topics.Known, wanted: Mapping[topics.Place, int]
) -> dict[topics.Place, Any]:
    """Delete the records below an offset of each partition: its new first offset, or a CommandError."""
    found: dict[topics.Place, Any] = {}
    by_leader: dict[int, dict[str, list[Any]]] = {}
    for (topic, number), offset in wanted.items():
        leader = known.leader((topic, number))
        if isinstance(leader, CommandError):
            found[topic, number] = leader
            continue
        one = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=number, offset=offset)
        by_leader.setdefault(leader, {}).setdefault(topic, []).append(one)
    for leader, by_topic in by_leader.items():
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=parts)
                for topic, parts in by_topic.items()
            ],
            timeout_ms=int(wire.timeout_s * 1000),
        )
        try:
            response = wire.broker(leader).request(ApiKey.DELETE_RECORDS, request)
        except CommandError as error:
            found |= {(topic, one.partition_index): error for topic, parts in by_topic.items() for one in parts}
            continue
        for topic in response.topics:
            for one in topic.partitions:
                low = SimpleNamespace(low_watermark=one.low_watermark)
                found[topic.name, one.partition_index] = broker_error(one.error_code) or low
    return found


# --- settings


def alter_configs(wire: WireCluster, resources: Iterable[Any], validate_only: bool) -> dict[Any, CommandError | None]:
    """Change settings of each resource, or have the changes checked."""
    found: dict[Any, CommandError | None] = {}
    for one in resources:
        changes = [
            (entry.name, int(entry.incremental_operation.value), entry.value) for entry in one.incremental_configs
        ]
        try:
            raw_configs.alter(wire, int(one.restype.value), one.name, changes, validate_only=validate_only)
            found[one] = None
        except CommandError as error:
            found[one] = error
    return found


def describe_configs(wire: WireCluster, resources: Iterable[Any]) -> dict[Any, Any]:
    """The settings of each resource by key, or a CommandError."""
    found: dict[Any, Any] = {}
    for one in resources:
        kind = int(one.restype.value)
        broker = wire.broker(int(one.name)) if kind == raw_configs.BROKER else None
        entries = raw_configs.describe(wire, kind, [one.name], broker)[one.name]
        found[one] = entries if isinstance(entries, CommandError) else {entry.name: entry for entry in entries}
    return found
