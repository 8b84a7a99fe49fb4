"""Markers: the ends of transactions, written into the partitions that took part.

The coordinator's half of Kafka's TransactionMarkerChannelManager, and the partition's half of WriteTxnMarkers. The
coordinator writes to partitions of this broker directly, and asks other brokers for theirs. The state machine decides
whether a failed marker is retried.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.features import TRANSACTION_VERSION
from kpybroker.core.metadata_version import parse, write_txn_markers_version
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.core.topic_partition import PartitionKey, indexes_by_topic
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM, WriteMarkers
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.storage.log.append import AppendInfo

logger = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

WITH_TRANSACTION_VERSION = 2
"""The version of WriteTxnMarkers that says which version a transaction has (KIP-1228)."""

Errors = dict[PartitionKey, ErrorCode]
AskPeer = Callable[[int, ApiKey, Any, int], Awaitable[Any]]
"""Broker id, API, message and version to the response. Raises OSError, ProtocolError."""


class TransactionEnd(NamedTuple):
    """What a marker says: how a producer's transaction ended, by which coordinator. From `version` 2 of transactions on
    its epoch is later than that of the records.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    version: int = 0


class TransactionMarkers:
    """Writes markers. `on_completed(producer_id, partition_indexes, committed)` is called when they are committed in
    partitions of `__consumer_offsets` here: offsets that were pending in the transaction count from then on, or never.
    """

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        replicas: Replicas,
        ask_peer: AskPeer,
        on_completed: Callable[[int, Collection[int], bool], None],
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._replicas = replicas
        self._ask_peer = ask_peer
        self._on_completed = on_completed

    # --- the coordinator's half

    async def write(self, order: WriteMarkers) -> Errors:
        """Write a marker into each partition, wherever it is led. Returns the result of each.

        A partition that the cluster does not know was deleted and counts as written.
        """
        errors: Errors = {}
        by_leader: dict[int, list[PartitionKey]] = {}
        for partition in order.partitions:
            found = self._metadata.leader_and_epoch(*partition)
            if found is None:
                errors[partition] = ErrorCode.NONE
            else:
                by_leader.setdefault(found[0], []).append(partition)
        if errors:
            logger.info(
                "Couldn't find leader endpoint for partitions %s while trying to send transaction markers for %s, "
                "these partitions are likely deleted already and hence can be skipped",  # Kafka's text
                list(errors),
                order.transactional_id,
            )

        async def collect(leader: int, partitions: list[PartitionKey]) -> None:
            errors.update(await self._write_at(leader, order, partitions))

        node_id = self._host.node_id
        if list(by_leader) == [node_id]:
            await collect(node_id, by_leader[node_id])
        else:
            async with trio.open_nursery() as nursery:
                for leader, partitions in by_leader.items():
                    nursery.start_soon(collect, leader, partitions)
        return errors

    async def _write_at(self, leader: int, order: WriteMarkers, partitions: list[PartitionKey]) -> Errors:
        if leader == self._host.node_id:
            end = TransactionEnd(
                order.producer_id, order.producer_epoch, order.coordinator_epoch, order.committed, order.version
            )
            return await self.write_here(end, partitions)
        try:
            response: WriteTxnMarkersResponse = await self._ask_peer(
                leader, ApiKey.WRITE_TXN_MARKERS, _request(order, partitions), self._request_version()
            )
        except (OSError, ProtocolError) as error:
            logger.info("Markers of %s did not reach broker %d: %r", order.transactional_id, leader, error)
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        written = {
            (topic.name, result.partition_index): ErrorCode(result.error_code)
            for marker in response.markers
            for topic in marker.topics
            for result in topic.partitions
        }
        return {partition: written.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in partitions}

    def _request_version(self) -> int:
        """The version with the transaction's only where the finalized level says that every broker knows it: a Kafka
        3.9 does not, and takes a marker of any epoch that is not lower.
        """
        if self._metadata.snapshot.features.level(TRANSACTION_VERSION) >= EPOCH_BUMP_FROM:
            return WITH_TRANSACTION_VERSION
        return write_txn_markers_version(parse(self._host.config.get_str("inter.broker.protocol.version")))

    # --- the partition's half

    async def write_here(self, end: TransactionEnd, partitions: Iterable[PartitionKey]) -> Errors:
        """Append a marker to partitions led here, and wait for each to be committed. Returns the result of each."""
        host = self._host
        control_type = ControlRecordType.COMMIT if end.committed else ControlRecordType.ABORT
        marker = EndTransactionMarker(control_type, end.coordinator_epoch, host.clock.time_ms())
        errors: Errors = {}
        appended: dict[PartitionKey, tuple[Partition, AppendInfo]] = {}
        budget = YieldBudget()
        for key in partitions:
            await budget.spend()
            partition = self._replicas.partition(*key)
            if partition is None or partition.log is None:
                errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            try:
                info = partition.append_marker(marker, end.producer_id, end.producer_epoch, end.version)
            except KafkaError as error:
                errors[key] = error.code
            except LogDirError as error:
                host.log_dir_failed(error)
                errors[key] = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                appended[key] = (partition, info)
                if info.rolled:
                    self._replicas.flush_soon(partition)
        deadline = trio.current_time() + host.config.get_int("request.timeout.ms") / 1000
        for key, (partition, info) in appended.items():
            errors[key] = await self._committed(partition, info, deadline)
        self._report_completed(end, errors)
        return errors

    async def _committed(self, partition: Partition, info: AppendInfo, deadline: float) -> ErrorCode:
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
            self._host.log_dir_failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.REQUEST_TIMED_OUT

    def _report_completed(self, end: TransactionEnd, errors: Mapping[PartitionKey, ErrorCode]) -> None:
        indexes = [
            index
            for (topic, index), error in errors.items()
            if topic == GROUP_METADATA_TOPIC_NAME and error is ErrorCode.NONE
        ]
        if indexes:
            self._on_completed(end.producer_id, indexes, end.committed)


def _request(order: WriteMarkers, partitions: Iterable[PartitionKey]) -> WriteTxnMarkersRequest:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=order.producer_id,
        producer_epoch=order.producer_epoch,
        coordinator_epoch=order.coordinator_epoch,
        transaction_result=order.committed,
        transaction_version=order.version,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in indexes_by_topic(partitions).items()
        ],
    )
    return WriteTxnMarkersRequest(markers=[marker])
