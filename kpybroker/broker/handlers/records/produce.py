"""Produce 0-11: append record batches to partitions.

Batches are stored as they came (docs/GUARANTEES.md says what is checked). Answers wait for the in-sync replicas with
acks=-1, come at once with acks=1, and do not come at all with acks=0, where an error ends the connection so that the
client looks for the leader anew. Versions 0-2 bring message sets of magic 0 and 1, which are converted.

Nearly every request brings one batch, outside a transaction, and waits for nothing. `handle_fast` appends it without
ever making the messages, and leaves to `handle` whatever else a request may be.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.coordinators.transaction_verification import Verification, VerificationError
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import ConnectionInfo, RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.log.producer_state import NO_VERIFICATION
from kpybroker.core.topic_names import is_internal
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.append import CLIENT, AppendInfo, ProducedBatches
from kpybroker.wire import fast_produce
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.headers import RequestHeader
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from kpybroker.wire.records.batch import (
    LEGACY_OVERHEAD_V0,
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from kpybroker.wire.records.record_errors import RequestRecordsError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.replication.partition import Partition

LEDGER = Ledger(
    ApiKey.PRODUCE,
    0,
    11,
    {
        0: "message sets of magic 0",
        1: "throttle time",
        2: "magic 1; log append time in the answer",
        3: "record batches (magic 2), transactional id",
        4: "KAFKA_STORAGE_ERROR",
        5: "log start offset",
        7: "zstd",
        8: "per-record errors",
        9: "flexible",
        10: "the current leader and its endpoint with NOT_LEADER_OR_FOLLOWER (KIP-951)",
        11: "transaction errors a client may abort on (KIP-890)",
    },
)

PartitionResponse = ProduceResponse.PartitionProduceResponse
TopicResponse = ProduceResponse.TopicProduceResponse
TopicData = ProduceRequest.TopicProduceData
Owed = tuple["Partition", int, PartitionResponse]
"""An answer that waits for an end offset of a partition."""

HandledFast = tuple[RequestContext, ProduceRequest, Steps[ProduceResponse | None]]

FAST_VERSIONS = fast_produce.VERSIONS
_NOT_PLAIN = TRANSACTIONAL_MASK | TIMESTAMP_TYPE_MASK
_BATCH_LENGTH = struct.Struct(">i")
_LENGTH_MAGIC_ATTRIBUTES = struct.Struct(">8xi4xb4xh")
WRITE, TOPIC = Operation.WRITE, ResourceType.TOPIC  # an enum's attribute takes 0.1 µs
MAGIC_AT = 16
MAGIC_MAX = 2
ATTRIBUTES_AT = 22  # the low byte
ABORTABLE_FROM = 11
ALL_IN_SYNC = -1
ACKS = (ALL_IN_SYNC, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"  # may write to internal topics (AdminUtils)
# Errors that ReplicaManager answers without the log's start, and those that never get as far as the log.
_WITHOUT_LOG_START = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
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
_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle_fast(
    broker: Broker, frame: memoryview, header: RequestHeader, connection: ConnectionInfo
) -> bytes | HandledFast | None:
    """The frame of the answer, or what `handle` gives. None: nothing was done, the request is for `handle`.

    `frame` is only lent: the request that comes with a response is without its records.
    """
    version = header.api_version
    plain = fast_produce.read(frame, header.body_offset, version)
    if plain is None:
        return None
    acks, timeout_ms, topic, index, records = plain
    partition = broker.replicas.partition(topic, index)
    if (
        partition is None
        or (log := partition.log) is None
        or not log.rules.as_sent
        or not _is_plain_batch(records)
        or (acks != 1 and acks != ALL_IN_SYNC)
        or is_internal(topic)
        or not broker.authorizer.authorize(connection.principal, connection.client_host, WRITE, TOPIC, topic)
    ):
        return None
    refused = connection.refused_batches
    try:
        if refused.by_partition:
            refused.check(partition, records)
        info = partition.append(ProducedBatches(records, broker.clock.time_ms(), version), acks)
    except (KafkaError, LogDirError) as error:
        refused.note(topic, index, records, error)
        context = RequestContext.of(header, connection, broker.authorizer)
        return _answer_one(broker, acks, timeout_ms, topic, index, partition, error, context)
    if info.flush_required or (acks == ALL_IN_SYNC and log.high_watermark <= info.last_offset):
        context = RequestContext.of(header, connection, broker.authorizer)
        return _answer_one(broker, acks, timeout_ms, topic, index, partition, info, context)
    if info.rolled:
        broker.flush_soon(partition)
    return fast_produce.answer(
        version,
        header.correlation_id,
        topic,
        index,
        info.first_offset,
        info.log_append_time,
        info.log_start_offset,
    )


def _answer_one(
    broker: Broker,
    acks: int,
    timeout_ms: int,
    topic: str,
    index: int,
    partition: Partition,
    outcome: AppendInfo | KafkaError | LogDirError,
    context: RequestContext,
) -> HandledFast:
    """What `handle` says of a plain request that was refused or has to wait."""
    data = TopicData(name=topic, partition_data=[ProduceRequest.PartitionProduceData(index=index)])
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])
    answer = PartitionResponse(index=index)
    flushes: list[Owed] = []
    waits: list[Owed] = []
    if isinstance(outcome, Exception):
        _refuse(broker, answer, outcome, topic, index, context)
    else:
        _appended(broker, acks, partition, outcome, answer, flushes, waits)
    response = ProduceResponse(responses=[TopicResponse(name=topic, partition_responses=[answer])])
    return context, request, _acknowledge(broker, acks, timeout_ms, response, flushes, waits, context)


def _is_plain_batch(records: memoryview) -> bool:
    """One batch of magic 2, outside a transaction, whose records have times of their own."""
    size = len(records)
    if size <= RECORD_BATCH_OVERHEAD:
        return False
    length, magic, attributes = _LENGTH_MAGIC_ATTRIBUTES.unpack_from(records)
    return length == size - LOG_OVERHEAD and magic == MAGIC_MAX and not attributes & _NOT_PLAIN


def handle(broker: Broker, request: ProduceRequest, context: RequestContext) -> Steps[ProduceResponse | None]:
    if not broker.metadata.received_update:
        yield partial(_wait_first_update, broker, request.timeout_ms)
    budget = YieldBudget()
    verified: Verification | None = None
    if (yield from _is_transactional(request, budget)):
        verified = yield partial(_verify, broker, request, context, budget)
    response = ProduceResponse()
    flushes: list[Owed] = []
    waits: list[Owed] = []
    acks, version = request.acks, context.api_version
    refused = context.connection.refused_batches
    now_ms = broker.clock.time_ms()
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = yield from _distinct(topics, budget)
    for topic in topics:
        if budget.is_spent():
            yield trio.lowlevel.checkpoint
        authorized = context.authorized(Operation.WRITE, ResourceType.TOPIC, topic.name)
        answers = []
        for data in topic.partition_data:
            if budget.is_spent():
                yield trio.lowlevel.checkpoint
            answer = PartitionResponse(index=data.index)
            answers.append(answer)
            try:
                if not authorized:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = broker.replicas.hosted(topic.name, data.index)
                guard = NO_VERIFICATION if verified is None else verified.produce_guard((topic.name, data.index))
                records = _checked_request(topic.name, data.records, acks, context)
                refused.check(partition, records)
                checked = None
                if partition.is_slow_to_validate(records):
                    walk = partial(partition.validate_in_thread, records, version, now_ms, broker.validation_threads)
                    checked = yield walk
                info = partition.append(ProducedBatches(records, now_ms, version, CLIENT, guard, checked), acks)
            except (KafkaError, LogDirError) as error:
                refused.note(topic.name, data.index, data.records, error)
                _refuse(broker, answer, error, topic.name, data.index, context)
            else:
                _appended(broker, acks, partition, info, answer, flushes, waits)
        if answers:
            response.responses.append(TopicResponse(name=topic.name, partition_responses=answers))
    return (yield from _acknowledge(broker, acks, request.timeout_ms, response, flushes, waits, context))


async def _wait_first_update(broker: Broker, timeout_ms: int) -> None:
    """Of a producer's requests that came one after the other a broker that has just started would refuse the first ones
    and find the next one, which comes when it leads, out of order: docs/decisions/first-metadata.md."""
    with trio.move_on_after(max(timeout_ms, 0) / 1000):
        await broker.metadata.wait_first_update(broker.tree)


def _appended(
    broker: Broker,
    acks: int,
    partition: Partition,
    info: AppendInfo,
    answer: PartitionResponse,
    flushes: list[Owed],
    waits: list[Owed],
) -> None:
    answer.base_offset = info.first_offset
    answer.log_append_time_ms = info.log_append_time
    answer.log_start_offset = info.log_start_offset
    end = info.last_offset + 1
    if info.rolled:
        broker.flush_soon(partition)
    if info.flush_required:
        flushes.append((partition, end, answer))
    if acks == ALL_IN_SYNC and partition.high_watermark < end:
        waits.append((partition, end, answer))


def _acknowledge(
    broker: Broker,
    acks: int,
    timeout_ms: int,
    response: ProduceResponse,
    flushes: list[Owed],
    waits: list[Owed],
    context: RequestContext,
) -> Steps[ProduceResponse | None]:
    """Everything is appended or refused: what is left to wait for, and what is told."""
    if flushes:
        yield partial(_flush, broker, flushes)
    if acks == 0:
        _end_connection_on_error(response)
        return None
    if waits:
        yield from _wait_for_replicas(broker, waits, timeout_ms)
    if context.api_version >= 10:
        _endpoints(broker, context, response)
    return response


async def _verify(
    broker: Broker, request: ProduceRequest, context: RequestContext, budget: YieldBudget
) -> Verification:
    transactional_id = request.transactional_id
    if transactional_id is None or not context.authorized(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return await broker.verifier.verify_produce(
        request,
        budget,
        lambda topic: context.authorized(Operation.WRITE, ResourceType.TOPIC, topic),
        knows_abortable=context.api_version >= ABORTABLE_FROM,
    )


def _is_transactional(request: ProduceRequest, budget: YieldBudget) -> Steps[bool]:
    """Whether one of its partitions begins with a batch of a transaction."""
    found = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if budget.is_spent():
                yield trio.lowlevel.checkpoint
            if data.records is not None and _begins_transactional(data.records):
                found = True
    return found


def _begins_transactional(records: bytes | memoryview) -> bool:
    """What is no batch at all fails the request, not its partition: Kafka looks for transactions in it first."""
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


def _distinct(topics: list[TopicData], budget: YieldBudget) -> Steps[list[TopicData]]:
    """Each topic and partition once: Kafka makes a map of them, so of two batches for one partition the last counts."""
    merged: dict[str, dict[int, ProduceRequest.PartitionProduceData]] = {}
    for topic in topics:
        if budget.is_spent():
            yield trio.lowlevel.checkpoint
        partitions = merged.setdefault(topic.name, {})
        for data in topic.partition_data:
            if budget.is_spent():
                yield trio.lowlevel.checkpoint
            partitions[data.index] = data
    distinct = []
    for name, partitions in merged.items():
        if budget.is_spent():
            yield trio.lowlevel.checkpoint
        distinct.append(TopicData(name=name, partition_data=list(partitions.values())))
    return distinct


def _checked_request(topic: str, records: bytes | memoryview | None, acks: int, context: RequestContext) -> memoryview:
    if acks not in ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a produce request must bring records")
    if is_internal(topic) and context.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}")
    assert isinstance(records, memoryview)
    return records


def _refuse(
    broker: Broker,
    answer: PartitionResponse,
    error: KafkaError | LogDirError,
    topic: str,
    index: int,
    context: RequestContext,
) -> None:
    if isinstance(error, LogDirError):
        broker.log_dir_failed(error)
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    answer.error_code = error.code
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1
    partition = broker.replicas.partition(topic, index)
    reached_log = error.code not in _WITHOUT_LOG_START and not isinstance(
        error, RequestRecordsError | VerificationError
    )
    if reached_log and partition is not None and partition.log is not None:
        answer.log_start_offset = partition.log.log_start_offset
    record_errors = getattr(error, "record_errors", ())
    answer.record_errors = [
        ProduceResponse.BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=message)
        for position, message in record_errors
    ]
    # ReplicaManager words what was wrong with records and verification; all else is told by its code
    answer.error_message = error.message if record_errors else getattr(error, "client_message", None)
    if context.api_version >= 10 and error.code in _MOVED and partition is not None:
        answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )


def _endpoints(broker: Broker, context: RequestContext, response: ProduceResponse) -> None:
    """Where the current leaders are that the answer names (KIP-951)."""
    leaders = {
        answer.current_leader.leader_id
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.current_leader is not None
    }
    nodes = (broker.metadata.endpoint_for(context, leader) for leader in sorted(leaders))
    response.node_endpoints = [
        ProduceResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in nodes
        if node is not None
    ]


def _end_connection_on_error(response: ProduceResponse) -> None:
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                code = ErrorCode(answer.error_code).name
                raise ProtocolError(f"produce with acks=0 failed with {code} for {topic.name}-{answer.index}")


async def _flush(broker: Broker, flushes: list[Owed]) -> None:
    """`flush.messages` is reached: nothing is acknowledged before it is on disk."""
    for partition, end, answer in flushes:
        try:
            await partition.flush(end)
        except LogDirError as error:
            broker.log_dir_failed(error)
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answer.base_offset = -1
        except KafkaError as error:
            answer.error_code = error.code
            answer.base_offset = -1


def _wait_for_replicas(broker: Broker, waits: list[Owed], timeout_ms: int) -> Steps[None]:
    deadline = broker.clock.monotonic() + max(timeout_ms, 0) / 1000
    budget = YieldBudget()
    for partition, offset, answer in waits:
        if budget.is_spent():  # their time may be over all at once
            yield trio.lowlevel.checkpoint
        try:
            if not (yield from partition.until_committed(offset, deadline)):
                answer.error_code = ErrorCode.REQUEST_TIMED_OUT
                answer.base_offset = -1
        except KafkaError as error:
            answer.error_code = error.code
            answer.base_offset = -1


def error_response(request: ProduceRequest, context: RequestContext, error: KafkaError) -> ProduceResponse | None:
    if request.acks == 0:
        raise ProtocolError(f"produce with acks=0 failed with {error.code.name}")
    told = None if error.message == error.code.message else error.message
    return ProduceResponse(
        responses=[
            TopicResponse(
                name=topic.name,
                partition_responses=[
                    PartitionResponse(index=data.index, error_code=error.code, base_offset=-1, error_message=told)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
