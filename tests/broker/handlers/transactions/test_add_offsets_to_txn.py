"""AddOffsetsToTxn: the group's partition takes part; refusals, and the words of old versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers.transactions import add_offsets_to_txn
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.transactional import Producer, fenced_producer, one_producer, transactional_broker


@pytest.mark.parametrize("version", versions(add_offsets_to_txn))
async def test_the_groups_partition_takes_part(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        assert await producer.add_offsets("g", version) is ErrorCode.NONE
        partition = ("__consumer_offsets", broker.groups.partition_for("g"))
        assert broker.transactions.describe("x").partitions == (partition,)


@pytest.mark.parametrize("version", versions(add_offsets_to_txn))
async def test_a_fenced_producer_receives_the_error_of_its_version(tmp_path: Path, version: int) -> None:
    async with fenced_producer(tmp_path) as (_, zombie, _):
        expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await zombie.add_offsets("g", version) is expected


async def test_refusals(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        assert await Producer(broker, "").add_offsets() is ErrorCode.INVALID_REQUEST
        broker.authorizer = Denying(
            {(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x"), (Operation.READ, ResourceType.GROUP, "h")}
        )
        assert await Producer(broker).add_offsets() is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await Producer(broker, "y").add_offsets("h") is ErrorCode.GROUP_AUTHORIZATION_FAILED
