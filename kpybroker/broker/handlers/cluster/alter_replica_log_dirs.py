"""AlterReplicaLogDirs 0-2: move this broker's replicas to other log directories.

The response is sent when the moves have begun; DescribeLogDirs shows their progress. A replica that is not here yet is
created in the requested directory later, and the response for it is REPLICA_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, {0: "by directory", 1: "throttling after the response", 2: "flexible"}
)

TopicResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
PartitionResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


async def handle(
    broker: Broker, request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Begin to move each replica to the log directory named for it."""
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    results: dict[str, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    budget = YieldBudget()
    async with broker.replicas.state_change_lock:
        for log_dir in request.dirs:
            for topic in log_dir.topics:
                for index in topic.partitions:
                    code = _move(broker, topic.name, index, log_dir.path)
                    result = results.setdefault(topic.name, TopicResult(topic_name=topic.name))
                    result.partitions.append(PartitionResult(partition_index=index, error_code=code))
                    await budget.spend(ELEMENT if code else SLICE_UNITS)
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _move(broker: Broker, topic: str, index: int, log_dir: str) -> ErrorCode:
    try:
        broker.replicas.log_dir_moves.move(topic, index, log_dir)
    except KafkaError as error:
        return error.code
    except LogDirError as error:
        broker.log_dir_failed(error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE


def error_response(
    request: AlterReplicaLogDirsRequest, context: RequestContext, error: KafkaError
) -> AlterReplicaLogDirsResponse:
    """The error at each partition."""
    return AlterReplicaLogDirsResponse(
        results=[
            TopicResult(
                topic_name=topic.name,
                partitions=[PartitionResult(partition_index=i, error_code=error.code) for i in topic.partitions],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )
