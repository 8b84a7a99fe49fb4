"""What a Produce is refused for, and how its client learns of it: everything that `produce` does not append.

A refusal is reported at its partition in the response. Two kinds reach further: records that are not a batch fail the
whole request (`error_response`), and with acks=0, which has no response, any refusal ends the connection.

What the producer itself has to change is logged once for each client, topic and error.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.transaction_verification import VerificationError
from kpybroker.broker.replication.partition import ALL_IN_SYNC, LEADER_MOVED
from kpybroker.broker.requests.clients import client_name, shown
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.log_fields import of_request
from kpybroker.broker.requests.refused_batches import FOR_NOW
from kpybroker.core.topic_names import is_internal
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from kpybroker.wire.records.batch import LEGACY_OVERHEAD_V0, LOG_OVERHEAD, TRANSACTIONAL_MASK
from kpybroker.wire.records.record_errors import RequestRecordsError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.replication.partition import Partition

logger = logging.getLogger("kafka.server.ReplicaManager")

PartitionResponse = ProduceResponse.PartitionProduceResponse
TopicData = ProduceRequest.TopicProduceData
TopicResponse = ProduceResponse.TopicProduceResponse
Records = bytes | memoryview | None

ACKS = (ALL_IN_SYNC, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"  # may write to internal topics (AdminUtils)
LEADER_FROM = 10
"""The version from which a response names the current leader and its endpoint (KIP-951)."""
MAGIC_AT = 16
MAGIC_MAX = 2
ATTRIBUTES_AT = 22  # the low byte
_BATCH_LENGTH = struct.Struct(">i")
# Errors that ReplicaManager returns without the log start offset, and those that are found before the log is read.
_WITHOUT_LOG_START = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )
)


_NOT_LOGGED = FOR_NOW | {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
"""Errors that pass, and those that the authorizer logs."""


def check_request(topic: str, records: Records, acks: int, context: RequestContext) -> memoryview:
    """The records of one partition. Raises KafkaError where the request alone says that they may not be appended."""
    if acks not in ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a produce request must bring records")
    if is_internal(topic) and context.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}")
    assert isinstance(records, memoryview)
    return records


def begins_transactional(records: bytes | memoryview) -> bool:
    """Whether the first batch is part of a transaction. Raises CORRUPT_MESSAGE where there is no batch.

    That fails the request and not only its partition: Kafka looks for transactions before anything else.
    """
    size = len(records)
    if size < LOG_OVERHEAD:
        return False
    (length,) = _BATCH_LENGTH.unpack_from(records, 8)
    if length < LEGACY_OVERHEAD_V0:
        text = f"Record size {length} is less than the minimum record overhead ({LEGACY_OVERHEAD_V0})"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
    if size <= MAGIC_AT:
        return False
    magic = records[MAGIC_AT]
    if magic > MAGIC_MAX:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic - (magic & 0x80) * 2}")
    return magic == MAGIC_MAX and size > ATTRIBUTES_AT and records[ATTRIBUTES_AT] & TRANSACTIONAL_MASK != 0


def refuse(
    broker: Broker,
    context: RequestContext,
    data: TopicData,
    response: PartitionResponse,
    records: Records,
    error: KafkaError | LogDirError,
) -> None:
    """Fill the response of a partition whose `records` were refused, and remember it for the batches behind them.

    `data` is the topic's part of the request.
    """
    topic = data.name
    context.connection.refused_batches.note((topic, response.index), data.topic_id, records, error)
    if isinstance(error, LogDirError):
        broker.log_dir_failed(error)
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    partition = broker.replicas.partition(topic, response.index)
    if partition is not None:
        partition.traffic.refused(error.code, len(records or b""))
    if error.code not in _NOT_LOGGED and broker.first_times.is_first(context.connection, topic, error.code):
        client = client_name(context.connection)
        logger.warning(
            "Refused records of %s for %s-%d: %s",
            client,
            shown(topic),
            response.index,
            error,
            extra=of_request(context, topic, response.index),
        )
    unacknowledged(response, error.code)
    response.log_append_time_ms = -1
    response.log_start_offset = -1
    reached_log = error.code not in _WITHOUT_LOG_START and not isinstance(
        error, RequestRecordsError | VerificationError
    )
    if reached_log and partition is not None and partition.log is not None:
        response.log_start_offset = partition.log.log_start_offset
    record_errors = getattr(error, "record_errors", ())
    response.record_errors = [
        ProduceResponse.BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=message)
        for position, message in record_errors
    ]
    # ReplicaManager has texts for bad records and verification; for everything else the code must do.
    response.error_message = error.message if record_errors else getattr(error, "client_message", None)
    if context.api_version >= LEADER_FROM and error.code in LEADER_MOVED and partition is not None:
        response.current_leader = ProduceResponse.LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )


def unacknowledged(response: PartitionResponse, code: ErrorCode) -> None:
    """Records that may have been appended are not acknowledged."""
    response.error_code = code
    response.base_offset = -1


def end_connection_on_error(response: ProduceResponse) -> None:
    """With acks=0 the client learns of an error by the end of its connection. Raises ProtocolError then."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                code = ErrorCode(partition.error_code).name
                raise ProtocolError(f"produce with acks=0 failed with {code} for {topic.name}-{partition.index}")


def error_response(request: ProduceRequest, context: RequestContext, error: KafkaError) -> ProduceResponse | None:
    """`error` at every partition. Raises ProtocolError with acks=0, which ends the connection."""
    if request.acks == 0:
        raise ProtocolError(f"produce with acks=0 failed with {error.code.name}")
    text = None if error.message == error.code.message else error.message
    return ProduceResponse(
        responses=[
            TopicResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionResponse(index=data.index, error_code=error.code, base_offset=-1, error_message=text)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def log_timed_out(
    broker: Broker, context: RequestContext, timeout_ms: int, late: Sequence[tuple[Partition, int]]
) -> None:
    """One line for a request whose replicas took too long, about the first of its `late` partitions.

    `late`: each with the offset that its high watermark did not reach. Followers that are behind are named: their logs
    show why, in the lines of their fetchers. INFO for the first of a connection and topic, DEBUG for all others.
    """
    partition, offset = late[0]
    is_first = broker.first_times.is_first(context.connection, partition.topic, ErrorCode.REQUEST_TIMED_OUT)
    level = logging.INFO if is_first else logging.DEBUG
    if not logger.isEnabledFor(level):
        return
    leader, others = partition.leader, len(late) - 1
    followers = {} if leader is None else leader.followers
    behind = {node: one.log_end_offset for node, one in followers.items() if one.log_end_offset < offset}
    logger.log(
        level,
        "[ReplicaManager broker=%d] Produce timed out after %d ms: %s-%d has high watermark %d, the request needs %d; "
        "ISR %s; behind: %s%s",
        broker.node_id,
        timeout_ms,
        partition.topic,
        partition.index,
        partition.high_watermark,
        offset,
        [] if leader is None else list(leader.isr_order),
        ", ".join(f"broker {node} at offset {end}" for node, end in behind.items()) or "none",
        f"; and {others} more partitions" if others else "",
        extra=of_request(context, partition.topic, partition.index),
    )
