"""WriteTxnMarkers: by the partitions' word, with results by producer; only for brokers and administrators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.between_brokers import write_txn_markers
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import fetched, one_producer, read, transactional_broker


def marker(
    producer_id: int, *indexes: int, epoch: int = 0, committed: bool = False, transaction_version: int = 0
) -> Any:
    topics = [WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="t", partition_indexes=list(indexes))]
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=committed,
        topics=topics if indexes else [],
        transaction_version=transaction_version,
    )


async def write(broker: Broker, *markers: Any, version: int = 1) -> dict[tuple[int, int], int]:
    """(producer id, partition) -> error code."""
    response = await ask(broker, WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        (result.producer_id, partition.partition_index): partition.error_code
        for result in response.markers
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", versions(write_txn_markers))
async def test_what_is_open_ends(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path, 0, 1) as (broker, producer):
        await producer.write(b"aborted")
        await producer.write(b"kept", index=1)
        aborted, kept = marker(producer.producer_id, 0), marker(producer.producer_id, 1, committed=True)
        ends = await write(broker, aborted, kept, marker(77, 2), version=version)
        assert ends == {(producer.producer_id, 0): 0, (producer.producer_id, 1): 0, (77, 2): 0}
        assert await read(broker) == []
        assert await read(broker, index=1) == [b"kept"]


@pytest.mark.parametrize("version", versions(write_txn_markers))
async def test_the_epoch_of_a_marker_of_version_2_is_a_later_one(tmp_path: Path, version: int) -> None:
    """Requests before version 2 do not say it, so any epoch that is not lower ends the transaction."""
    async with one_producer(tmp_path, 0) as (broker, producer):
        await producer.write(b"a")
        same = marker(producer.producer_id, 0, committed=True, transaction_version=2)
        later = marker(producer.producer_id, 0, epoch=1, committed=True, transaction_version=2)
        knows = version >= 2
        expected = ErrorCode.INVALID_PRODUCER_EPOCH if knows else ErrorCode.NONE
        assert await write(broker, same, version=version) == {(producer.producer_id, 0): expected}
        assert await write(broker, later, version=version) == {(producer.producer_id, 0): ErrorCode.NONE}
        assert await read(broker) == [b"a"]


async def test_by_the_partitions_word(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        assert await write(broker, marker(5, 0, epoch=2)) == {(5, 0): ErrorCode.NONE}
        assert await write(broker, marker(5, 0, 1, 9, epoch=1)) == {
            (5, 0): ErrorCode.INVALID_PRODUCER_EPOCH,
            (5, 1): ErrorCode.NONE,
            (5, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await write(broker, marker(5)) == {}


async def test_no_marker_is_made_of_an_id_or_epoch_that_is_none(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        for bad in (marker(-1, 0), marker(5, 0, epoch=-1)):
            codes = await write(broker, marker(6, 1), bad)
            assert set(codes.values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert (await fetched(broker, index=1)).high_watermark == 0


async def test_authorization(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        alter = (Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        act = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        for denied in ({alter}, {act}):
            broker.authorizer = Denying(denied)
            assert await write(broker, marker(5, 0)) == {(5, 0): ErrorCode.NONE}
        broker.authorizer = Denying({alter, act})
        assert await write(broker, marker(5, 0)) == {(5, 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
