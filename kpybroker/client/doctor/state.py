"""Checks of what a cluster says of itself: leaders, replicas, factors that it cannot meet, records from the future."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, check
from kpybroker.client.connect.wire import WireBroker
from kpybroker.client.doctor.cluster import Seen, opened
from kpybroker.client.doctor.findings import SKIPPED, Findings, counted
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest

BROKER: Final = 4
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
MAX_TIMESTAMP_SINCE: Final = 7
"""The version of ListOffsets that has it."""
PARTITIONS_MAX: Final = 2000
"""Partitions of a broker that are asked for their newest record."""
AHEAD_MS: Final = 5_000

FACTORS: Final = (
    ("offsets.topic.replication.factor", "__consumer_offsets", "groups cannot work"),
    ("transaction.state.log.replication.factor", "__transaction_state", "transactions cannot work"),
)


def check_topics(found: Any, findings: Findings) -> None:
    """Leaders and replicas of all partitions."""
    partitions = [(topic.name, partition) for topic in found.topics for partition in topic.partitions]
    leaderless = [f"{name}-{p.partition_index}" for name, p in partitions if p.leader_id < 0]
    behind = [f"{name}-{p.partition_index}" for name, p in partitions if len(p.isr_nodes) < len(p.replica_nodes)]
    if leaderless:
        fix = "bring the brokers of their replicas back: kpybroker cluster health shows them"
        findings.failed("topics", f"{counted(len(leaderless), 'partition')} without a leader: {_some(leaderless)}", fix)
    if behind:
        fix = "bring the missing replicas back: kpybroker cluster health shows them"
        findings.warning(
            "topics", f"{counted(len(behind), 'partition')} with replicas out of sync: {_some(behind)}", fix
        )
    if not leaderless and not behind:
        findings.ok(
            "topics",
            f"{counted(len(found.topics), 'topic')}, {counted(len(partitions), 'partition')}, all replicas in sync",
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")


def check_factors(found: Any, seen: Seen) -> None:
    """Whether the topics of offsets and transactions can be created; they are when they are first needed."""
    existing = {topic.name for topic in found.topics}
    missing = [row for row in FACTORS if row[1] not in existing]
    if not missing or not found.brokers:
        return
    try:
        values = _broker_configs(found.brokers[0], [row[0] for row in missing], seen)
    except CommandError as error:
        seen.findings.add("factors", SKIPPED, f"the broker's settings cannot be read: {error.cause}")
        return
    count = len(found.brokers)
    for key, _, effect in missing:
        factor = values.get(key)
        if factor is not None and factor.isdigit() and int(factor) > count:
            fix = f"set {key}={count} in server.properties and restart, or run {factor} brokers"
            text = f"{effect}: {key} is {factor}, and there is {counted(count, 'broker')}"
            seen.findings.failed("factors", text, fix)


def _broker_configs(node: Any, keys: list[str], seen: Seen) -> dict[str, str | None]:
    """Only the broker itself knows its settings."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node.node_id), configuration_keys=keys
    )
    with opened((node.host, node.port), seen) as broker:
        (result,) = broker.request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])).results
    check(result.error_code, result.error_message)
    return {entry.name: entry.value for entry in result.configs}


class Newest(NamedTuple):
    """The newest record of a partition, as its leader knows it: its log may begin after it."""

    timestamp_ms: int
    topic: str
    partition: int
    offset: int


def check_newest_records(found: Any, seen: Seen) -> None:
    """Records from the future: a producer's clock or a broker's is ahead, or this machine's is behind."""
    now_ms = time.time_ns() // 1_000_000
    times: list[Newest] = []
    for node in found.brokers:
        try:
            led = _led_by(found, node.node_id)
            if led:
                with opened((node.host, node.port), seen) as broker:
                    times += newest_records(broker, led, now_ms + AHEAD_MS)
        except CommandError as error:
            seen.findings.add("clock", SKIPPED, f"broker {node.node_id}'s newest records are unknown: {error.cause}")
    if not times:
        return
    newest = max(times)
    if newest.timestamp_ms > now_ms + AHEAD_MS:
        ahead = (newest.timestamp_ms - now_ms) / 1000
        where = f"{newest.topic}-{newest.partition}"
        text = f"the newest record of {where} is {ahead:.0f} s ahead of this machine's clock"
        fix = (
            "synchronize the clocks (NTP) of this machine, brokers and producers; --write measures those of the brokers"
        )
        seen.findings.warning("clock", text, fix)
    elif newest.timestamp_ms >= 0:
        seen.findings.ok("clock", "no record is from the future")


def newest_records(broker: WireBroker, led: Mapping[str, list[int]], latest_ms: int) -> list[Newest]:
    """The newest record of each partition; a broker of before 3.0 cannot say.

    A leader goes by its segments, which may hold deleted records. So of those that are newer than `latest_ms`, only the
    ones that are in the log are here.
    """
    served = broker.versions.get(ApiKey.LIST_OFFSETS)
    if served is None or served[1] < MAX_TIMESTAMP_SINCE:
        return []
    found = _list_offsets(broker, led, MAX_TIMESTAMP)
    suspects: dict[str, list[int]] = {}
    for one in found:
        if one.timestamp_ms > latest_ms:
            suspects.setdefault(one.topic, []).append(one.partition)
    begins = {(one.topic, one.partition): one.offset for one in _list_offsets(broker, suspects, EARLIEST)}
    return [one for one in found if one.offset >= begins.get((one.topic, one.partition), 0)]


def _list_offsets(broker: WireBroker, wanted: Mapping[str, list[int]], timestamp: int) -> list[Newest]:
    if not wanted:
        return []
    partition, topic = ListOffsetsRequest.ListOffsetsPartition, ListOffsetsRequest.ListOffsetsTopic
    topics = [
        topic(name=name, partitions=[partition(partition_index=number, timestamp=timestamp) for number in numbers])
        for name, numbers in wanted.items()
    ]
    response = broker.request(ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=topics))
    return [Newest(p.timestamp, t.name, p.partition_index, p.offset) for t in response.topics for p in t.partitions]


def _led_by(found: Any, node_id: int) -> dict[str, list[int]]:
    """By topic, the partitions that a broker leads, of not too many."""
    led, count = {}, 0
    for topic in found.topics:
        numbers = [partition.partition_index for partition in topic.partitions if partition.leader_id == node_id]
        count += len(numbers)
        if numbers and count <= PARTITIONS_MAX:
            led[topic.name] = numbers
    return led
