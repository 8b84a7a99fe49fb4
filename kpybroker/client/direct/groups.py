"""Groups: listed by every broker, described by their coordinators, their offsets read and committed.

As Java's client, a description asks ConsumerGroupDescribe first, which knows groups of KIP-848, and then
DescribeGroups. Groups of one coordinator are asked for together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from kpybroker.client.connect.errors import CommandError, broker_error, check
from kpybroker.client.connect.groups import consumer_groups, raw_groups
from kpybroker.client.connect.groups.listing import DESCRIBED_BY
from kpybroker.client.connect.wire import GROUP, RETRY_S, WireBroker, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest

BATCHED_COORDINATORS: Final = 4
MOVED: Final = frozenset(
    (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
)
NOT_OF_THIS_KIND: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
INVALID: Final = -1
DEAD: Final = "Dead"

T = TypeVar("T")


def listed(wire: WireCluster) -> tuple[list[Any], list[CommandError]]:
    """A listing of each group, and the errors of brokers that did not list theirs."""
    found: dict[str, Any] = {}
    errors = []
    for node_id in sorted(wire.nodes):
        try:
            response = wire.broker(node_id).request(ApiKey.LIST_GROUPS, ListGroupsRequest())
            check(response.error_code)
        except CommandError as error:
            errors.append(error)
            continue
        for one in response.groups:
            if one.group_type.lower() not in DESCRIBED_BY:
                found[one.group_id] = _listing(one)
    return list(found.values()), errors


def _listing(one: Any) -> Any:
    kind = SimpleNamespace(name=(one.group_type or "unknown").upper())
    state = SimpleNamespace(name=one.group_state or "Unknown")
    return SimpleNamespace(group_id=one.group_id, state=state, type=kind, protocol_type=one.protocol_type)


def described(wire: WireCluster, names: Sequence[str]) -> dict[str, Any]:
    """A `RawGroup` or a CommandError of each."""
    found: dict[str, Any] = {}
    deadline = time.monotonic() + wire.timeout_s
    while True:
        missing = [name for name in names if name not in found]
        by_broker, failed = _coordinators(wire, missing)
        found |= failed
        for broker, of_broker in by_broker:
            try:
                found |= _described_by(broker, of_broker)
            except CommandError as error:
                found |= dict.fromkeys(of_broker, error)
        again = [name for name, one in found.items() if isinstance(one, _Moved)]
        if not again or time.monotonic() > deadline:
            return found
        for name in again:
            del found[name]
        time.sleep(RETRY_S)


class _Moved(CommandError):
    """The coordinator is another one, or is loading."""


def _error(code: int, message: str | None = None) -> CommandError | None:
    error = broker_error(code, message)
    return _Moved(error.cause, error.fix, name=error.name) if error is not None and code in MOVED else error


def _coordinators(
    wire: WireCluster, names: Sequence[str]
) -> tuple[list[tuple[WireBroker, list[str]]], dict[str, CommandError]]:
    """The groups of each coordinator, and those whose coordinator is not known."""
    if len(names) < 2 or wire.any().version_of(ApiKey.FIND_COORDINATOR) < BATCHED_COORDINATORS:
        return _one_by_one(wire, names)
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=list(names))
    response = wire.any().request(ApiKey.FIND_COORDINATOR, request)
    by_node: dict[int, list[str]] = {}
    failed: dict[str, CommandError] = {}
    for one in response.coordinators:
        error = _error(one.error_code, one.error_message)
        if error is None:
            by_node.setdefault(one.node_id, []).append(one.key)
        else:
            failed[one.key] = error
    found = []
    for node_id, of_node in by_node.items():
        try:
            found.append((wire.broker(node_id), of_node))
        except CommandError as error:
            failed |= dict.fromkeys(of_node, error)
    return found, failed


def _one_by_one(
    wire: WireCluster, names: Sequence[str]
) -> tuple[list[tuple[WireBroker, list[str]]], dict[str, CommandError]]:
    found: dict[int, tuple[WireBroker, list[str]]] = {}
    failed: dict[str, CommandError] = {}
    for name in names:
        try:
            broker = wire.coordinator(name, GROUP)
        except CommandError as error:
            failed[name] = error
        else:
            found.setdefault(id(broker), (broker, []))[1].append(name)
    return list(found.values()), failed


def _described_by(broker: WireBroker, names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    node_id = INVALID if broker.node_id is None else broker.node_id
    if ApiKey.CONSUMER_GROUP_DESCRIBE in broker.versions:
        request: Any = ConsumerGroupDescribeRequest(group_ids=list(names))
        for one in broker.request(ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups:
            if one.error_code not in NOT_OF_THIS_KIND:
                found[one.group_id] = _error(one.error_code, one.error_message) or consumer_groups.of(one, node_id)
    classic = [name for name in names if name not in found]
    if classic:
        request = DescribeGroupsRequest(groups=classic)
        for one in broker.request(ApiKey.DESCRIBE_GROUPS, request).groups:
            if one.error_code == ErrorCode.GROUP_ID_NOT_FOUND:  # from version 6 on; earlier ones have the state alone
                found[one.group_id] = raw_groups.RawGroup(DEAD, "", "", node_id, [])
            else:
                found[one.group_id] = _error(one.error_code) or raw_groups.of(one, node_id)
    return found


def _of_coordinator(wire: WireCluster, name: str, ask: Callable[[WireBroker], tuple[int, T]]) -> T | CommandError:
    """What the coordinator says, asked again where it has moved; `ask` returns an error code with it."""
    deadline = time.monotonic() + wire.timeout_s
    while True:
        try:
            code, found = ask(wire.coordinator(name, GROUP))
        except CommandError as error:
            return error
        if code not in MOVED or time.monotonic() > deadline:
            return broker_error(code) or found
        time.sleep(RETRY_S)


def committed_by_group(wire: WireCluster, names: Sequence[str], parts: Sequence[Any] | None) -> dict[str, Any]:
    """The committed offsets of each group, or a CommandError: those of one coordinator in one request."""
    found: dict[str, Any] = {}
    by_broker, failed = _coordinators(wire, names)
    found |= failed
    for broker, of_broker in by_broker:
        try:
            if broker.version_of(ApiKey.OFFSET_FETCH) >= raw_groups.BATCHED:
                found |= _committed_by(broker, of_broker, parts)
        except CommandError as error:
            found |= dict.fromkeys(of_broker, error)
    for name in names:  # one by one: of an old broker, and where the coordinator has moved
        if name not in found or isinstance(found[name], _Moved):
            found[name] = committed(wire, name, parts)
    return found


def _committed_by(broker: WireBroker, names: Sequence[str], parts: Sequence[Any] | None) -> dict[str, Any]:
    topic, group = OffsetFetchRequest.OffsetFetchRequestTopics, OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = [topic(name=name, partition_indexes=numbers) for name, numbers in _by_topic(parts).items()]
    request = OffsetFetchRequest(groups=[group(group_id=name, topics=wanted or None) for name in names])
    response = broker.request(ApiKey.OFFSET_FETCH, request)
    return {one.group_id: _error(one.error_code) or _committed_of(one) for one in response.groups}


def committed(wire: WireCluster, name: str, parts: Iterable[Any] | None) -> Any:
    """The committed offsets as ``list_consumer_group_offsets`` has them, or a CommandError."""

    def ask(broker: WireBroker) -> tuple[int, Any]:
        if broker.version_of(ApiKey.OFFSET_FETCH) >= raw_groups.BATCHED:
            topics: Any = OffsetFetchRequest.OffsetFetchRequestTopics
            wanted = [topics(name=topic, partition_indexes=numbers) for topic, numbers in _by_topic(parts).items()]
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=wanted or None)
            request = OffsetFetchRequest(groups=[group])
        else:
            topics = OffsetFetchRequest.OffsetFetchRequestTopic
            wanted = [topics(name=topic, partition_indexes=numbers) for topic, numbers in _by_topic(parts).items()]
            request = OffsetFetchRequest(group_id=name, topics=wanted or None)
        response = broker.request(ApiKey.OFFSET_FETCH, request)
        found = response.groups[0] if response.groups else response
        return found.error_code, _committed_of(found)

    return _of_coordinator(wire, name, ask)


def _by_topic(parts: Iterable[Any] | None) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for part in parts or ():
        by_topic.setdefault(part.topic, []).append(part.partition)
    return by_topic


def _committed_of(found: Any) -> Any:
    """A group of a response of OffsetFetch, in the shape of confluent-kafka."""
    rows = [
        SimpleNamespace(
            topic=topic.name,
            partition=one.partition_index,
            offset=one.committed_offset,
            error=broker_error(one.error_code),
        )
        for topic in found.topics
        for one in topic.partitions
    ]
    return SimpleNamespace(topic_partitions=rows)


def commit(wire: WireCluster, name: str, parts: Iterable[Any]) -> Any:
    """Commit offsets, or say why not: as ``alter_consumer_group_offsets``, or a CommandError."""
    by_topic: dict[str, list[Any]] = {}
    for part in parts:
        one = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=part.partition, committed_offset=part.offset
        )
        by_topic.setdefault(part.topic, []).append(one)
    topics = [
        OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=of_topic)
        for topic, of_topic in by_topic.items()
    ]

    def ask(broker: WireBroker) -> tuple[int, Any]:
        response = broker.request(ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id=name, topics=topics))
        codes = {one.error_code for topic in response.topics for one in topic.partitions}
        rows = [
            SimpleNamespace(topic=topic.name, partition=one.partition_index, error=broker_error(one.error_code))
            for topic in response.topics
            for one in topic.partitions
        ]
        moved = next((code for code in codes if code in MOVED), 0)
        return moved, SimpleNamespace(topic_partitions=rows)

    return _of_coordinator(wire, name, ask)


def delete(wire: WireCluster, name: str) -> CommandError | None:
    """Delete a group without members; why it was not."""

    def ask(broker: WireBroker) -> tuple[int, Any]:
        response = broker.request(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=[name]))
        return response.results[0].error_code, None

    return _of_coordinator(wire, name, ask)
