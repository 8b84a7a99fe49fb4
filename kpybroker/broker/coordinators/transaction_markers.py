"""Markers: the ends of transactions, written into the partitions that took part.

The coordinator's half of Kafka's TransactionMarkerChannelManager, and the partition's half of WriteTxnMarkers. To the
partitions of this broker the coordinator goes straight; for those of others it asks their brokers. Whether a failed
marker is tried again is for the machine to say.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.metadata_version import parse, write_txn_markers_version
from kpybroker.core.offsets.values import TopicPartition
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.core.transaction.values import WriteMarkers
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.storage.log.append import AppendInfo

log = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

Errors = dict[TopicPartition, ErrorCode]


async def write_markers(broker: Broker, order: WriteMarkers) -> Errors:
    """What became of each partition's marker, once all have answered.

    A partition that the cluster does not know has been deleted: nothing is left to write there.
    """
    errors: Errors = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in order.partitions:
        found = broker.metadata.leader_and_epoch(*partition)
        if found is None:
            errors[partition] = ErrorCode.NONE
        else:
            by_leader.setdefault(found[0], []).append(partition)
    if errors:
        log.info(
            "Couldn't find leader endpoint for partitions %s while trying to send transaction markers for %s, these "
            "partitions are likely deleted already and hence can be skipped",
            list(errors),
            order.transactional_id,
        )

    async def collect(leader: int, partitions: list[TopicPartition]) -> None:
        errors.update(await _write_at(broker, leader, order, partitions))

    if list(by_leader) == [broker.node_id]:
        await collect(broker.node_id, by_leader[broker.node_id])
    else:
        async with trio.open_nursery() as nursery:
            for leader, partitions in by_leader.items():
                nursery.start_soon(collect, leader, partitions)
    return errors


async def _write_at(broker: Broker, leader: int, order: WriteMarkers, partitions: list[TopicPartition]) -> Errors:
    if leader == broker.node_id:
        return await write_markers_here(
            broker, order.producer_id, order.producer_epoch, order.coordinator_epoch, order.committed, partitions
        )
    try:
        version = write_txn_markers_version(parse(broker.config.get_str("inter.broker.protocol.version")))
        response: WriteTxnMarkersResponse = await broker.peers.ask(
            leader, ApiKey.WRITE_TXN_MARKERS, _request(order, partitions), version
        )
    except (OSError, ProtocolError) as error:
        log.info("Markers of %s did not reach broker %d: %r", order.transactional_id, leader, error)
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    answered = {
        (topic.name, result.partition_index): ErrorCode(result.error_code)
        for marker in response.markers
        for topic in marker.topics
        for result in topic.partitions
    }
    return {partition: answered.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in partitions}


def _request(order: WriteMarkers, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=order.producer_id,
        producer_epoch=order.producer_epoch,
        coordinator_epoch=order.coordinator_epoch,
        transaction_result=order.committed,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ],
    )
    return WriteTxnMarkersRequest(markers=[marker])


async def write_markers_here(
    broker: Broker,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    committed: bool,
    partitions: Iterable[TopicPartition],
) -> Errors:
    """Append the end of a transaction to partitions led here and wait until it is committed."""
    control_type = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    marker = EndTransactionMarker(control_type, coordinator_epoch, broker.clock.time_ms())
    errors: Errors = {}
    appended: dict[TopicPartition, tuple[Partition, AppendInfo]] = {}
    budget = YieldBudget()
    for key in partitions:
        await budget.spend()
        partition = broker.replicas.partition(*key)
        if partition is None or partition.log is None:
            errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        try:
            info = partition.append_marker(marker, producer_id, producer_epoch)
        except KafkaError as error:
            errors[key] = error.code
        except LogDirError as error:
            broker.log_dir_failed(error)
            errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            appended[key] = (partition, info)
            if info.rolled:
                broker.flush_soon(partition)
    deadline = broker.clock.monotonic() + broker.config.get_int("request.timeout.ms") / 1000
    for key, (partition, info) in appended.items():
        errors[key] = await _committed(broker, partition, info, deadline)
    _tell_groups(broker, producer_id, committed, errors)
    return errors


async def _committed(broker: Broker, partition: Partition, info: AppendInfo, deadline: float) -> ErrorCode:
    end = info.last_offset + 1
    try:
        with trio.move_on_at(deadline):
            if info.flush_required:
                await partition.flush(end)
            if partition.high_watermark < end:
                await partition.wait_high_watermark(end)
            return ErrorCode.NONE
    except KafkaError as error:
        return error.code
    except LogDirError as error:
        broker.log_dir_failed(error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.REQUEST_TIMED_OUT


def _tell_groups(broker: Broker, producer_id: int, committed: bool, errors: Mapping[TopicPartition, ErrorCode]) -> None:
    """Offsets that were pending in the transaction count from here on, or never."""
    indexes = [
        index
        for (topic, index), error in errors.items()
        if topic == GROUP_METADATA_TOPIC_NAME and error is ErrorCode.NONE
    ]
    if indexes:
        broker.groups.on_transaction_completed(producer_id, indexes, committed)
