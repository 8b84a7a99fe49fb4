"""Groups as DescribeGroups has them, for those of which librdkafka makes nothing; and offsets with their metadata.

It gives up a whole group when one member's assignment cannot be read, and refuses groups that are not of consumers, as
those of Connect and of schema registries. Here an assignment that is none of Kafka's consumers stays bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, broker_error, check
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode_from
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_delete import OffsetDeleteRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest

BATCHED: Final = 8
"""The version of OffsetFetch that asks for several groups."""
CONSUMER: Final = "consumer"
SHOWN_BYTES_MAX: Final = 64

Places = list[tuple[str, int]]


class RawMember(NamedTuple):
    """A member; `assignment` is empty where its bytes cannot be read, and `assignment_bytes` are then not None.

    Only those of newer protocols have what follows. `protocol` is the one that the member itself uses; `streams` is
    what only members of streams groups have.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: Places
    assignment_bytes: bytes | None
    member_epoch: int | None = None
    target: Places | None = None
    topics: list[str] | None = None
    regex: str | None = None
    rack_id: str | None = None
    protocol: str | None = None
    streams: Any = None


class RawGroup(NamedTuple):
    """A group; `state` has Kafka's name. Only those of newer protocols have epochs; `streams` is of streams groups."""

    state: str
    protocol_type: str
    partition_assignor: str
    coordinator_id: int
    members: list[RawMember]
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    streams: Any = None


def describe(wire: WireCluster, names: Iterable[str]) -> dict[str, RawGroup | CommandError]:
    """The groups by name."""
    found: dict[str, RawGroup | CommandError] = {}
    for name in names:
        try:
            found[name] = _described(wire, name)
        except CommandError as error:
            found[name] = error
    return found


def _described(cluster: WireCluster, name: str) -> RawGroup:
    broker = cluster.coordinator(name, GROUP)
    (group,) = broker.request(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[name])).groups
    check(group.error_code)
    return of(group, -1 if broker.node_id is None else broker.node_id)


def of(group: Any, node_id: int) -> RawGroup:
    """A group of a response of DescribeGroups, from the broker of this id."""
    members = []
    for one in group.members:
        data = bytes(one.member_assignment)
        places = assigned(data) if group.protocol_type == CONSUMER else None
        unread = data if places is None and data else None
        instance_id = one.group_instance_id
        members.append(RawMember(one.member_id, instance_id, one.client_id, one.client_host, places or [], unread))
    return RawGroup(group.group_state, group.protocol_type, group.protocol_data, node_id, members)


class Committed(NamedTuple):
    """A committed offset."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str | None


def committed(settings: Settings, name: str) -> list[Committed]:
    """The group's committed offsets, sorted; partitions that cannot be read are left out. Raises CommandError."""
    with WireCluster(settings) as cluster:
        broker = cluster.coordinator(name, GROUP)
        if broker.version_of(ApiKey.OFFSET_FETCH) >= BATCHED:
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None)
            request = OffsetFetchRequest(groups=[group])
        else:
            request = OffsetFetchRequest(group_id=name, topics=None)
        response = broker.request(ApiKey.OFFSET_FETCH, request)
    found = response.groups[0] if response.groups else response
    check(found.error_code)
    return sorted(
        Committed(
            topic.name,
            one.partition_index,
            one.committed_offset,
            None if one.committed_leader_epoch < 0 else one.committed_leader_epoch,
            one.metadata or None,
        )
        for topic in found.topics
        for one in topic.partitions
        if one.error_code == 0 and one.committed_offset >= 0
    )


def commit(settings: Settings, name: str, offsets: Iterable[Committed]) -> dict[tuple[str, int], CommandError | None]:
    """Commit for a group without members; by partition why it failed. Raises CommandError."""
    by_topic: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
    for one in offsets:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=one.partition, committed_offset=one.offset, committed_metadata=one.metadata
        )
        by_topic.setdefault(one.topic, []).append(partition)
    topics = [
        OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=parts) for topic, parts in by_topic.items()
    ]
    request = OffsetCommitRequest(group_id=name, topics=topics)
    with WireCluster(settings) as cluster:
        response = cluster.coordinator(name, GROUP).request(ApiKey.OFFSET_COMMIT, request)
    return {
        (topic.name, one.partition_index): broker_error(one.error_code)
        for topic in response.topics
        for one in topic.partitions
    }


def delete(wire: WireCluster, name: str, places: Places) -> dict[tuple[str, int], CommandError | None]:
    """Delete committed offsets; by partition why it failed. Raises CommandError."""
    partition, topic = OffsetDeleteRequest.OffsetDeleteRequestPartition, OffsetDeleteRequest.OffsetDeleteRequestTopic
    by_topic: dict[str, list[OffsetDeleteRequest.OffsetDeleteRequestPartition]] = {}
    for of_topic, number in places:
        by_topic.setdefault(of_topic, []).append(partition(partition_index=number))
    topics = [topic(name=of_topic, partitions=parts) for of_topic, parts in by_topic.items()]
    response = wire.coordinator(name, GROUP).request(
        ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id=name, topics=topics)
    )
    check(response.error_code)
    return {
        (one.name, part.partition_index): broker_error(part.error_code)
        for one in response.topics
        for part in one.partitions
    }


def assigned(data: bytes) -> Places | None:
    """The partitions that a consumer's assignment names; None for bytes that are no such assignment."""
    if not data:
        return []
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    newest = ConsumerProtocolAssignment.VERSIONS[1]
    try:
        found, _ = decode_from(ConsumerProtocolAssignment, data, 2, min(version, newest))
    except ProtocolError:
        return None
    return sorted((topic.topic, partition) for topic in found.assigned_partitions for partition in topic.partitions)


def shown_bytes(data: bytes) -> str:
    """Bytes in hex, the first of many."""
    more = f" and {len(data) - SHOWN_BYTES_MAX} bytes more" if len(data) > SHOWN_BYTES_MAX else ""
    return f"{data[:SHOWN_BYTES_MAX].hex(' ')}{more}"
