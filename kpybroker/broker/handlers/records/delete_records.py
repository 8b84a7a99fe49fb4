"""DeleteRecords 0-2: advance partitions' log start offset; the records before it are gone.

The response waits until the log start of every replica has followed, or is REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import is_internal
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.replication.partition import Partition

    Wait = tuple[Partition, int, "PartitionResult"]

LEDGER = Ledger(ApiKey.DELETE_RECORDS, 0, 2, {0: "by offset, -1 for the high watermark", 2: "flexible"})

INVALID_LOW_WATERMARK = -1
PartitionResult = DeleteRecordsResponse.DeleteRecordsPartitionResult
TopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult


async def handle(broker: Broker, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Advance the log start offset of each partition; waits for all replicas up to the request's timeout."""
    response, budget = DeleteRecordsResponse(), YieldBudget()
    waits: list[Wait] = []
    for topic in request.topics:
        await budget.spend()
        result = TopicResult(name=topic.name)
        may_delete = context.authorized(Operation.DELETE, ResourceType.TOPIC, topic.name)
        for wanted in topic.partitions:
            if may_delete:
                partition_result = _delete(broker, topic.name, wanted.partition_index, wanted.offset, waits)
            else:
                partition_result = _failed(wanted.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            result.partitions.append(partition_result)
            await budget.spend()
        response.topics.append(result)
    deadline = trio.current_time() + max(request.timeout_ms, 0) / 1000
    with context.connection.may_leave():
        for partition, offset, partition_result in waits:
            await _wait(partition, offset, partition_result, deadline)
    return response


async def _wait(partition: Partition, offset: int, partition_result: PartitionResult, deadline: float) -> None:
    try:
        with trio.move_on_at(deadline):
            partition_result.low_watermark = await partition.wait_low_watermark(offset)
            return
        partition_result.error_code = ErrorCode.REQUEST_TIMED_OUT
    except KafkaError as error:
        partition_result.error_code = error.code
    partition_result.low_watermark = INVALID_LOW_WATERMARK


def _failed(index: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=code)


def _delete(broker: Broker, topic: str, index: int, offset: int, waits: list[Wait]) -> PartitionResult:
    try:
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = broker.replicas.hosted(topic, index)
        target = partition.delete_records(offset)
        partition_result = PartitionResult(partition_index=index, low_watermark=partition.low_watermark)
    except KafkaError as error:
        return _failed(index, error.code)
    except LogDirError as error:
        broker.log_dir_failed(error)
        return _failed(index, ErrorCode.KAFKA_STORAGE_ERROR)
    if partition_result.low_watermark < target:
        waits.append((partition, target, partition_result))
    return partition_result


def error_response(request: DeleteRecordsRequest, context: RequestContext, error: KafkaError) -> DeleteRecordsResponse:
    """The error at each partition."""
    return DeleteRecordsResponse(
        topics=[
            TopicResult(
                name=topic.name,
                partitions=[
                    PartitionResult(
                        partition_index=wanted.partition_index,
                        low_watermark=INVALID_LOW_WATERMARK,
                        error_code=error.code,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
