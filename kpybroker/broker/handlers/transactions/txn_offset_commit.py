"""TxnOffsetCommit 0-5: a group's offsets, as part of a transaction.

They stay pending until the transaction's marker is in the group's partition of `__consumer_offsets`. From version 3 on
the request says which member commits for which generation, so that a member of an earlier generation is refused. From
version 5 on that partition is added to the transaction here, where AddOffsetsToTxn did it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.transaction_verification import Asks, TransactionProducer
from kpybroker.broker.handlers.groups.checks import (
    kept_topic_id,
    known_partitions,
    require_group_id,
    serves_consumer_groups,
)
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.committing import commit_error
from kpybroker.core.group.values import CommitOffsets, CommitResult
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.core.topic_partition import PartitionKey, by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kpybroker.wire.records.batch import NO_SEQUENCE

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.TXN_OFFSET_COMMIT,
    0,
    5,
    {
        0: "the offsets of a group",
        1: "throttle time",
        2: "leader epoch (KIP-320); COORDINATOR_LOAD_IN_PROGRESS instead of COORDINATOR_NOT_AVAILABLE",
        3: "flexible; member, generation or member epoch, and instance id fence (KIP-447)",
        4: "TRANSACTION_ABORTABLE",
        5: "adds the group's partition to the transaction (KIP-890 part 2)",
    },
)

LOADING_FROM = 2
ABORTABLE_FROM = 4
Partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition


async def handle(broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
    """Keep each partition's offset pending until the transaction ends."""
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    known, errors = await known_partitions(broker, context, request.topics)
    if known:
        try:
            errors |= await _commit(broker, request, context, known)
        except KafkaError as error:
            errors |= dict.fromkeys(known, error.code)
    return await _paced_response(errors, context.api_version)


async def _commit(
    broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext, known: dict[PartitionKey, Partition]
) -> dict[PartitionKey, ErrorCode]:
    require_group_id(request.group_id)
    broker.groups.shard_for(request.group_id)  # raises where this is not the group's coordinator
    offsets_partition = (GROUP_METADATA_TOPIC_NAME, broker.groups.partition_for(request.group_id))
    verified = await broker.verifier.verify(
        TransactionProducer(request.transactional_id, request.producer_id, request.producer_epoch, context.owner),
        {offsets_partition: NO_SEQUENCE},
        Asks.of(context.api_version, ABORTABLE_FROM),
    )
    if verified.errors:
        raise KafkaError(commit_error(verified.errors[offsets_partition]))
    now_ms = broker.clock.time_ms()
    result: CommitResult = await broker.groups.ask(
        CommitOffsets(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            generation_id=request.generation_id,
            offsets={
                key: _offset(partition, now_ms, kept_topic_id(broker, key[0])) for key, partition in known.items()
            },
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            verification_guard=verified.guard(offsets_partition),
            owner=context.owner,
            as_kafka_4=serves_consumer_groups(broker, context),
        )
    )
    return dict(result.errors)


def _offset(partition: Partition, now_ms: int, topic_id: bytes) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=now_ms,
        topic_id=topic_id,
    )


def _response(errors: dict[PartitionKey, ErrorCode], version: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=name,
                partitions=[_partition(index, code, version) for index, code in codes],
            )
            for name, codes in by_topic(errors.items()).items()
        ]
    )


async def _paced_response(errors: dict[PartitionKey, ErrorCode], version: int) -> TxnOffsetCommitResponse:
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(errors))
    topics = by_topic(errors.items())
    await budget.spend(ELEMENT * len(errors))
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=name,
                partitions=await listed((_partition(index, code, version) for index, code in codes), budget),
            )
            for name, codes in topics.items()
        ]
    )


def _partition(index: int, code: ErrorCode, version: int) -> TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
        partition_index=index, error_code=_code(code, version)
    )


def _code(code: ErrorCode, version: int) -> ErrorCode:
    """Producers before 2.0 may crash on a coordinator that loads (KAFKA-7296)."""
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def error_response(
    request: TxnOffsetCommitRequest, context: RequestContext, error: KafkaError
) -> TxnOffsetCommitResponse:
    """The error at each partition."""
    partitions = ((topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions)
    return _response(dict.fromkeys(partitions, error.code), context.api_version)
