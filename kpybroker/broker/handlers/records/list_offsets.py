"""ListOffsets 0-11: the offset for a timestamp, and the special timestamps.

-1 the end a reader may see (high watermark, or last stable offset with READ_COMMITTED), -2 the log start, -3 the
record with the largest timestamp (version 7), -4 the earliest local offset (version 8: here the log start, nothing is
tiered), -5 the last tiered offset (version 9: none, so -1), -6 the earliest that waits to be tiered (version 11: none).
Version 0 returns a list of segment starts, as before Kafka 0.10.1. How long to wait for tiered storage (version 10) is
read and passed over: there is none.

A search by time may read a whole segment whose timestamps are wrong: large batches in a thread, others in time slices.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget, in_thread, next_slice
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.log_fields import CURRENT
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.storage.disk.errors import LogDirError, failing_takes_offline
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.loop.slow_work import ClientsWork
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.storage.log.log import Log
    from kpybroker.storage.log.reader import Search, TimestampAndOffset

LEDGER = Ledger(
    ApiKey.LIST_OFFSETS,
    0,
    11,
    {
        0: "segment starts before a time",
        1: "one offset and its timestamp",
        2: "isolation level, throttle time",
        4: "leader epochs",
        6: "flexible",
        7: "max timestamp (-3)",
        8: "earliest local (-4)",
        9: "latest tiered (-5)",
        10: "how long to wait for tiered storage (KIP-1075)",
        11: "earliest pending upload (-6, KIP-1023)",
    },
    absent="tiered storage: -5 and -6 find nothing, how long to wait is read and passed over",
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
READ_COMMITTED = 1
CONSUMER_REPLICA = -1
DEBUGGING_REPLICA = -2
UNKNOWN = -1
OFFSET_NOT_AVAILABLE_SINCE = 5
NOTHING = UNKNOWN, UNKNOWN, UNKNOWN
Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch, each -1 where there is none."""
PartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse
TopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
WantedPartition = ListOffsetsRequest.ListOffsetsPartition

# The version from which a special timestamp is understood.
_SPECIAL_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


def handle(broker: Broker, request: ListOffsetsRequest, context: RequestContext) -> Steps[ListOffsetsResponse]:
    """The offset for the timestamp of each partition."""
    seen: dict[tuple[str, int], int] = {}
    budget = YieldBudget(context.connection.may_leave)
    for topic in request.topics:
        yield from budget.steps()
        for wanted in topic.partitions:
            yield from budget.steps()
            key = (topic.name, wanted.partition_index)
            seen[key] = seen.get(key, 0) + 1
    response = ListOffsetsResponse()
    for topic in request.topics:
        yield from budget.steps()
        partitions = []
        may_describe = context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        for wanted in topic.partitions:
            yield from budget.steps()
            try:
                if not may_describe:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if seen[topic.name, wanted.partition_index] > 1 and context.api_version > 0:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                partition = yield from _partition_response(broker, request, context, topic.name, wanted)
            except KafkaError as error:
                partition = _refusal(wanted, error.code)
            except LogDirError as error:
                broker.log_dir_failed(error)
                partition = _refusal(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
            partitions.append(partition)
        response.topics.append(TopicResponse(name=topic.name, partitions=partitions))
    return response


def _partition_response(
    broker: Broker, request: ListOffsetsRequest, context: RequestContext, topic: str, wanted: WantedPartition
) -> Steps[PartitionResponse]:
    version = context.api_version
    if wanted.timestamp < 0 and _SPECIAL_SINCE.get(wanted.timestamp, version + 1) > version:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = broker.replicas.hosted(topic, wanted.partition_index)
    only_leader = request.replica_id != DEBUGGING_REPLICA
    log = partition.readable_log(wanted.current_leader_epoch, only_leader=only_leader)
    end = _visible_end(log, request)
    response = PartitionResponse(partition_index=wanted.partition_index, offset=UNKNOWN, timestamp=UNKNOWN)
    if version == 0:
        if wanted.max_num_offsets < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka fails to make an array of that size
        response.old_style_offsets = _segment_starts(broker, log, wanted, end)
        return response
    lags = request.replica_id == CONSUMER_REPLICA and partition.lags_behind_epoch_start
    if lags and wanted.timestamp == LATEST:
        raise _not_available(version)
    found = _special(partition, log, wanted.timestamp, end)
    if found is None:
        found = yield partial(_search, broker, context, log, wanted.timestamp, end)
    response.timestamp, response.offset, leader_epoch = found
    if lags and response.offset == UNKNOWN and wanted.timestamp not in (EARLIEST, EARLIEST_LOCAL):
        raise _not_available(version)
    if version >= 4:
        response.leader_epoch = leader_epoch
    return response


def _not_available(version: int) -> KafkaError:
    """A new leader does not know yet how far its predecessor's records were committed (KIP-207)."""
    knows_it = version >= OFFSET_NOT_AVAILABLE_SINCE
    return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if knows_it else ErrorCode.LEADER_NOT_AVAILABLE)


def _visible_end(log: Log, request: ListOffsetsRequest) -> int:
    if request.replica_id != CONSUMER_REPLICA:
        return log.log_end_offset
    return log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark


def _special(partition: Partition, log: Log, timestamp: int, end: int) -> Found | None:
    """What no search is needed for."""
    if timestamp == LATEST:
        return UNKNOWN, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return UNKNOWN, log.log_start_offset, log.earliest_epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    return None


async def _search(broker: Broker, context: RequestContext, log: Log, timestamp: int, end: int) -> Found:
    """By time. Lines that it logs carry the request; it ends where its client leaves."""
    search = log.search_max_timestamp() if timestamp == MAX_TIMESTAMP else log.search_timestamp(timestamp)
    outer = CURRENT.set(context)
    try:
        with failing_takes_offline(log.log_dir), context.connection.may_leave():
            found = await _run(search, broker.slow_work.of(context.connection.turns_of))
    finally:
        CURRENT.reset(outer)
    if found is None or found.offset >= end:
        return NOTHING
    return found.timestamp, found.offset, found.leader_epoch


async def _run(search: Search, work: ClientsWork) -> TimestampAndOffset | None:
    with closing(search):
        for step in search:
            if step is not None:
                found = await in_thread(step.run, work) if step.is_long else step.run()
                if found is not None:
                    return found
            await next_slice()
    return None


def _segment_starts(broker: Broker, log: Log, wanted: WantedPartition, end: int) -> list[int]:
    """Newest first; what a consumer may not see yet is replaced by the end it may see (`fetchOffsetsBefore`)."""
    found = log.legacy_offsets_before(wanted.timestamp, wanted.max_num_offsets, broker.clock.time_ms())
    if not any(offset > end for offset in found):
        return found
    return [end, *(offset for offset in found if offset < end)]


def _refusal(wanted: WantedPartition, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=wanted.partition_index, error_code=code, timestamp=UNKNOWN, offset=UNKNOWN)


def error_response(request: ListOffsetsRequest, context: RequestContext, error: KafkaError) -> ListOffsetsResponse:
    """The error at each partition."""
    return ListOffsetsResponse(
        topics=[
            TopicResponse(name=topic.name, partitions=[_refusal(wanted, error.code) for wanted in topic.partitions])
            for topic in request.topics
        ]
    )
