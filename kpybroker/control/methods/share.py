"""What a share group (KIP-932) holds: where each partition starts, and what became of the records from there on.

A partition's leader has the records in flight while the group has members there, else what the share coordinator keeps.
A record below the start offset is done, and neither keeps whether it was accepted or archived. Why the last ones were
archived only the broker knows that led the partition then, as long as it runs.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from kpybroker.control.inside import ask, check, loaded_coordinator
from kpybroker.control.levers.leadership import awake
from kpybroker.control.registry import JSON, methods
from kpybroker.core.share.values import RecordState
from kpybroker.core.share_coordinator.values import SharePartitionKey
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

UNKNOWN = -1


async def share_group(hosted: Hosted, group: str) -> JSON:
    """One share group (KIP-932): its state, its members, and of each partition the start offset, the lag and the
    records from there on that were delivered before. null: there is none."""
    from kpybroker.wire.messages.share_group_describe import ShareGroupDescribeRequest

    coordinator = await loaded_coordinator(hosted, GROUP_METADATA_TOPIC_NAME, group)
    if coordinator is None:
        return None
    response = await ask(coordinator, ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest(group_ids=[group]))
    found = response.groups[0]
    if found.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(found.error_code, f"describing share group {group}", found.error_message)
    return {
        "group_id": group,
        "state": found.group_state,
        "coordinator": coordinator.node_id,
        "epoch": found.group_epoch,
        "members": [_member(one) for one in found.members],
        "partitions": await _partitions(hosted, coordinator, group),
    }


def _member(one: Any) -> JSON:
    return {
        "member_id": one.member_id,
        "instance_id": None,
        "client_id": one.client_id,
        "client_host": one.client_host.lstrip("/"),
        "subscription": sorted(one.subscribed_topic_names),
        "assignment": {topic.topic_name: sorted(topic.partitions) for topic in one.assignment.topic_partitions},
    }


async def _partitions(hosted: Hosted, coordinator: Any, group: str) -> list[JSON]:
    from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest as Request

    wanted = Request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    response = await ask(coordinator, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, Request(groups=[wanted]))
    found = response.groups[0]
    check(found.error_code, f"reading the start offsets of share group {group}", found.error_message)
    return [
        _partition(hosted, topic.topic_name, one, SharePartitionKey(group, topic.topic_id, one.partition_index))
        for topic in found.topics
        for one in topic.partitions
    ]


def _partition(hosted: Hosted, topic: str, one: Any, key: SharePartitionKey) -> JSON:
    start, records = _held(hosted, key)
    archived = next((log for one in awake(hosted) if (log := one.coordinators.share_partitions.archived(key))), ())
    known = one.start_offset if start is None else start
    return {
        "topic": topic,
        "partition": one.partition_index,
        "start_offset": None if known == UNKNOWN else known,
        "lag": None if one.lag == UNKNOWN else one.lag,
        "records": records,
        "archived": [{**row._asdict(), "member_id": row.member_id or None} for row in archived],
    }


def _held(hosted: Hosted, key: SharePartitionKey) -> tuple[int | None, list[JSON]]:
    """The leader's start offset and runs, or those that are kept. None where no broker that is up has them."""
    for broker in awake(hosted):
        led = broker.coordinators.share_partitions.get(key)
        if led is not None and led.machine is not None and led.error is None:
            start, clock = led.machine.start_offset, broker.clock
            return start, [
                _run(
                    (max(one.first, start), one.last, one.state, one.delivery_count),
                    one.member_id or None,
                    None if one.deadline == inf else clock.time_ms() + round(1000 * (one.deadline - clock.monotonic())),
                )
                for one in led.machine.runs()
                if one.last >= start
            ]
    for broker in awake(hosted):
        for machine in broker.coordinators.share_states.partitions.machines:
            tracked = machine.states.get(key)
            if tracked is not None:
                kept = tracked.state
                return kept.start_offset, [_run(batch) for batch in kept.batches]
    return None, []


def _run(batch: tuple[int, int, int, int], member_id: str | None = None, locked_until_ms: int | None = None) -> JSON:
    first, last, state, delivery_count = batch
    return {
        "first": first,
        "last": last,
        "state": RecordState(state).name.lower(),
        "delivery_count": delivery_count,
        "member_id": member_id,
        "locked_until_ms": locked_until_ms,
    }


METHODS = methods(share_group)
