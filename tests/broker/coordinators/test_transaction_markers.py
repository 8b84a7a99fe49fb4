"""Markers: written to partitions of this broker and of others, with a result for each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.coordinators.transaction_markers import TransactionEnd, TransactionMarkers
from kpybroker.core.features import Finalized
from kpybroker.core.transaction.values import WriteMarkers
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.support.brokers.transactional import completed, fetched, one_producer, read, transactional_broker


def order(*partitions: tuple[str, int], producer_id: int = 5, epoch: int = 0) -> WriteMarkers:
    return WriteMarkers("x", producer_id, epoch, 3, True, partitions)


async def test_each_partition_has_its_own_result(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        assert await broker.markers.write_here(TransactionEnd(5, 1, 3, True), [("t", 0), ("t", 9), ("none", 0)]) == {
            ("t", 0): ErrorCode.NONE,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await broker.markers.write_here(TransactionEnd(5, 0, 3, True), [("t", 0)]) == {
            ("t", 0): ErrorCode.INVALID_PRODUCER_EPOCH
        }
        assert await broker.markers.write_here(TransactionEnd(5, 1, 2, True), [("t", 0)]) == {
            ("t", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED
        }


async def test_a_marker_of_version_2_ends_no_later_transaction(tmp_path: Path) -> None:
    """It has a later epoch than the records. Once more is once more, until something is open in its epoch."""
    async with one_producer(tmp_path) as (broker, producer):
        await producer.write(b"a", version=12)
        producer_id, epoch = producer.producer_id, producer.epoch

        async def end(marker_epoch: int) -> ErrorCode:
            written = await broker.markers.write_here(
                TransactionEnd(producer_id, marker_epoch, 0, False, version=2), [("t", 0)]
            )
            return written["t", 0]

        log = broker.replicas.hosted("t", 0).online_log()
        assert await end(epoch) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert log.has_ongoing_transaction(producer_id)
        await producer.end(True, 5)
        await completed(broker)
        assert not log.has_ongoing_transaction(producer_id)
        assert await end(epoch + 1) is ErrorCode.NONE
        await producer.write(b"b", version=12)
        assert await end(epoch + 1) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert log.has_ongoing_transaction(producer_id)
        await producer.end(True, 5)
        await completed(broker)
        assert await read(broker) == [b"a", b"b"]


async def test_a_deleted_partition_counts_as_written(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        assert await broker.markers.write(order(("gone", 0), ("t", 1))) == {
            ("gone", 0): ErrorCode.NONE,
            ("t", 1): ErrorCode.NONE,
        }
        assert (await fetched(broker, index=1)).high_watermark == 1


def led_by_another(broker: Broker, monkeypatch: pytest.MonkeyPatch, leader: int, *partitions: tuple[str, int]) -> None:
    known = broker.metadata.leader_and_epoch
    monkeypatch.setattr(
        broker.metadata, "leader_and_epoch", lambda *place: (leader, 0) if place in partitions else known(*place)
    )


@pytest.mark.parametrize(
    ("levels", "sent_version"),
    [({"transaction.version": 2}, 2), ({"transaction.version": 1}, 1), ({}, 1)],
    ids=["every broker knows", "level 1", "a Kafka 3.9 may be there"],
)
async def test_other_brokers_write_their_own_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: dict[str, int], sent_version: int
) -> None:
    async with transactional_broker(tmp_path) as broker:
        broker.metadata.snapshot = broker.metadata.snapshot._replace(features=Finalized(levels, 5))
        led_by_another(broker, monkeypatch, 8, ("t", 1), ("t", 2))
        asked: list[tuple[int, ApiKey, WriteTxnMarkersRequest, int]] = []

        async def ask_peer(broker_id: int, api_key: ApiKey, message: Any, version: int) -> WriteTxnMarkersResponse:
            asked.append((broker_id, api_key, message, version))
            result = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
            topic = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                name="t", partitions=[result(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)]
            )
            marker = WriteTxnMarkersResponse.WritableTxnMarkerResult(producer_id=5, topics=[topic])
            return WriteTxnMarkersResponse(markers=[marker])

        markers = TransactionMarkers(broker, broker.metadata, broker.replicas, ask_peer, lambda *_: None)
        written = replace(order(("t", 0), ("t", 1), ("t", 2), epoch=1), version=2)
        assert await markers.write(written) == {
            ("t", 0): ErrorCode.NONE,
            ("t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ("t", 2): ErrorCode.UNKNOWN_SERVER_ERROR,  # missing from the response
        }
        ((broker_id, api_key, message, version),) = asked
        assert (broker_id, api_key, version) == (8, ApiKey.WRITE_TXN_MARKERS, sent_version)
        (marker,) = message.markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 1, 3)
        assert marker.transaction_version == 2  # which version 1 of the request leaves out
        assert marker.transaction_result
        assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [1, 2])]


async def test_an_unreachable_broker_is_a_network_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with transactional_broker(tmp_path) as broker:
        led_by_another(broker, monkeypatch, 8, ("t", 0))
        assert await broker.markers.write(order(("t", 0))) == {("t", 0): ErrorCode.NETWORK_EXCEPTION}
        led_by_another(broker, monkeypatch, -1, ("t", 0))  # there is no leader at the moment
        assert await broker.markers.write(order(("t", 0))) == {("t", 0): ErrorCode.NETWORK_EXCEPTION}


async def test_markers_end_the_transaction_in_every_partition(tmp_path: Path) -> None:
    async with one_producer(tmp_path, 0, 1, 2) as (broker, producer):
        for index in range(3):
            await producer.write(b"a", index=index)
            log = broker.replicas.hosted("t", index).online_log()
            assert log.has_ongoing_transaction(producer.producer_id)
        await broker.markers.write(
            order(("t", 0), ("t", 1), ("t", 2), producer_id=producer.producer_id, epoch=producer.epoch)
        )
        for index in range(3):
            log = broker.replicas.hosted("t", index).online_log()
            assert not log.has_ongoing_transaction(producer.producer_id)
            assert log.last_stable_offset == 2
