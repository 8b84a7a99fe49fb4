"""Share groups as their coordinators have them: described, their start offsets read, moved and deleted.

librdkafka lists and describes consumer groups only. A broker that does not serve share groups has none of them, without
an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, broker_error, check
from kpybroker.client.connect.groups import listing
from kpybroker.client.connect.groups.listing import ABSENT, SHARE
from kpybroker.client.connect.groups.raw_groups import RawGroup, RawMember
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kpybroker.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kpybroker.wire.messages.share_group_describe import ShareGroupDescribeRequest

UNKNOWN: Final = -1


class ShareOffset(NamedTuple):
    """A partition of a share group; None for what the broker does not know yet, or is too old to know.

    `start_offset`: everything below was processed. `lag`: records that wait or are in flight.
    """

    topic: str
    partition: int
    start_offset: int | None
    lag: int | None
    error: CommandError | None = None


def describe(wire: WireCluster, names: Iterable[str]) -> dict[str, RawGroup | CommandError]:
    """Those of these names that are share groups. Raises CommandError if the cluster cannot be reached."""
    return listing.described(wire, SHARE, names, _described)


def _described(cluster: WireCluster, name: str) -> RawGroup | None:
    broker = cluster.coordinator(name, GROUP)
    request = ShareGroupDescribeRequest(group_ids=[name])
    (group,) = broker.request(ApiKey.SHARE_GROUP_DESCRIBE, request).groups
    if group.error_code in ABSENT:
        return None
    check(group.error_code, group.error_message)
    node_id = -1 if broker.node_id is None else broker.node_id
    members = [_member(one) for one in group.members]
    return RawGroup(
        group.group_state, SHARE, group.assignor_name, node_id, members, group.group_epoch, group.assignment_epoch
    )


def _member(one: Any) -> RawMember:
    assignment = sorted((topic.topic_name, i) for topic in one.assignment.topic_partitions for i in topic.partitions)
    return RawMember(
        one.member_id,
        None,
        one.client_id,
        one.client_host,
        assignment,
        None,
        member_epoch=one.member_epoch,
        topics=sorted(one.subscribed_topic_names),
        rack_id=one.rack_id,
        protocol=SHARE,
    )


def offsets(wire: WireCluster, name: str) -> list[ShareOffset]:
    """The partitions of a share group, sorted. Raises CommandError."""
    wanted = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[wanted])
    response = wire.coordinator(name, GROUP).request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request)
    (group,) = response.groups
    check(group.error_code, group.error_message)
    return sorted(
        ShareOffset(
            topic.topic_name,
            one.partition_index,
            _known(one.start_offset),
            _known(one.lag),
            broker_error(one.error_code, one.error_message),
        )
        for topic in group.topics
        for one in topic.partitions
    )


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else int(number)


def alter_offsets(
    wire: WireCluster, name: str, to: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], CommandError | None]:
    """Move a share group without members; by partition why it failed. Raises CommandError."""
    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), offset in to.items():
        one = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
            partition_index=partition, start_offset=offset
        )
        by_topic.setdefault(topic, []).append(one)
    request = AlterShareGroupOffsetsRequest(
        group_id=name,
        topics=[
            AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=parts)
            for topic, parts in by_topic.items()
        ],
    )
    response = wire.coordinator(name, GROUP).request(ApiKey.ALTER_SHARE_GROUP_OFFSETS, request)
    check(response.error_code, response.error_message)
    return {
        (topic.topic_name, one.partition_index): broker_error(one.error_code, one.error_message)
        for topic in response.responses
        for one in topic.partitions
    }


def delete_offsets(wire: WireCluster, name: str, topics: Iterable[str]) -> dict[str, CommandError | None]:
    """Delete what a share group without members knows of topics; by topic why it failed. Raises CommandError."""
    topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    request = DeleteShareGroupOffsetsRequest(group_id=name, topics=[topic(topic_name=one) for one in topics])
    response = wire.coordinator(name, GROUP).request(ApiKey.DELETE_SHARE_GROUP_OFFSETS, request)
    check(response.error_code, response.error_message)
    return {one.topic_name: broker_error(one.error_code, one.error_message) for one in response.responses}
