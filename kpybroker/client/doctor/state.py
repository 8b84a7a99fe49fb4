"""Checks of what a cluster says of itself: leaders, replicas, factors that it cannot meet, records from the future."""

from __future__ import annotations

import time
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, check
from kpybroker.client.doctor.cluster import Seen, opened
from kpybroker.client.doctor.findings import SKIPPED, Findings, counted
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest

BROKER: Final = 4
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


def check_newest_records(found: Any, seen: Seen) -> None:
    """Records from the future: a producer's clock or a broker's is ahead, or this machine's is behind."""
    now_ms = time.time_ns() // 1_000_000
    times: list[tuple[int, str]] = []
    for node in found.brokers:
        try:
            times += _newest_records(node, _led_by(found, node.node_id), seen)
        except CommandError as error:
            seen.findings.add("clock", SKIPPED, f"broker {node.node_id}'s newest records are unknown: {error.cause}")
    newest, where = max(times, default=(-1, ""))
    if newest > now_ms + AHEAD_MS:
        text = f"the newest record of {where} is {(newest - now_ms) / 1000:.0f} s ahead of this machine's clock"
        fix = (
            "synchronize the clocks (NTP) of this machine, brokers and producers; --write measures those of the brokers"
        )
        seen.findings.warning("clock", text, fix)
    elif newest >= 0:
        seen.findings.ok("clock", "no record is from the future")


def _newest_records(node: Any, topics: list[Any], seen: Seen) -> list[tuple[int, str]]:
    """(timestamp, partition) of the newest record of each partition; a broker of before 3.0 cannot say."""
    if not topics:
        return []
    with opened((node.host, node.port), seen) as broker:
        served = broker.versions.get(ApiKey.LIST_OFFSETS)
        if served is None or served[1] < MAX_TIMESTAMP_SINCE:
            return []
        response = broker.request(ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=topics))
    return [(p.timestamp, f"{t.name}-{p.partition_index}") for t in response.topics for p in t.partitions]


def _led_by(found: Any, node_id: int) -> list[Any]:
    topics, count = [], 0
    for topic in found.topics:
        numbers = [partition.partition_index for partition in topic.partitions if partition.leader_id == node_id]
        count += len(numbers)
        if numbers and count <= PARTITIONS_MAX:
            partitions = [
                ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=MAX_TIMESTAMP)
                for number in numbers
            ]
            topics.append(ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=partitions))
    return topics
