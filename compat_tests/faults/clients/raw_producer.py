"""An idempotent or transactional producer of bare requests, which sends what it is asked to, where it is asked to."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.faults.clients.watchers import PRODUCE_VERSION, java_hash
from compat_tests.faults.cluster import BROKERS, MAIN, FaultyCluster
from compat_tests.faults.history import Acknowledged, Record
from compat_tests.overload.raw import Raw
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest
from kpybroker.wire.messages.end_txn import EndTxnRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from kpybroker.wire.records.builder import BatchFields, build_batch

TRANSACTION_PARTITIONS = 2
TRANSACTION_MS = 30_000
RESPONSE_S = 15.0
INIT_VERSION, ADD_VERSION, END_VERSION = 2, 1, 1
EPOCH_BUMPED_FROM = 5
MARKERS_VERSION = 2
LATE_COORDINATOR_EPOCH = 1_000
"""Later than that of any coordinator, as of the one that took over."""


class RawProducer:
    """Its records are numbered by the caller; a record's number is the sequence of its batch."""

    def __init__(self, cluster: FaultyCluster, *, is_transactional: bool = False) -> None:
        self.name = f"raw-{time.monotonic_ns()}"
        self._cluster = cluster
        self._transactional_id = self.name if is_transactional else None
        self.coordinator = BROKERS[0]
        if is_transactional:
            index = java_hash(self.name) % TRANSACTION_PARTITIONS
            self.coordinator = cluster.cluster.state("__transaction_state", index).leader
        self.producer_id, self.epoch = eventually(self._init, f"{self.name} is given an id")

    def record(self, number: int) -> Record:
        return Record(self.name, number)

    def _init(self) -> tuple[int, int] | None:
        request = InitProducerIdRequest(transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_MS)
        response = self._ask(self.coordinator, request, INIT_VERSION)
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code).name
        return response.producer_id, response.producer_epoch

    def add(self, topic: str, index: int) -> None:
        """A partition to the transaction."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        response = self._ask(self.coordinator, request, ADD_VERSION)
        (found,) = [one for each in response.results_by_topic_v3_and_below for one in each.results_by_partition]
        assert found.partition_error_code == ErrorCode.NONE, ErrorCode(found.partition_error_code).name

    def commit(self, version: int = END_VERSION) -> None:
        """From version 5 on the response has the id and the epoch to continue with."""
        request = EndTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        response = self._ask(self.coordinator, request, version)
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code).name
        if version >= EPOCH_BUMPED_FROM:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch

    def partitions(self) -> set[tuple[str, int]]:
        """What the coordinator says takes part in the transaction."""
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        (found,) = self._ask(self.coordinator, request, 0).transaction_states
        return {(topic.topic, index) for topic in found.topics for index in topic.partitions}

    def end_with_marker(self, broker: int, index: int) -> ErrorCode:
        """A marker of version 2 with the present epoch, written by this broker: that of the transaction before."""
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=MAIN, partition_indexes=[index])
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            coordinator_epoch=LATE_COORDINATOR_EPOCH,
            topics=[topic],
            transaction_version=2,
        )
        response = self._ask(broker, WriteTxnMarkersRequest(markers=[marker]), MARKERS_VERSION)
        return ErrorCode(response.markers[0].topics[0].partitions[0].error_code)

    def write(
        self, broker: int, index: int, number: int, acks: int = -1, *, sequence: int | None = None, version: int = 0
    ) -> ErrorCode:
        """One record to one partition of the main topic, by this broker. With acks=all a response is a promise.

        Without a `sequence` it is the record's number. From `version` 12 on it adds the partition to the transaction.
        """
        record = self.record(number)
        batch = build_batch(
            [(None, record.value(40).encode(), int(time.time() * 1000))],
            BatchFields(
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=number if sequence is None else sequence,
                is_transactional=self._transactional_id is not None,
            ),
        )
        data = ProduceRequest.PartitionProduceData(index=index, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=acks,
            timeout_ms=int(RESPONSE_S * 1000),
            topic_data=[ProduceRequest.TopicProduceData(name=MAIN, partition_data=[data])],
        )
        sent_ns = time.monotonic_ns()
        response = self._ask(broker, request, version or PRODUCE_VERSION).responses[0].partition_responses[0]
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE and acks == -1:
            # Not by whom: what is sent again may be acknowledged by the next leader, in an earlier one's epoch.
            reported = Acknowledged(record, response.base_offset, sent_ns, time.monotonic_ns())
            self._cluster.history.acknowledged[MAIN, index].append(reported)
        return code

    def _ask(self, broker: int, request: Any, version: int) -> Any:
        with Raw(("127.0.0.1", self._cluster.brokers[broker].port), RESPONSE_S + 5) as connection:
            return connection.ask(request, version)
