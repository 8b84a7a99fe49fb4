"""Groups of the new protocol (KIP-848) as ConsumerGroupDescribe has them: epochs, targets, and regular expressions.

librdkafka describes them without these, and has no name for their states Assigning and Reconciling.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, check
from kpybroker.client.connect.groups.raw_groups import CONSUMER, Places, RawGroup, RawMember
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

PROTOCOLS: Final = {0: "classic", 1: CONSUMER}
"""By the type of a member; a broker that serves only version 0 does not say it."""


def describe_consumers(wire: WireCluster, names: Iterable[str]) -> dict[str, RawGroup | CommandError]:
    """The consumer groups by name."""
    found: dict[str, RawGroup | CommandError] = {}
    for name in names:
        try:
            found[name] = _described(wire, name)
        except CommandError as error:
            found[name] = error
    return found


def _described(cluster: WireCluster, name: str) -> RawGroup:
    broker = cluster.coordinator(name, GROUP)
    request = ConsumerGroupDescribeRequest(group_ids=[name])
    (group,) = broker.request(ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups
    check(group.error_code, group.error_message)
    return of(group, -1 if broker.node_id is None else broker.node_id)


def of(group: Any, node_id: int) -> RawGroup:
    """A group of a response of ConsumerGroupDescribe, from the broker of this id."""
    members = [_member(one) for one in group.members]
    epochs = (group.group_epoch, group.assignment_epoch)
    return RawGroup(group.group_state, CONSUMER, group.assignor_name, node_id, members, *epochs)


def _member(one: Any) -> RawMember:
    return RawMember(
        one.member_id,
        one.instance_id,
        one.client_id,
        one.client_host,
        _places(one.assignment),
        None,
        member_epoch=one.member_epoch,
        target=_places(one.target_assignment),
        topics=sorted(one.subscribed_topic_names),
        regex=one.subscribed_topic_regex or None,
        rack_id=one.rack_id,
        protocol=PROTOCOLS.get(one.member_type),
    )


def _places(assignment: Any) -> Places:
    return sorted((topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions)
