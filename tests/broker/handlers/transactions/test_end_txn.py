"""EndTxn: both ends in every version, refusals, and the words of old versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers.transactions import end_txn
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.transactional import (
    Producer,
    completed,
    fenced_producer,
    one_producer,
    read,
    transactional_broker,
)


@pytest.mark.parametrize("version", versions(end_txn))
async def test_commit_and_abort(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        for committed, value in ((True, b"kept"), (False, b"dropped")):
            await producer.add(0)
            await producer.write(value)
            assert await producer.end(committed, version) is ErrorCode.NONE
            assert await completed(broker) == ("CompleteCommit" if committed else "CompleteAbort")
        assert await read(broker) == [b"kept"]
        assert await producer.end(True, version) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", versions(end_txn))
async def test_a_fenced_producer_receives_the_error_of_its_version(tmp_path: Path, version: int) -> None:
    async with fenced_producer(tmp_path) as (_, zombie, _):
        expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await zombie.end(True, version) is expected


async def test_refusals(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        assert await Producer(broker, "").end(True) is ErrorCode.INVALID_REQUEST
        assert await Producer(broker).end(True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        broker.authorizer = Denying({(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")})
        assert await Producer(broker).end(True) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_from_version_5_on_the_response_has_what_the_next_transaction_has(tmp_path: Path) -> None:
    async with one_producer(tmp_path, 0) as (broker, producer):
        before = producer.names
        assert await producer.end(True, 5) is ErrorCode.NONE
        assert (producer.producer_id, producer.epoch) == (before["producer_id"], before["producer_epoch"] + 1)
        await completed(broker)
        after = producer.names
        producer.epoch -= 1  # its response was lost: the same again
        assert await producer.end(True, 5) is ErrorCode.NONE
        assert producer.names == after
