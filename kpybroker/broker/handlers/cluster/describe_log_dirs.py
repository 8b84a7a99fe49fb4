"""DescribeLogDirs 0-5: the partitions in each log directory, their sizes, and the free space."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.config.values import LONG_MAX
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.server.ReplicaManager")

LEDGER = Ledger(
    ApiKey.DESCRIBE_LOG_DIRS,
    0,
    5,
    {
        0: "size, lag and kind of each log",
        1: "throttling after the response",
        2: "flexible",
        3: "an error for the whole request (KIP-784)",
        4: "total and usable bytes of the volume (KIP-827)",
        5: "whether a directory is cordoned (KIP-1066)",
    },
)

Result = DescribeLogDirsResponse.DescribeLogDirsResult
TopicResult = DescribeLogDirsResponse.DescribeLogDirsTopic
PartitionResult = DescribeLogDirsResponse.DescribeLogDirsPartition

LAG_UNKNOWN = -1


async def handle(broker: Broker, request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    """Each log directory with the requested partitions in it; empty without DESCRIBE on the cluster."""
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    return DescribeLogDirsResponse(
        results=[await _describe_dir(broker, log_dir, wanted) for log_dir in broker.logs.dirs.configured]
    )


async def _describe_dir(
    broker: Broker, log_dir: str, wanted: set[tuple[str, int]] | None
) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    if log_dir in broker.logs.dirs.offline:
        return Result(log_dir=log_dir, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    try:
        usage = broker.logs.dirs.disk_usage(log_dir)
    except LogDirError as error:
        logger.warning("Unable to describe replica dirs for %s: %s", log_dir, error)
        return Result(log_dir=log_dir, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    topics: dict[str, list[DescribeLogDirsResponse.DescribeLogDirsPartition]] = {}
    here = [*broker.logs.logs_in(log_dir).items(), *broker.logs.future_logs_in(log_dir).items()]
    budget = YieldBudget()
    for partition, one in here:
        if wanted is None or partition in wanted:
            topics.setdefault(partition.topic, []).append(_describe_log(broker, one))
        await budget.spend()
    return Result(
        log_dir=log_dir,
        topics=[TopicResult(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=min(usage.total_bytes, LONG_MAX),
        usable_bytes=min(usage.usable_bytes, LONG_MAX),
        is_cordoned=broker.logs.dirs.is_cordoned(log_dir),
    )


def _describe_log(broker: Broker, one: Log) -> DescribeLogDirsResponse.DescribeLogDirsPartition:
    return PartitionResult(
        partition_index=one.partition.partition,
        partition_size=one.size,
        offset_lag=_offset_lag(broker, one),
        is_future_key=one.is_future,
    )


def _offset_lag(broker: Broker, one: Log) -> int:
    """Behind the high watermark; for a future log, behind the current one."""
    current = broker.logs.get(one.partition.topic, one.partition.partition)
    if current is None:
        return LAG_UNKNOWN
    if one.is_future:
        return current.log_end_offset - one.log_end_offset
    return max(current.high_watermark - one.log_end_offset, 0)


def error_response(
    request: DescribeLogDirsRequest, context: RequestContext, error: KafkaError
) -> DescribeLogDirsResponse:
    """The error at the top of the response."""
    return DescribeLogDirsResponse(error_code=error.code)
