"""Produce 0-13: append record batches to partitions.

Batches are stored as the producer sent them (docs/reference/guarantees.md says what is checked). The response waits
for the in-sync replicas with acks=-1 and for nothing with acks=1. With acks=0 there is none, and an error ends the
connection, so that the client looks for the leader again. Versions 0-2 have message sets of magic 0 and 1, which are
converted. From version 12 on a batch of a transaction adds its partition to it, where the producer has not.

Nearly every request has one batch, outside a transaction, and waits for nothing. `handle_fast` appends it without
making the messages; any other request is for `handle`. What is refused, and how, is in `produce_refusals`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.coordinators.transaction_verification import Asks, Verification
from kpybroker.broker.handlers.records.current_leaders import node_endpoints
from kpybroker.broker.handlers.records.produce_claims import is_true_at_once, is_wrong, slowly
from kpybroker.broker.handlers.records.produce_refusals import (
    LEADER_FROM,
    MAGIC_AT,
    MAGIC_MAX,
    PartitionResponse,
    TopicResponse,
    begins_transactional,
    check_request,
    end_connection_on_error,
    error_response,
    log_timed_out,
    refuse,
    unacknowledged,
)
from kpybroker.broker.handlers.records.produce_topics import TOPIC_IDS_FROM, distinct, hosted, name_topics
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.replication.partition import ALL_IN_SYNC
from kpybroker.broker.requests.context import ConnectionInfo, RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.log.verification import NO_VERIFICATION
from kpybroker.core.topic_names import is_internal
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.append import CLIENT, AppendInfo, ProducedBatches
from kpybroker.wire import fast_produce
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.headers import RequestHeader
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from kpybroker.wire.records.batch import (
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.replication.partition import Partition

__all__ = ["FAST_VERSIONS", "LEDGER", "error_response", "handle", "handle_fast"]

LEDGER = Ledger(
    ApiKey.PRODUCE,
    0,
    13,
    {
        0: "message sets of magic 0",
        1: "throttle time",
        2: "magic 1; log append time in the response",
        3: "record batches (magic 2), transactional id",
        4: "KAFKA_STORAGE_ERROR",
        5: "log start offset",
        7: "zstd",
        8: "per-record errors",
        9: "flexible",
        10: "the current leader and its endpoint with NOT_LEADER_OR_FOLLOWER (KIP-951)",
        11: "transaction errors a client may abort on (KIP-890)",
        12: "adds partitions to a transaction (KIP-890 part 2)",
        13: "topic ids instead of names, UNKNOWN_TOPIC_ID (KIP-516)",
    },
)

TopicData = ProduceRequest.TopicProduceData
Unacknowledged = tuple["Partition", int, PartitionResponse]
"""A partition's response that waits for the log end offset after its records."""


@dataclass(slots=True)
class Pending:
    """What one request waits for before its response."""

    acks: int
    timeout_ms: int
    flushes: list[Unacknowledged] = field(default_factory=list)
    replicas: list[Unacknowledged] = field(default_factory=list)


HandledFast = tuple[RequestContext, ProduceRequest, Steps[ProduceResponse | None]]

FAST_VERSIONS = fast_produce.VERSIONS
_NOT_PLAIN = TRANSACTIONAL_MASK | TIMESTAMP_TYPE_MASK
_LENGTH_MAGIC_ATTRIBUTES = struct.Struct(">8xi4xb4xh")
WRITE, TOPIC = Operation.WRITE, ResourceType.TOPIC  # an enum's attribute takes 0.1 µs
ABORTABLE_FROM = 11


def handle_fast(
    broker: Broker, frame: memoryview, header: RequestHeader, connection: ConnectionInfo
) -> bytes | HandledFast | None:
    """The frame of the response, or (context, request, what `handle` would return). None: the request is for `handle`.

    `frame` is borrowed for this call, so the request that is returned has no records.
    """
    version = header.api_version
    plain = fast_produce.read(frame, header.body_offset, version)
    if plain is None:
        return None
    acks, _, topic, topic_id, index, records = plain
    if version >= TOPIC_IDS_FROM:
        topic = broker.metadata.topic_name(topic_id) or ""
    partition = broker.replicas.partition(topic, index)
    is_believed = connection.header_trust.believes(records, _NOT_PLAIN)
    if (
        partition is None
        or (log := partition.log) is None
        or (version >= TOPIC_IDS_FROM and partition.topic_id != topic_id)
        or not log.rules.as_sent
        or not (is_believed or _is_plain_batch(records))
        or (acks != 1 and acks != ALL_IN_SYNC)
        or is_internal(topic)
        or broker.authorizer.audits_allowed
        or not broker.authorizer.authorize(connection.principal, connection.client_host, WRITE, TOPIC, topic)
        or not (is_believed or is_true_at_once(broker, connection, records))
    ):
        return None
    refused = connection.refused_batches
    try:
        if refused.by_partition:
            refused.check((topic, index), topic_id, _producers(partition), records)
        info = partition.append(ProducedBatches(records, broker.clock.time_ms(), version), acks)
    except (KafkaError, LogDirError) as error:
        context = RequestContext.of(header, connection, broker.authorizer)
        return _respond_to_one(broker, context, plain, partition, error)
    if info.flush_required or (acks == ALL_IN_SYNC and log.high_watermark <= info.last_offset):
        context = RequestContext.of(header, connection, broker.authorizer)
        return _respond_to_one(broker, context, plain, partition, info)
    if info.rolled:
        broker.flush_soon(partition)
    return fast_produce.encode_response(
        version, header.correlation_id, plain, info.first_offset, info.log_append_time, info.log_start_offset
    )


def _producers(partition: Partition) -> ProducerState | None:
    """The producers of a partition that this broker leads."""
    return None if partition.log is None or partition.leader is None else partition.log.producers


def _respond_to_one(
    broker: Broker,
    context: RequestContext,
    plain: fast_produce.FastProduce,
    partition: Partition,
    outcome: AppendInfo | KafkaError | LogDirError,
) -> HandledFast:
    """What `handle` returns for a request of one batch that was refused or has to wait."""
    acks, timeout_ms, _, topic_id, index, records = plain
    topic = partition.topic
    data = TopicData(name=topic, topic_id=topic_id, partition_data=[ProduceRequest.PartitionProduceData(index=index)])
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])
    partition_response = PartitionResponse(index=index)
    pending = Pending(acks, timeout_ms)
    if isinstance(outcome, Exception):
        refuse(broker, context, data, partition_response, records, outcome)
    else:
        _appended(broker, pending, partition, outcome, partition_response)
    topic_response = TopicResponse(name=topic, topic_id=topic_id, partition_responses=[partition_response])
    response = ProduceResponse(responses=[topic_response])
    return context, request, _acknowledge(broker, context, pending, response)


def _is_plain_batch(records: memoryview) -> bool:
    """One batch of magic 2, outside a transaction, whose records have times of their own."""
    size = len(records)
    if size <= RECORD_BATCH_OVERHEAD:
        return False
    length, magic, attributes = _LENGTH_MAGIC_ATTRIBUTES.unpack_from(records)
    return length == size - LOG_OVERHEAD and magic == MAGIC_MAX and not attributes & _NOT_PLAIN


def handle(broker: Broker, request: ProduceRequest, context: RequestContext) -> Steps[ProduceResponse | None]:
    """Append each batch, then wait for what its `acks` needs. None with acks=0.

    Raises ProtocolError with acks=0 where a partition is refused, KafkaError where the whole request is."""
    if not broker.metadata.received_update:
        yield partial(_wait_first_update, broker, request.timeout_ms)
    budget = YieldBudget()
    if context.api_version >= TOPIC_IDS_FROM:
        yield from name_topics(broker, request.topic_data, budget)
    verified: Verification | None = None
    if (yield from _is_transactional(request, budget)):
        verified = yield partial(_verify, broker, request, context, budget)
    response = ProduceResponse()
    acks, version = request.acks, context.api_version
    pending = Pending(acks, request.timeout_ms)
    refused, trust = context.connection.refused_batches, context.connection.header_trust
    now_ms = broker.clock.time_ms()
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = yield from distinct(topics, budget)
    for topic in topics:
        yield from budget.steps()
        is_unknown = version >= TOPIC_IDS_FROM and not topic.name
        authorized = is_unknown or context.authorized(Operation.WRITE, ResourceType.TOPIC, topic.name)
        partition_responses = []
        for data in topic.partition_data:
            yield from budget.steps()
            partition_response = PartitionResponse(index=data.index)
            partition_responses.append(partition_response)
            try:
                if not authorized:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = hosted(broker, topic, data.index, version)
                guard = NO_VERIFICATION if verified is None else verified.produce_guard((topic.name, data.index))
                records = check_request(topic.name, data.records, acks, context)
                if refused.by_partition:
                    refused.check((topic.name, data.index), topic.topic_id, _producers(partition), records)
                checked = None
                strictly = not trust.believes(records) and (
                    yield from is_wrong(broker, context, acks, partition, records)
                )
                if strictly or partition.is_slow_to_validate(records):
                    validate = partial(partition.validate_in_thread, records, version, now_ms, strictly=strictly)
                    checked = yield partial(slowly, broker, context, acks, validate)
                info = partition.append(ProducedBatches(records, now_ms, version, CLIENT, guard, checked), acks)
            except (KafkaError, LogDirError) as error:
                refuse(broker, context, topic, partition_response, data.records, error)
            else:
                _appended(broker, pending, partition, info, partition_response)
                if len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC_MAX:
                    partition.traffic.rare_counts().produce_conversions += info.last_offset - info.first_offset + 1
        if partition_responses:
            response.responses.append(
                TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partition_responses)
            )
    return (yield from _acknowledge(broker, context, pending, response))


async def _wait_first_update(broker: Broker, timeout_ms: int) -> None:
    """A broker that has just started would refuse a producer's first requests, and find the next one, which arrives
    when it leads, out of order: docs/decisions/first-metadata.md.
    """
    with trio.move_on_after(max(timeout_ms, 0) / 1000):
        await broker.metadata.wait_first_update(broker.tree)


def _appended(
    broker: Broker, pending: Pending, partition: Partition, info: AppendInfo, partition_response: PartitionResponse
) -> None:
    partition_response.base_offset = info.first_offset
    partition_response.log_append_time_ms = info.log_append_time
    partition_response.log_start_offset = info.log_start_offset
    end = info.last_offset + 1
    if info.rolled:
        broker.flush_soon(partition)
    if info.flush_required:
        pending.flushes.append((partition, end, partition_response))
    if pending.acks == ALL_IN_SYNC and partition.high_watermark < end:
        pending.replicas.append((partition, end, partition_response))


def _acknowledge(
    broker: Broker, context: RequestContext, pending: Pending, response: ProduceResponse
) -> Steps[ProduceResponse | None]:
    """Everything is appended or refused: wait for what is pending, then complete the response."""
    if pending.flushes:
        yield partial(_flush, broker, pending.flushes)
    if pending.acks == 0:
        end_connection_on_error(response)
        return None
    if pending.replicas:
        late = yield from _wait_for_replicas(broker, pending)
        if late:
            log_timed_out(broker, context, pending.timeout_ms, late)
    if context.api_version >= LEADER_FROM:
        partitions = (partition for topic in response.responses for partition in topic.partition_responses)
        response.node_endpoints = node_endpoints(broker, context, partitions, ProduceResponse.NodeEndpoint)
    return response


async def _verify(
    broker: Broker, request: ProduceRequest, context: RequestContext, budget: YieldBudget
) -> Verification:
    transactional_id = request.transactional_id
    if transactional_id is None or not context.authorized(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    connection, authorizer = context.connection, context.authorizer
    return await broker.verifier.verify_produce(
        request,
        budget,
        # what is denied is audited when the topic's batches are refused
        lambda topic: authorizer.authorize(connection.principal, connection.client_host, WRITE, TOPIC, topic),
        asks=Asks.of(context.api_version, ABORTABLE_FROM),
        owner=context.owner,
    )


def _is_transactional(request: ProduceRequest, budget: YieldBudget) -> Steps[bool]:
    """Whether one of its partitions begins with a batch of a transaction."""
    found = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            yield from budget.steps()
            if data.records is not None and begins_transactional(data.records):
                found = True
    return found


async def _flush(broker: Broker, flushes: list[Unacknowledged]) -> None:
    """`flush.messages` is reached: nothing is acknowledged before it is on disk."""
    for partition, end, partition_response in flushes:
        try:
            await partition.flush(end)
        except LogDirError as error:
            broker.log_dir_failed(error)
            unacknowledged(partition_response, ErrorCode.KAFKA_STORAGE_ERROR)
        except KafkaError as error:
            unacknowledged(partition_response, error.code)


def _wait_for_replicas(broker: Broker, pending: Pending) -> Steps[list[tuple[Partition, int]]]:
    """The partitions that were not replicated in time, each with the offset that it did not reach."""
    late: list[tuple[Partition, int]] = []
    deadline = trio.current_time() + max(pending.timeout_ms, 0) / 1000
    budget = YieldBudget()
    for partition, offset, partition_response in pending.replicas:
        yield from budget.steps()  # their time may be over all at once
        try:
            if not (yield from partition.until_committed(offset, deadline)):
                unacknowledged(partition_response, ErrorCode.REQUEST_TIMED_OUT)
                late.append((partition, offset))
        except KafkaError as error:
            unacknowledged(partition_response, error.code)
    return late
