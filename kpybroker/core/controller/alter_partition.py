"""Requests of leaders and coordinators: AlterPartition (KIP-497) and AllocateProducerIds (KIP-730)."""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.core import tree as t
from kpybroker.core.controller import states
from kpybroker.core.controller.effects import Enqueue, Procedure, checked, get, info, warning
from kpybroker.core.controller.events import AllocateProducerIds, AlterPartitionReceived, PartitionReassignmentIsrChange
from kpybroker.core.controller.model import LeaderIsrAndControllerEpoch
from kpybroker.core.controller.parts import Parts, send_update_metadata
from kpybroker.core.leader_and_isr import LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kpybroker.wire.znodes import RECOVERED, RECOVERING

TOPIC_IDS_SINCE = 2
"""AlterPartition names topics by id from this version on."""

PRODUCER_ID_BLOCK_SIZE = 1000
LARGEST_PRODUCER_ID = 2**63 - 1

PartitionData = AlterPartitionResponse.PartitionData


def alter_partition(parts: Parts, event: AlterPartitionReceived) -> Procedure[AlterPartitionResponse]:
    """Apply the ISR changes a leader proposes, and report the state of each partition (KIP-497, KIP-841)."""
    request, version = event.request, event.version
    context = parts.context
    if not parts.is_active:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    known_epoch = context.live_broker_epochs.get(request.broker_id)
    if known_epoch != request.broker_epoch:
        yield info(
            f"[Controller id={parts.settings.broker_id}] Ignoring AlterPartition due to stale broker epoch "
            f"{request.broker_epoch} and local broker epoch {known_epoch} for broker {request.broker_id}"
        )
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    response = AlterPartitionResponse()
    asked = _asked(parts, request, version, response)
    results: dict[TopicPartition, LeaderAndIsr | ErrorCode] = {}
    wanted: dict[TopicPartition, LeaderAndIsr] = {}
    for partition, new in asked.items():
        verdict = _judge(parts, partition, new, version)
        if verdict is None:
            wanted[partition] = new
        else:
            results[partition] = verdict
    updated, conflicts = yield from states.update(wanted, context.epoch, context.epoch_zk_version)
    for partition, result in updated.items():
        if isinstance(result, LeaderAndIsr):
            context.set_leadership(partition, LeaderIsrAndControllerEpoch(result, context.epoch))
            results[partition] = result
        else:
            results[partition] = ErrorCode.UNKNOWN_SERVER_ERROR
    for partition in conflicts:
        results[partition] = ErrorCode.INVALID_UPDATE_VERSION
    if asked:
        yield from send_update_metadata(parts, None, asked)
    for partition in context.partitions_being_reassigned & results.keys():
        # Its target may be in the ISR now. A separate event, so that the leader gets its response first, as in Kafka.
        yield Enqueue(PartitionReassignmentIsrChange(partition))
    _respond(parts, response, results, version)
    return response


def _asked(
    parts: Parts, request: AlterPartitionRequest, version: int, response: AlterPartitionResponse
) -> dict[TopicPartition, LeaderAndIsr]:
    """Proposed states by partition; topics with an unknown id go into the response here."""
    asked = {}
    for topic in request.topics:
        name = parts.context.topic_names.get(topic.topic_id) if version >= TOPIC_IDS_SINCE else topic.topic_name
        if name is None:
            response.topics.append(
                AlterPartitionResponse.TopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        PartitionData(partition_index=p.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
                        for p in topic.partitions
                    ],
                )
            )
            continue
        for partition in topic.partitions:
            isr = [state.broker_id for state in partition.new_isr_with_epochs] if version >= 3 else partition.new_isr
            asked[TopicPartition(name, partition.partition_index)] = LeaderAndIsr(
                request.broker_id,
                tuple(isr),
                partition.leader_epoch,
                partition.leader_recovery_state,
                partition.partition_epoch,
            )
    return asked


def _judge(parts: Parts, partition: TopicPartition, new: LeaderAndIsr, version: int) -> LeaderAndIsr | ErrorCode | None:
    """An error, the current state if it is the proposed one, or None where it must be written."""
    leadership = parts.context.partition_leadership_info.get(partition)
    if leadership is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    current = leadership.leader_and_isr
    if new.partition_epoch > current.partition_epoch or new.leader_epoch > current.leader_epoch:
        # The leader knows more than this broker, which is therefore no longer the controller.
        return ErrorCode.NOT_CONTROLLER
    if new.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if new.equals_allow_stale_partition_epoch(current):
        return current
    if new.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if new.leader_recovery_state == RECOVERING and (len(new.isr) > 1 or current.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not parts.context.live_broker_ids.issuperset(new.isr):
        # KIP-841: a broker that is down or shutting down may not enter the ISR.
        return ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED
    return None


def _respond(
    parts: Parts,
    response: AlterPartitionResponse,
    results: dict[TopicPartition, LeaderAndIsr | ErrorCode],
    version: int,
) -> None:
    topics: dict[str, AlterPartitionResponse.TopicData] = {}
    for partition, result in results.items():
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = AlterPartitionResponse.TopicData()
            response.topics.append(topic)
            if version >= TOPIC_IDS_SINCE:
                topic.topic_id = parts.context.topic_ids.get(partition.topic, ZERO_UUID)
            else:
                topic.topic_name = partition.topic
        if isinstance(result, LeaderAndIsr):
            data = PartitionData(
                partition_index=partition.partition,
                leader_id=result.leader,
                leader_epoch=result.leader_epoch,
                isr=list(result.isr),
                leader_recovery_state=result.leader_recovery_state,
                partition_epoch=result.partition_epoch,
            )
        else:
            data = PartitionData(partition_index=partition.partition, error_code=result)
        topic.partitions.append(data)


class ProducerIdsBlock(NamedTuple):
    """`size` consecutive producer ids from `first` on, now owned by one broker."""

    first: int
    size: int


def allocate_producer_ids(parts: Parts, event: AllocateProducerIds) -> Procedure[ProducerIdsBlock]:
    """The next block of ids for a broker, claimed in `/latest_producer_id_block`."""
    if not parts.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    known_epoch = parts.context.live_broker_epochs.get(event.broker_id)
    if known_epoch is None:
        yield warning(f"Ignoring AllocateProducerIds due to unknown broker {event.broker_id}")
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if known_epoch != event.broker_epoch:
        yield warning(
            f"Ignoring AllocateProducerIds due to stale broker epoch {event.broker_epoch} for broker {event.broker_id}"
        )
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    while True:
        node = yield from get(znodes.LATEST_PRODUCER_ID_BLOCK)
        assert node is not None, "created with the other persistent paths"
        first = znodes.decode_producer_id_block(node.data).last + 1 if node.data else 0
        if first > LARGEST_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Have exhausted all producerIds.")
        block = znodes.ProducerIdBlock(event.broker_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)
        op = t.SetData(znodes.LATEST_PRODUCER_ID_BLOCK, znodes.encode_producer_id_block(block), node.stat.version)
        (result,) = yield from checked([op], parts.context.epoch_zk_version)
        if isinstance(result, t.BadVersion):
            continue  # a broker that predates KIP-730 has claimed the block
        if isinstance(result, t.TreeError):
            raise result
        return ProducerIdsBlock(first, PRODUCER_ID_BLOCK_SIZE)
